/* A topology written as NCCL's file reads back to the same graph; Graphviz gets what it can parse.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/read.h"
#include "topo/topo.h"
#include "topo/write.h"

static struct nw_topo *read_one(const char *file)
{
    char path[512];
    struct nw_topo *topo;

    snprintf(path, sizeof path, "%s/tests/%s", NW_SOURCE_DIR, file);
    cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s: %s", file, nw_last_error()->text);
    return topo;
}

typedef nw_rc writer(const struct nw_topo *topo, FILE *stream);

static char *write_text(const struct nw_topo *topo, writer *write)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_assert_eq(write(topo, stream), NW_OK, "%s", nw_last_error()->text);
    fclose(stream);
    return text;
}

/* --- NCCL's file --- */

static bool is_kept(const struct nw_topo_node *node)
{
    return node->kind == NW_NODE_GPU || (node->kind == NW_NODE_NIC && node->port_up != 0);
}

/* The same device of the other topology: by kind and name. */
static int counterpart(const struct nw_topo *other, const struct nw_topo_node *node)
{
    for (size_t i = 0; i < other->node_count; i++)
        if (other->nodes[i].kind == node->kind && strcmp(other->nodes[i].name, node->name) == 0)
            return (int)i;
    return -1;
}

static void same_device(const struct nw_topo *a, int i, const struct nw_topo *b, int j,
                        const char *file)
{
    const struct nw_topo_node *x = &a->nodes[i], *y = &b->nodes[j];
    static const nw_fact_id facts[] = {NW_FACT_CAPABILITY, NW_FACT_NVLINK_COUNT,
                                       NW_FACT_NVLINK_SWITCH, NW_FACT_GDR, NW_FACT_CARD_PORT};

    cr_expect_str_eq(x->pci, y->pci, "%s %s", file, x->name);
    cr_expect_eq(x->numa, y->numa, "%s %s", file, x->name);
    cr_expect_eq(x->rate_bits_per_s, y->rate_bits_per_s, "%s %s", file, x->name);
    cr_expect_eq(x->pci_vendor, y->pci_vendor, "%s %s", file, x->name);
    cr_expect_eq(x->link_max_bytes_per_s, y->link_max_bytes_per_s, "%s %s", file, x->name);
    for (size_t f = 0; f < sizeof facts / sizeof *facts; f++) {
        const double told = nw_topo_number(a, i, facts[f]), back = nw_topo_number(b, j, facts[f]);

        cr_expect(told == back || (isnan(told) && isnan(back)), "%s %s: %s %g, back %g", file,
                  x->name, nw_fact_rows[facts[f]].key, told, back);
    }
}

/* Classes of all pairs; host bridges have no place in the file, so that PHB and NODE come back
 * unknown. */
static void same_classes(const struct nw_topo *a, const struct nw_topo *b, const int *other,
                         const char *file)
{
    for (int i = 0; i < (int)a->node_count; i++)
        for (int j = 0; j < (int)a->node_count; j++) {
            int lanes, lanes_back;
            nw_class class_id, back;

            if (other[i] < 0 || other[j] < 0)
                continue;
            class_id = nw_topo_class(a, i, j, &lanes);
            back = nw_topo_class(b, other[i], other[j], &lanes_back);
            cr_expect(class_id == back ||
                          ((class_id == NW_CLASS_PHB || class_id == NW_CLASS_NODE) &&
                           back == NW_CLASS_UNKNOWN),
                      "%s: %s %s: %s, back %s", file, a->nodes[i].name, a->nodes[j].name,
                      nw_class_name(class_id), nw_class_name(back));
            cr_expect_eq(lanes, lanes_back, "%s: %s %s", file, a->nodes[i].name, a->nodes[j].name);
        }
}

