/* Several sources of one machine make one graph, in whatever order they come. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/topo_machines.h"
#include "topo/read.h"

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct nw_topo *empty(const char *source, unsigned sources, unsigned gaps)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    int machine;

    snprintf(topo->source, sizeof topo->source, "%s", source);
    topo->sources = sources;
    topo->gaps = gaps;
    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &machine), NW_OK);
    snprintf(topo->nodes[0].name, sizeof topo->nodes[0].name, "machine");
    return topo;
}

static int add(struct nw_topo *topo, nw_node_kind kind, int parent, const char *name,
               const char *pci)
{
    int index;

    cr_assert_eq(nw_topo_add_node(topo, kind, parent, &index), NW_OK);
    snprintf(topo->nodes[index].name, sizeof topo->nodes[index].name, "%s", name);
    snprintf(topo->nodes[index].pci, sizeof topo->nodes[index].pci, "%s", pci);
    return index;
}

static void number(struct nw_topo *topo, int node, nw_fact_id id, double value)
{
    cr_assert_eq(nw_topo_set_number(topo, node, id, value, topo->source), NW_OK);
}

static void text(struct nw_topo *topo, int node, nw_fact_id id, const char *value)
{
    cr_assert_eq(nw_topo_set_text(topo, node, id, value, topo->source), NW_OK);
}

static const char *const gpu_pcis[8] = {"0000:19:00.0", "0000:3b:00.0", "0000:4c:00.0",
                                        "0000:5d:00.0", "0000:9b:00.0", "0000:bb:00.0",
                                        "0000:cb:00.0", "0000:d9:00.0"};

/* The machine of hgx-8gpu-hwloc2.xml as other tools tell of it. */

static struct nw_topo *hwloc(void)
{
    struct nw_topo *topo;
    char path[1024];

    cr_assert(machine_path("hgx-8gpu-hwloc2.xml", path, sizeof path));
    cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s", nw_last_error()->text);
    return topo;
}

/* GPUs with addresses and UUIDs, in an order of its own. */
static struct nw_topo *smi_query(void)
{
    struct nw_topo *topo = empty("smi-q", NW_SOURCE_SMI, NW_TOPO_PARTIAL);
    struct nw_topo *machine = hwloc();
    char name[64];

    for (int i = 7; i >= 0; i--) {
        const struct nw_topo_node *like = nw_topo_nth(machine, NW_NODE_GPU, i);

        snprintf(name, sizeof name, "gpu%d", 7 - i);
        const int gpu = add(topo, NW_NODE_GPU, 0, name, like->pci);

        snprintf(topo->nodes[gpu].model, sizeof topo->nodes[gpu].model, "NVIDIA H100 80GB HBM3");
        snprintf(name, sizeof name, "GPU-%d", i);
        text(topo, gpu, NW_FACT_UUID, name);
        number(topo, gpu, NW_FACT_GPU_INDEX, i);
        number(topo, gpu, NW_FACT_POWER_LIMIT, 700);
        number(topo, gpu, NW_FACT_POWER, 70 + i);
    }
    text(topo, 0, NW_FACT_DRIVER, "550.54.15");
    nw_topo_free(machine);
    return topo;
}

/* GPUs by number and UUID only. */
static struct nw_topo *smi_nvlink(void)
{
    struct nw_topo *topo = empty("smi-nvlink", NW_SOURCE_SMI, NW_TOPO_PARTIAL);
    char name[64];

    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "gpu%d", i);
        const int gpu = add(topo, NW_NODE_GPU, 0, name, "");

        snprintf(name, sizeof name, "GPU-%d", i);
        text(topo, gpu, NW_FACT_UUID, name);
        number(topo, gpu, NW_FACT_NVLINK_COUNT, i == 3 ? 16 : 18);
        number(topo, gpu, NW_FACT_POWER, 300);
    }
    return topo;
}

/* GPUs by number, NICs by name. */
static struct nw_topo *smi_matrix(void)
{
    struct nw_topo *topo = empty("topo-m", NW_SOURCE_SMI, NW_TOPO_PARTIAL);
    char name[64];

    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "gpu%d", i);
        number(topo, add(topo, NW_NODE_GPU, 0, name, ""), NW_FACT_GPU_INDEX, i);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "mlx5_%d", i);
        add(topo, NW_NODE_NIC, 0, name, "");
    }
    for (int a = 1; a < 17; a++)
        for (int b = a + 1; b < 17; b++)
            cr_assert_eq(nw_topo_state(topo, a, b, b < 9 ? NW_CLASS_NV : NW_CLASS_SYS, 18), NW_OK);
    return topo;
}

/* NICs by RDMA name, with their ports. */
static struct nw_topo *ibstat(void)
{
    struct nw_topo *topo = empty("ibstat", NW_SOURCE_RDMA, NW_TOPO_PARTIAL);
    struct nw_topo_gid gid = {.gid = "fe80:0000:0000:0000:0000:0000:0000:0001", .type = "ib"};
    char name[64];

    snprintf(topo->host, sizeof topo->host, "hgx1");
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "mlx5_%d", i);
        const int nic = add(topo, NW_NODE_NIC, 0, name, "");

        text(topo, nic, NW_FACT_FIRMWARE, "28.39.1002");
        snprintf(topo->nodes[nic].fabric, sizeof topo->nodes[nic].fabric, "infiniband");
        strcat(name, "/1");
        gid.port = add(topo, NW_NODE_PORT, nic, name, "");
        text(topo, gid.port, NW_FACT_STATE, "active");
        cr_assert_eq(nw_topo_add_gid(topo, &gid), NW_OK);
    }
    return topo;
}

/* --- a topology as sorted lines, without indexes --- */

struct lines {
    char (*items)[512];
    size_t count;
};

static const char *key_of(const struct nw_topo *topo, int node)
{
    return topo->nodes[node].pci[0] != '\0' && topo->nodes[node].kind != NW_NODE_DISK
               ? topo->nodes[node].pci
               : topo->nodes[node].name;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static struct lines lines_of(const struct nw_topo *topo)
{
    struct lines lines = {.items = calloc(topo->node_count + topo->fact_count + topo->link_count +
                                              topo->stated_count + topo->gid_count + 1,
                                          sizeof *lines.items)};
    char value[224];

    for (int i = 0; i < (int)topo->node_count; i++)
        snprintf(lines.items[lines.count++], 512, "node %s %s %s under %s numa %d %s",
                 nw_node_kind_key(topo->nodes[i].kind), key_of(topo, i), topo->nodes[i].model,
                 i > 0 ? key_of(topo, topo->nodes[i].parent) : "", topo->nodes[i].numa,
                 topo->nodes[i].fabric);
    for (size_t i = 0; i < topo->fact_count; i++)
        if ((nw_fact_rows[topo->facts[i].id].flags & NW_FACT_PASSING) == 0)
            snprintf(lines.items[lines.count++], 512, "fact %s %s %s",
                     key_of(topo, topo->facts[i].node), nw_fact_rows[topo->facts[i].id].key,
                     nw_fact_value_text(&topo->facts[i], value));
    for (size_t i = 0; i < topo->stated_count; i++) {
        const char *a = key_of(topo, topo->stated[i].a), *b = key_of(topo, topo->stated[i].b);

        snprintf(lines.items[lines.count++], 512, "stated %s %s %d %d", strcmp(a, b) < 0 ? a : b,
                 strcmp(a, b) < 0 ? b : a, topo->stated[i].class_id, topo->stated[i].nvlinks);
    }
    for (size_t i = 0; i < topo->link_count; i++)
        snprintf(lines.items[lines.count++], 512, "link %s %s %d %g",
                 key_of(topo, topo->links[i].a), key_of(topo, topo->links[i].b),
                 topo->links[i].lane_count, topo->links[i].bytes_per_s);
    for (size_t i = 0; i < topo->gid_count; i++)
        snprintf(lines.items[lines.count++], 512, "gid %s %d %s", key_of(topo, topo->gids[i].port),
                 topo->gids[i].index, topo->gids[i].gid);
    qsort(lines.items, lines.count, sizeof *lines.items, compare);
    return lines;
}

static void expect_same(const struct lines *a, const struct lines *b, const char *what)
{
    cr_expect_eq(a->count, b->count, "%s: %zu and %zu lines", what, a->count, b->count);
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0) {
            cr_expect_fail("%s: \"%s\" and \"%s\"", what, a->items[i], b->items[i]);
            return;
        }
}