static void round_trip(const char *file, bool exact)
{
    struct nw_topo *topo = read_one(file), *back;
    char *text = write_text(topo, nw_topo_write_nccl_xml), *again;
    int *other = calloc(topo->node_count, sizeof *other), kept = 0;

    cr_assert_eq(nw_topo_read_data(text, strlen(text), "back", &back), NW_OK, "%s: %s", file,
                 nw_last_error()->text);
    for (int i = 0; i < (int)topo->node_count; i++) {
        other[i] = is_kept(&topo->nodes[i]) ? counterpart(back, &topo->nodes[i]) : -1;
        if (!is_kept(&topo->nodes[i]))
            continue;
        kept++;
        cr_assert_geq(other[i], 0, "%s: %s is lost", file, topo->nodes[i].name);
        if (exact)
            same_device(topo, i, back, other[i], file);
    }
    cr_expect_gt(kept, 0);
    same_classes(topo, back, other, file);
    if (exact) { /* NCCL's own: the same in every respect, and the same text the second time */
        cr_expect_eq(topo->node_count, back->node_count, "%s", file);
        cr_expect_eq(topo->link_count, back->link_count, "%s", file);
        cr_expect_eq(topo->gaps, back->gaps, "%s", file);
        again = write_text(back, nw_topo_write_nccl_xml);
        cr_expect_str_eq(text, again, "%s", file);
        free(again);
    }
    /* NCCL's parser knows no declaration and no tabs, and takes version 1 only. */
    cr_expect_eq(strncmp(text, "<system version=\"1\">\n", 21), 0, "%s", file);
    cr_expect_null(strchr(text, '\t'), "%s", file);
    cr_expect_null(strstr(text, "<?"), "%s", file);
    free(other);
    free(text);
    nw_topo_free(topo);
    nw_topo_free(back);
}

Test(topo_write, nccl_files_read_back_the_same)
{
    static const char *const files[] = {
        "aws-g5-48xl-topo.xml",   "aws-p4de-topo.xml",       "azure-nc48v4-topo.xml",
        "azure-ncv4-topo.xml",    "azure-ndv5-topo.xml",     "gvisor-b200-vm.xml",
        "nebius-h100-topo.xml",   "oci-b4-flattened.xml",    "oci-h100-topology.xml",
        "panlichen-8gpu-56g.xml", "rccl-topo_3p_pcie.xml",   "rccl-topo_4p3l_2h.xml",
        "rccl-topo_8p_90a.xml",   "rccl-topo_8p_940.xml",    "rccl-topo_8p_rome_n2.xml",
        "simccl-8a100-4cx6.xml",  "stone-4x4090-61nets.xml", "yccl-a6000-4gpu.xml",
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char file[128];

        snprintf(file, sizeof file, "field/ncclxml/%s", files[i]);
        round_trip(file, strncmp(files[i], "aws-g5", 6) != 0); /* its comment names the type */
    }
}

Test(topo_write, machines_of_hwloc_keep_their_classes)
{
    round_trip("machines/hgx-8gpu-hwloc2.xml", false);
}

Test(topo_write, nothing_is_made_up)
{
    struct nw_topo *topo = read_one("machines/sandy-noio.xml");
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_expect_eq(nw_topo_write_nccl_xml(topo, stream), NW_ENOTSUP);
    nw_topo_free(topo);
    topo = read_one("field/topom/rtx5090-x2-tabs.txt"); /* a matrix has no addresses */
    cr_expect_eq(nw_topo_write_nccl_xml(topo, stream), NW_ENOTSUP);
    cr_expect(strstr(nw_last_error()->text, "no PCI address") != NULL, "%s", nw_last_error()->text);
    fclose(stream);
    cr_expect_str_eq(text, "");
    nw_topo_free(topo);
    free(text);
}

/* A chain of bridges that no machine has must not end in a deep recursion. */
Test(topo_write, a_chain_of_bridges_is_refused)
{
    struct nw_topo *topo = calloc(1, sizeof *topo);
    FILE *stream = fopen("/dev/null", "w");
    int at;

    cr_assert_eq(nw_topo_add_node(topo, NW_NODE_MACHINE, -1, &at), NW_OK);
    for (int i = 0; i < 60; i++)
        cr_assert_eq(nw_topo_add_node(topo, NW_NODE_BRIDGE, at, &at), NW_OK);
    cr_expect_eq(nw_topo_write_nccl_xml(topo, stream), NW_ENOTSUP);
    fclose(stream);
    nw_topo_free(topo);
}

/* --- Graphviz --- */

/* "text" with backslash escapes; NULL: not closed. */
static const char *skip_quoted(const char *at)
{
    for (at++; *at != '\0' && *at != '"'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return *at == '"' ? at + 1 : NULL;
}

/* The language of graphs, as far as it is used: statements end with a semicolon or a brace, braces
 * and brackets pair, what is not quoted is a word, a number, "--", "=", ",". */
static bool is_dot(const char *text)
{
    int braces = 0, brackets = 0;

    if (strncmp(text, "graph topology {\n", 17) != 0)
        return false;
    while (*text != '\0') {
        if (*text == '"') {
            text = skip_quoted(text);
            if (text == NULL)
                return false;
            continue;
        }
        braces += (*text == '{') - (*text == '}');
        brackets += (*text == '[') - (*text == ']');
        if (braces < 0 || brackets < 0 || brackets > 1 || (*text == ';' && brackets != 0))
            return false;
        if (!isalnum((unsigned char)*text) && strchr("_{}[];=,- \n", *text) == NULL)
            return false;
        text++;
    }
    return braces == 0 && brackets == 0;
}

Test(topo_write, graphviz_can_parse_it)
{
    static const struct {
        const char *file, *words; /* split at '|' */
    } rows[] = {
        {"machines/hgx-8gpu-hwloc2.xml",
         "subgraph cluster_|label=\"package0|nvswitch [|18 NVLinks, 450 GB/s|63.0 GB/s"},
        {"field/ncclxml/rccl-topo_8p_90a.xml", "1 x XGMI, 50.0 GB/s"},
        {"field/ncclxml/azure-nc48v4-topo.xml", "12 x NVLink, 300 GB/s"},
        {"machines/sandy-noio.xml", "cluster_"},
        {"field/topom/gb200x4-8nic.txt", "nvswitch"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = read_one(rows[i].file);
        char *text = write_text(topo, nw_topo_write_dot), words[128], *rest = words, *word;

        cr_expect(is_dot(text), "%s:\n%s", rows[i].file, text);
        snprintf(words, sizeof words, "%s", rows[i].words);
        while ((word = strsep(&rest, "|")) != NULL)
            cr_expect(strstr(text, word) != NULL, "%s: \"%s\" is not in:\n%s", rows[i].file, word,
                      text);
        free(text);
        nw_topo_free(topo);
    }
}

/* Names come from files: none ends its quotes. */
Test(topo_write, names_are_quoted)
{
    static const char text[] =
        "<system version=\"1\"><cpu numaid=\"0\"><nic><net name=\"a&quot;];&lt;\\\" "
        "speed=\"100\"/></nic></cpu></system>";
    struct nw_topo *topo, *back;
    char *out;

    cr_assert_eq(nw_topo_read_data(text, strlen(text), "t", &topo), NW_OK, "%s",
                 nw_last_error()->text);
    out = write_text(topo, nw_topo_write_dot);
    cr_expect(is_dot(out), "%s", out);
    free(out);
    out = write_text(topo, nw_topo_write_nccl_xml);
    cr_assert_eq(nw_topo_read_data(out, strlen(out), "back", &back), NW_OK, "%s: %s", out,
                 nw_last_error()->text);
    cr_expect_str_eq(nw_topo_nth(back, NW_NODE_NIC, 0)->name, "a\"];<\\");
    free(out);
    nw_topo_free(topo);
    nw_topo_free(back);
}