static int count_findings(const struct nw_topo *topo, const char *code, const char *words)
{
    int count = 0;

    for (size_t i = 0; i < topo->findings.count; i++)
        count += strcmp(topo->findings.items[i].code, code) == 0 &&
                 strstr(topo->findings.items[i].text, words) != NULL;
    return count;
}

static void print_findings(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        fprintf(stderr, "%s %s: %s\n", topo->findings.items[i].code, topo->findings.items[i].where,
                topo->findings.items[i].text);
}

static void merge(struct nw_topo *into, struct nw_topo *from)
{
    cr_assert_eq(nw_topo_merge(into, from), NW_OK, "%s", nw_last_error()->text);
    nw_topo_free(from);
}

/* What every graph promises. */
static void expect_sound(const struct nw_topo *topo)
{
    struct nw_topo *copy = NULL;
    json_t *json = NULL;

    for (int i = 1; i < (int)topo->node_count; i++)
        cr_expect(topo->nodes[i].parent >= 0 && topo->nodes[i].parent < i, "parent of node %d", i);
    for (size_t i = 0; i < topo->link_count; i++)
        cr_expect_eq(
            nw_topo_link_between(topo, topo->links[i].kind, topo->links[i].a, topo->links[i].b),
            &topo->links[i]);
    for (size_t i = 0; i < topo->fact_count; i++)
        cr_expect_eq(nw_topo_fact(topo, topo->facts[i].node, topo->facts[i].id), &topo->facts[i]);
    cr_assert_eq(nw_topo_to_json(topo, &json), NW_OK);
    cr_expect_eq(nw_topo_from_json(json, "again", &copy), NW_OK, "%s", nw_last_error()->text);
    nw_topo_free(copy);
    json_decref(json);
}

Test(topo_merge, the_order_of_sources_does_not_matter, .timeout = 60)
{
    struct nw_topo *(*const sources[])(void) = {hwloc, smi_query, smi_nvlink, smi_matrix, ibstat};
    enum { SOURCES = 5 };
    struct lines first = {0};

    for (int order = 0; order < 120; order++) {
        int left[SOURCES] = {0, 1, 2, 3, 4}, code = order;
        struct nw_topo *topo = NULL;
        char what[32];

        for (int n = SOURCES; n > 0; n--) {
            const int pick = code % n, source = left[pick];

            code /= n;
            memmove(&left[pick], &left[pick + 1], (size_t)(SOURCES - pick - 1) * sizeof *left);
            if (topo == NULL)
                topo = sources[source]();
            else
                merge(topo, sources[source]());
        }
        snprintf(what, sizeof what, "order %d", order);
        cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 8, "%s: GPUs", what);
        cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), 8, "%s: NICs", what);
        cr_expect_eq(nw_topo_count(topo, NW_NODE_PORT), 8, "%s: ports", what);
        cr_expect_eq(topo->gaps, 0u, "%s: gaps %u", what, topo->gaps);
        struct lines lines = lines_of(topo);

        expect_sound(topo);
        if (order == 0) {
            print_findings(topo);
            first = lines;
        } else {
            expect_same(&first, &lines, what);
            free(lines.items);
        }
        nw_topo_free(topo);
    }
    free(first.items);
}

/* A source with itself is itself, and nothing disagrees. */
Test(topo_merge, a_source_twice_adds_nothing)
{
    for (int i = 0; i < MACHINE_COUNT; i++) {
        struct nw_topo *topo, *again;
        char path[1024];

        if (!machine_path(all_machines[i], path, sizeof path))
            continue;
        cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK);
        cr_assert_eq(nw_topo_read_file(path, &again), NW_OK);
        const size_t findings = topo->findings.count;
        struct lines before = lines_of(topo);

        merge(topo, again);
        struct lines after = lines_of(topo);

        expect_same(&before, &after, all_machines[i]);
        expect_sound(topo);
        cr_expect_eq(topo->findings.count, findings, "%s: %zu findings, %zu before",
                     all_machines[i], topo->findings.count, findings);
        free(before.items);
        free(after.items);
        nw_topo_free(topo);
    }
}

/* One machine exported with and without NVML: the gap is filled. */
Test(topo_merge, gaps_are_filled)
{
    char path[2][1024];
    struct nw_topo *topo, *other;

    if (machine_path("lenovo-sd665n-4xh200-nonvml.xml", path[0], sizeof path[0]) &&
        machine_path("lenovo-sd665n-4xh200-nvml.xml", path[1], sizeof path[1])) {
        cr_assert_eq(nw_topo_read_file(path[0], &topo), NW_OK);
        cr_assert_eq(nw_topo_read_file(path[1], &other), NW_OK);
        topo->host[0] = other->host[0] = '\0';
        cr_expect_eq(count_findings(topo, "nvlink-unknown", ""), 1);
        merge(topo, other);
        print_findings(topo);
        cr_expect_eq(topo->gaps & NW_TOPO_NO_NVLINK, 0u);
        cr_expect_eq(count_findings(topo, "nvlink-unknown", ""), 0);
        cr_expect_eq(topo->link_count, 6u, "%zu links", topo->link_count);
        cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 4);
        cr_expect(strstr(nw_topo_nth(topo, NW_NODE_GPU, 0)->model, "H200") != NULL);
        nw_topo_free(topo);
    }
    cr_assert(machine_path("sandy-noio.xml", path[0], sizeof path[0]));
    cr_assert(machine_path("sandy-3gpu-1ib-wholeio.xml", path[1], sizeof path[1]));
    cr_assert_eq(nw_topo_read_file(path[0], &topo), NW_OK);
    cr_assert_eq(nw_topo_read_file(path[1], &other), NW_OK);
    merge(topo, other);
    cr_expect_eq(topo->gaps & NW_TOPO_NO_IO, 0u);
    cr_expect_eq(count_findings(topo, "io-not-in-file", ""), 0);
    cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), 4);
    nw_topo_free(topo);
    /* Two partial ones leave it partial; one without I/O beside a list of GPUs is partial. */
    topo = smi_query();
    merge(topo, ibstat());
    cr_expect_eq(topo->gaps, (unsigned)NW_TOPO_PARTIAL);
    nw_topo_free(topo);
    cr_assert_eq(nw_topo_read_file(path[0], &topo), NW_OK);
    topo->host[0] = '\0';
    other = smi_query();
    merge(topo, other);
    cr_expect_eq(topo->gaps, (unsigned)NW_TOPO_PARTIAL, "gaps %u", topo->gaps);
    cr_expect_eq(count_findings(topo, "sources-disagree", ""), 0);
    nw_topo_free(topo);
}

/* Readings that cannot both be true are told with both values; passing ones are not. */
Test(topo_merge, contradictions_are_findings)
{
    static const struct {
        const char *what;
        nw_fact_id fact;
        double value;
        const char *word;
        int told;
        const char *expected;
    } rows[] = {
        {"power limit", NW_FACT_POWER_LIMIT, 350, NULL, 1, "350 W"},
        {"power now", NW_FACT_POWER, 5, NULL, 0, ""},
        {"generation now", NW_FACT_LINK_GENERATION, 1, NULL, 0, ""},
        {"NVLinks", NW_FACT_NVLINK_COUNT, 12, NULL, 1, "12 by b"},
        {"VBIOS", NW_FACT_VBIOS, NAN, "96.00.74.00.02", 1, "96.00.74.00.02 by b"},
        {"UUID", NW_FACT_UUID, NAN, "GPU-other", 1, "GPU-other"},
        {"affinity, blanks", NW_FACT_CPU_AFFINITY, NAN, "0-31, 64-95", 0, ""},
        {"index", NW_FACT_GPU_INDEX, 4, NULL, 0, ""},
        {"rate, rounded", NW_FACT_NVLINK_RATE, 25e9, NULL, 0, ""},
        {"rate", NW_FACT_NVLINK_RATE, 50e9, NULL, 1, "50.0 GB/s by b"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *a = empty("a", NW_SOURCE_SMI, NW_TOPO_PARTIAL);
        struct nw_topo *b = empty("b", NW_SOURCE_SMI, NW_TOPO_PARTIAL);
        const int gpu = add(a, NW_NODE_GPU, 0, "gpu0", gpu_pcis[0]);
        const int other = add(b, NW_NODE_GPU, 0, "gpu0", gpu_pcis[0]);

        number(a, gpu, NW_FACT_POWER_LIMIT, 700);
        number(a, gpu, NW_FACT_POWER, 300);
        number(a, gpu, NW_FACT_LINK_GENERATION, 5);
        number(a, gpu, NW_FACT_NVLINK_COUNT, 18);
        number(a, gpu, NW_FACT_NVLINK_RATE, 26.562e9);
        number(a, gpu, NW_FACT_GPU_INDEX, 0);
        text(a, gpu, NW_FACT_VBIOS, "96.00.61.00.01");
        text(a, gpu, NW_FACT_UUID, "GPU-one");
        text(a, gpu, NW_FACT_CPU_AFFINITY, "0-31,64-95");
        if (rows[i].word != NULL)
            text(b, other, rows[i].fact, rows[i].word);
        else
            number(b, other, rows[i].fact, rows[i].value);
        merge(a, b);
        cr_expect_eq(count_findings(a, "sources-disagree", rows[i].expected), rows[i].told,
                     "%s: %d told", rows[i].what,
                     count_findings(a, "sources-disagree", rows[i].expected));
        if (rows[i].told == 0)
            cr_expect_eq(a->findings.count, 0u, "%s", rows[i].what);
        cr_expect_eq(nw_topo_number(a, gpu, NW_FACT_POWER_LIMIT), 700, "the first one counts");
        nw_topo_free(a);
    }
}

Test(topo_merge, devices_that_contradict_are_findings)
{
    static const struct {
        const char *what, *model, *other;
        int numa, other_numa, lanes, other_lanes, told;
    } rows[] = {
        {"the same", "NVIDIA H100 80GB HBM3", "NVIDIA GH100 [H100 SXM5 80GB]", 0, 0, 16, 16, 0},
        {"product", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", 0, 0, 16, 16, 1},
        {"form", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-80GB", 0, 0, 16, 16, 1},
        {"memory", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", 0, 0, 16, 16, 1},
        {"NUMA node", "NVIDIA A40", "NVIDIA A40", 0, 1, 16, 16, 1},
        {"NUMA node unknown", "NVIDIA A40", "NVIDIA A40", -1, 1, 16, 16, 0},
        {"width", "Tesla T4", "Tesla T4", 0, 0, 16, 8, 1},
        {"width unknown", "Tesla T4", "NVIDIA TU104GL [Tesla T4]", 0, 0, 16, 0, 0},
        {"two of everything", "Tesla T4", "Tesla V100-SXM2-32GB", 0, 1, 16, 8, 3},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *a = empty("a", 0, 0), *b = empty("b", 0, 0);
        const int gpu = add(a, NW_NODE_GPU, 0, "gpu0", gpu_pcis[0]);
        const int other = add(b, NW_NODE_GPU, 0, "gpu5", gpu_pcis[0]);
        struct nw_topo_node *x = &a->nodes[gpu], *y = &b->nodes[other];

        snprintf(x->model, sizeof x->model, "%s", rows[i].model);
        snprintf(y->model, sizeof y->model, "%s", rows[i].other);
        x->numa = rows[i].numa;
        y->numa = rows[i].other_numa;
        x->link_max_lanes = rows[i].lanes;
        y->link_max_lanes = rows[i].other_lanes;
        merge(a, b);
        cr_expect_eq(count_findings(a, "sources-disagree", ""), rows[i].told, "%s: %d",
                     rows[i].what, count_findings(a, "sources-disagree", ""));
        nw_topo_free(a);
    }
}

/* How many GPUs: a list that is whole must have all of them. */
Test(topo_merge, counts_of_gpus)
{
    static const struct {
        int into, from;
        unsigned into_gaps, from_gaps;
        bool addresses; /* of `from` */
        int gpus, told;
    } rows[] = {
        {8, 8, 0, NW_TOPO_PARTIAL, false, 8, 0},
        {7, 8, 0, NW_TOPO_PARTIAL, false, 7, 1}, /* which one is missing cannot be told */
        {7, 8, 0, 0, true, 8, 1},
        {8, 7, 0, 0, true, 8, 1},
        {8, 2, 0, NW_TOPO_PARTIAL, true, 8, 0},
        {8, 2, 0, NW_TOPO_PARTIAL, false, 8, 0},
        {2, 8, NW_TOPO_PARTIAL, 0, true, 8, 0},
        {2, 8, NW_TOPO_PARTIAL, NW_TOPO_PARTIAL, false, 8, 0},
        {0, 8, 0, NW_TOPO_PARTIAL, true, 8, 0},
        {0, 8, NW_TOPO_NO_IO, NW_TOPO_PARTIAL, false, 8, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *a = empty("a", 0, rows[i].into_gaps), *b = empty("b", 0, rows[i].from_gaps);
        char name[16];

        for (int g = 0; g < 8; g++) {
            snprintf(name, sizeof name, "gpu%d", g);
            if (g < rows[i].into)
                add(a, NW_NODE_GPU, 0, name, gpu_pcis[g]);
            if (g < rows[i].from)
                add(b, NW_NODE_GPU, 0, name, rows[i].addresses ? gpu_pcis[g] : "");
        }
        merge(a, b);
        cr_expect_eq(nw_topo_count(a, NW_NODE_GPU), rows[i].gpus, "row %zu: %d GPUs", i,
                     nw_topo_count(a, NW_NODE_GPU));
        cr_expect_eq(count_findings(a, "sources-disagree", "number of GPUs"), rows[i].told,
                     "row %zu", i);
        nw_topo_free(a);
    }
}

Test(topo_merge, two_machines_are_refused)
{
    static const struct {
        const char *a, *b;
        nw_rc rc;
        const char *host;
    } rows[] = {
        {"node1", "node2", NW_EUSAGE, "node1"},
        {"node1", "node1.cluster.local", NW_OK, "node1.cluster.local"},
        {"node1.a.org", "node1.b.org", NW_EUSAGE, "node1.a.org"},
        {"NODE1", "node1", NW_OK, "NODE1"},
        {"node1", "node11", NW_EUSAGE, "node1"},
        {"", "node2", NW_OK, "node2"},
        {"node1", "", NW_OK, "node1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *a = empty("a.json", 0, 0), *b = empty("b.json", 0, 0);

        snprintf(a->host, sizeof a->host, "%s", rows[i].a);
        snprintf(b->host, sizeof b->host, "%s", rows[i].b);
        cr_expect_eq(nw_topo_merge(a, b), rows[i].rc, "row %zu", i);
        if (rows[i].rc != NW_OK)
            cr_expect(strstr(nw_last_error()->text, "a.json is of host") != NULL, "%s",
                      nw_last_error()->text);
        cr_expect_str_eq(a->host, rows[i].host);
        nw_topo_free(a);
        nw_topo_free(b);
    }
}

/* A later source knows the tree: parents come before their children again. */
Test(topo_merge, the_tree_of_a_later_source_is_taken)
{
    struct nw_topo *a = empty("a", 0, NW_TOPO_PARTIAL), *b = empty("b", 0, 0);

    add(a, NW_NODE_GPU, 0, "gpu0", "0000:03:00.0");
    add(a, NW_NODE_NIC, 0, "mlx5_0", "0000:04:00.0");
    number(a, 1, NW_FACT_POWER, 100);
    const int numa = add(b, NW_NODE_NUMA, 0, "numa1", "");
    const int host = add(b, NW_NODE_BRIDGE, numa, "pci0000:00", "");
    const int up = add(b, NW_NODE_BRIDGE, host, "0000:01:00.0", "0000:01:00.0");
    const int down = add(b, NW_NODE_BRIDGE, up, "0000:02:00.0", "0000:02:00.0");

    b->nodes[numa].numa = 1;
    b->numa_count = 1;
    add(b, NW_NODE_GPU, down, "gpu0", "0000:03:00.0");
    add(b, NW_NODE_NIC, up, "mlx5_0", "0000:04:00.0");
    merge(a, b);
    expect_sound(a);
    cr_assert_eq(a->node_count, 7u);
    const int gpu = 5, nic = 6;

    cr_expect_eq(a->nodes[gpu].kind, NW_NODE_GPU);
    cr_expect_str_eq(a->nodes[a->nodes[gpu].parent].pci, "0000:02:00.0");
    cr_expect_str_eq(a->nodes[a->nodes[nic].parent].pci, "0000:01:00.0");
    cr_expect_eq(nw_topo_path(a, gpu, nic), NW_PATH_SWITCH);
    cr_expect_eq(nw_topo_number(a, gpu, NW_FACT_POWER), 100);
    nw_topo_free(a);
    /* Two trees that have each bridge above the other do not make a circle. */
    a = empty("a", 0, 0), b = empty("b", 0, 0);
    add(a, NW_NODE_BRIDGE, 0, "0000:01:00.0", "0000:01:00.0");
    add(a, NW_NODE_BRIDGE, 1, "0000:02:00.0", "0000:02:00.0");
    add(b, NW_NODE_BRIDGE, 0, "0000:02:00.0", "0000:02:00.0");
    add(b, NW_NODE_BRIDGE, 1, "0000:01:00.0", "0000:01:00.0");
    merge(a, b);
    expect_sound(a);
    nw_topo_free(a);
}

/* 72 GPUs in one NVLink domain, two sources with all pairs; and 128 machines' files. */
Test(topo_merge, large_ones_take_less_than_a_second)
{
    struct nw_topo *domain[2], *machine = hwloc(), *copy;
    json_t *json;
    char name[32], pci[16];
    double start;

    for (int s = 0; s < 2; s++) {
        domain[s] = empty(s == 0 ? "a" : "b", NW_SOURCE_SMI, NW_TOPO_PARTIAL);
        for (int g = 0; g < 72; g++) {
            snprintf(name, sizeof name, "gpu%d", g);
            snprintf(pci, sizeof pci, "%04x:%02x:00.0", g / 4, g % 4 + 1);
            const int gpu = add(domain[s], NW_NODE_GPU, 0, name, pci);

            for (int id = 0; id < NW_FACT_COUNT; id++)
                if (nw_fact_rows[id].type == NW_FACT_NUMBER)
                    number(domain[s], gpu, (nw_fact_id)id, id);
        }
        for (int a = 1; a <= 72; a++)
            for (int b = a + 1; b <= 72; b++) {
                cr_assert_eq(nw_topo_state(domain[s], a, b, NW_CLASS_NV, 18), NW_OK);
                cr_assert_eq(
                    nw_topo_add_link(domain[s], &(struct nw_topo_link){.a = a,
                                                                       .b = b,
                                                                       .kind = NW_LINK_NVLINK,
                                                                       .lane_count = 18,
                                                                       .bytes_per_s = 900e9}),
                    NW_OK);
            }
    }
    start = cpu_seconds();
    merge(domain[0], domain[1]);
    cr_expect_lt(cpu_seconds() - start, 1.0, "72 GPUs: %.3f s", cpu_seconds() - start);
    fprintf(stderr, "72 GPUs merged in %.3f s\n", cpu_seconds() - start);
    cr_expect_eq(domain[0]->link_count, 72u * 71 / 2);
    cr_expect_eq(domain[0]->findings.count, 0u);
    merge(machine, smi_query());
    merge(machine, ibstat());
    cr_assert_eq(nw_topo_to_json(machine, &json), NW_OK);
    char *written = json_dumps(json, 0);

    start = cpu_seconds();
    for (int i = 0; i < 128; i++) {
        cr_assert_eq(nw_topo_read_data(written, strlen(written), "one", &copy), NW_OK);
        merge(copy, smi_nvlink());
        nw_topo_free(copy);
    }
    fprintf(stderr, "128 machines read and merged in %.3f s\n", cpu_seconds() - start);
    cr_expect_lt(cpu_seconds() - start, 5.0, "128 machines: %.3f s", cpu_seconds() - start);
    free(written);
    json_decref(json);
    nw_topo_free(machine);
    nw_topo_free(domain[0]);
}

/* Outputs of several tools as they were found, in every order. */
Test(topo_merge, real_outputs_merge_in_every_order, .timeout = 60)
{
    enum { MOST = 3 };
    static const struct {
        const char *files[MOST];
        int gpus, nics, told;
    } rows[] = {
        {{"smi/capture-h200-q.txt", "smi/capture-h200-query.csv", "nvlink/capture-h200-nvlink.txt"},
         1,
         0,
         0},
        {{"smi/capture-h100-mig-q.txt", "smi/capture-h100-mig-query.csv"}, 1, 0, 0},
        {{"topom/ndv4-an0-dup-nic-names.txt", "nvlink/ndv4-gpu7-good.txt", "smi/ndv4-ecc-bad.txt"},
         8,
         9,
         0},
        {{"ncclxml/azure-ndv5-topo.xml", "topom/h100x8-spaces-book.txt"}, 8, 8, 0},
        {{"ncclxml/aws-p4de-topo.xml", "topom/aws-p4d.24xlarge.txt"}, 8, 4, 0},
        {{"hwloc/lenovo-sd665n-4xh200-nonvml.xml", "hwloc/lenovo-sd665n-4xh200-nvml.xml"}, 4, 7, 0},
        /* one GPU of another machine */
        {{"smi/telegraf-t4.xml", "hwloc/lenovo-sd665n-4xh200-nvml.xml"}, 5, 7, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const int orders[6][MOST] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                            {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        struct lines first = {0};

        for (int o = 0; o < 6; o++) {
            struct nw_topo *topo = NULL, *one;

            for (int f = 0; f < MOST; f++) {
                const char *file = rows[i].files[orders[o][f]];
                char path[1024];

                if (file == NULL)
                    continue;
                snprintf(path, sizeof path, "%s/tests/field/%s", NW_SOURCE_DIR, file);
                cr_assert_eq(nw_topo_read_file(path, &one), NW_OK, "%s", nw_last_error()->text);
                if (topo == NULL)
                    topo = one;
                else
                    merge(topo, one);
            }
            expect_sound(topo);
            cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), rows[i].gpus, "%s: %d GPUs",
                         rows[i].files[0], nw_topo_count(topo, NW_NODE_GPU));
            cr_expect_eq(nw_topo_count(topo, NW_NODE_NIC), rows[i].nics, "%s: %d NICs",
                         rows[i].files[0], nw_topo_count(topo, NW_NODE_NIC));
            cr_expect_eq(count_findings(topo, "sources-disagree", ""), rows[i].told, "%s",
                         rows[i].files[0]);
            struct lines lines = lines_of(topo);

            if (o == 0)
                first = lines;
            else
                expect_same(&first, &lines, rows[i].files[0]);
            if (o > 0)
                free(lines.items);
            nw_topo_free(topo);
        }
        free(first.items);
    }
}
