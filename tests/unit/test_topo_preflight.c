/* One fault at a time on healthy machines (tests/field/cases/faults): each rule finds its own and
 * nothing else is found. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/preflight.h"

#define CASES NW_SOURCE_DIR "/tests/field/cases/"

enum { HOSTS_MAX = 4, SETS_MAX = 8, BLOCKS_MAX = 200, LINE = 256 };

struct block { /* of the file; see its head */
    int line, hosts, set_count;
    char code[48], severity[16], where[96], says[LINE], file[96], also[LINE];
    char sets[SETS_MAX][LINE];
};

static struct block blocks[BLOCKS_MAX];

static void take(struct block *block, const char *key, const char *value)
{
    char *const texts[] = {block->says, block->file, block->also};
    static const char *const names[] = {"says", "file", "also"};
    const size_t sizes[] = {sizeof block->says, sizeof block->file, sizeof block->also};

    if (strcmp(key, "finds") == 0) {
        cr_assert_eq(
            sscanf(value, "%47s %15s %95[^\n]", block->code, block->severity, block->where), 3,
            "%d: %s", block->line, value);
        return;
    }
    if (strcmp(key, "hosts") == 0) {
        block->hosts = atoi(value);
        return;
    }
    if (strcmp(key, "set") == 0) {
        cr_assert_lt(block->set_count, SETS_MAX);
        snprintf(block->sets[block->set_count++], LINE, "%s", value);
        return;
    }
    for (size_t i = 0; i < 3; i++)
        if (strcmp(key, names[i]) == 0) {
            snprintf(texts[i], sizes[i], "%s", value);
            return;
        }
    cr_assert_fail("faults:%d: key %s", block->line, key);
}

static size_t read_blocks(void)
{
    FILE *file = fopen(CASES "faults", "r");
    char line[LINE];
    size_t count = 0;
    int number = 0;

    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *value = strchr(line, ':');

        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        cr_assert_not_null(value, "faults:%d", number);
        *value++ = '\0';
        value[strcspn(value, "\n")] = '\0';
        if (strcmp(line, "finds") == 0) {
            cr_assert_lt(count, BLOCKS_MAX);
            blocks[count] = (struct block){.line = number, .hosts = 1};
            count++;
        }
        cr_assert_gt(count, 0);
        take(&blocks[count - 1], line, value + strspn(value, " "));
    }
    fclose(file);
    return count;
}

/* --- machines with a fault --- */

static void set_field(struct nw_topo_node *node, const char *key, const char *value)
{
    if (strcmp(key, "model") == 0)
        snprintf(node->model, sizeof node->model, "%.127s", value);
    else if (strcmp(key, "name") == 0)
        snprintf(node->name, sizeof node->name, "%.63s", value);
    else if (strcmp(key, "fabric") == 0)
        snprintf(node->fabric, sizeof node->fabric, "%.15s", value);
    else if (strcmp(key, "memory_gib") == 0)
        node->memory_bytes = (uint64_t)atoi(value) << 30;
    else if (strcmp(key, "port_up") == 0)
        node->port_up = atoi(value);
    else if (strcmp(key, "rate_gbit") == 0)
        node->rate_bits_per_s = atof(value) * 1e9;
    else if (strcmp(key, "link_gb") == 0)
        node->link_max_bytes_per_s = atof(value) * 1e9;
    else if (strcmp(key, "numa") == 0)
        node->numa = atoi(value);
    else if (strcmp(key, "lanes") == 0) {
        node->link_lanes = atoi(value);
        node->link_bytes_per_s = node->link_max_bytes_per_s * node->link_lanes / 16;
    } else
        cr_assert_fail("no fact or field %s", key);
}

static void set(struct nw_topo *topo, int node, const char *key, const char *value)
{
    const int id = nw_fact_find(key);

    if (strcmp(key, "ram_gib") == 0)
        topo->memory_bytes = (uint64_t)atoi(value) << 30;
    else if (id < 0)
        set_field(&topo->nodes[node], key, value);
    else if (nw_fact_rows[id].type == NW_FACT_TEXT)
        cr_assert_eq(nw_topo_set_text(topo, node, (nw_fact_id)id, value, "test"), NW_OK);
    else
        cr_assert_eq(nw_topo_set_number(topo, node, (nw_fact_id)id, atof(value), "test"), NW_OK);
}

/* "host2 gpu* model=NVIDIA A100" */
static void apply(struct nw_topo *topo, int host, const char *order)
{
    char kind[16], which[8], key[64], value[LINE];
    int wanted, index = 0, done = 0;

    cr_assert_eq(sscanf(order, "host%d %15[a-z]%7[0-9*] %63[^=]=%255[^\n]", &wanted, kind, which,
                        key, value),
                 5, "%s", order);
    for (size_t i = 0; wanted == host && i < topo->node_count; i++)
        if (strcmp(nw_node_kind_key(topo->nodes[i].kind), kind) == 0) {
            if (which[0] == '*' || atoi(which) == index) {
                set(topo, (int)i, key, value);
                done++;
            }
            index++;
        }
    cr_assert(wanted != host || done > 0, "no such device: %s", order);
}

static struct nw_topo *read_host(const char *file, int number)
{
    char path[512];
    struct nw_topo *topo;

    snprintf(path, sizeof path, CASES "%s", file[0] != '\0' ? file : "healthy-hgx-h100.json");
    cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s", nw_last_error()->text);
    if (file[0] == '\0')
        snprintf(topo->host, sizeof topo->host, "node%d", number);
    return topo;
}

static void judge(const struct block *block, struct nw_findings *findings)
{
    struct nw_topo *hosts[HOSTS_MAX];
    const struct nw_preflight_input input = {
        .hosts = hosts, .host_count = (size_t)block->hosts, .no_gaps = true};

    for (int h = 0; h < block->hosts; h++) {
        hosts[h] = read_host(block->file, h + 1);
        for (int i = 0; i < block->set_count; i++)
            apply(hosts[h], h + 1, block->sets[i]);
    }
    cr_assert_eq(nw_preflight_judge(&input, findings), NW_OK);
    for (int h = 0; h < block->hosts; h++)
        nw_topo_free(hosts[h]);
}

static bool says(const struct nw_finding *finding, const char *phrases)
{
    const char *const texts[] = {finding->text, finding->effect, finding->remedy};
    char copy[LINE];
    char *rest = copy;

    snprintf(copy, sizeof copy, "%s", phrases);
    for (char *phrase; (phrase = strsep(&rest, "|")) != NULL;) {
        bool said = false;

        for (size_t i = 0; i < 3; i++)
            said |= texts[i] != NULL && strstr(texts[i], phrase) != NULL;
        if (!said)
            return false;
    }
    return true;
}

static bool is_in(const char *list, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

Test(topo_preflight, each_rule_finds_its_fault_and_no_other_speaks)
{
    const size_t count = read_blocks();

    for (size_t b = 0; b < count; b++) {
        const struct block *block = &blocks[b];
        struct nw_findings findings = {0};
        bool found = false;

        judge(block, &findings);
        for (size_t i = 0; i < findings.count; i++) {
            const struct nw_finding *finding = &findings.items[i];
            const bool own = strcmp(finding->code, block->code) == 0;

            found |= own && strcmp(nw_severity_name(finding->severity), block->severity) == 0 &&
                     strncmp(finding->where, block->where, strlen(block->where)) == 0 &&
                     says(finding, block->says);
            cr_expect(own || finding->severity == NW_FINDING_INFO ||
                          is_in(block->also, finding->code),
                      "faults:%d (%s): also %s [%s] %s", block->line, block->code, finding->code,
                      finding->where, finding->text);
        }
        cr_expect(found, "faults:%d: no %s \"%s\" at %s that says %s", block->line, block->severity,
                  block->code, block->where, block->says);
        for (size_t i = 0; i < findings.count && !found; i++)
            fprintf(stderr, "  %s %s [%s] %s\n", nw_severity_name(findings.items[i].severity),
                    findings.items[i].code, findings.items[i].where, findings.items[i].text);
        nw_findings_free(&findings);
    }
}

Test(topo_preflight, every_code_of_the_table_is_tested)
{
    /* tests/unit/test_topo_cases.c has these: they need a matrix of nvidia-smi's. */
    static const char elsewhere[] = "nic-wrong-socket nic-not-for-gpus gpu-without-near-nic";
    const size_t count = read_blocks();

    for (const struct nw_preflight_rule *rule = nw_preflight_rules; rule->codes != NULL; rule++) {
        char copy[512];
        char *rest = copy;

        cr_expect((rule->one == NULL) != (rule->all == NULL), "%s", rule->codes);
        cr_expect_not_null(rule->needs);
        snprintf(copy, sizeof copy, "%s", rule->codes);
        for (char *code; (code = strsep(&rest, " ")) != NULL;) {
            bool tested = is_in(elsewhere, code);

            for (size_t b = 0; b < count; b++)
                tested |= strcmp(blocks[b].code, code) == 0;
            cr_expect(tested, "%s is in no block", code);
        }
    }
}

/* docs/findings.md has a row for each code. */
Test(topo_preflight, every_code_of_the_table_is_explained)
{
    FILE *file = fopen(NW_SOURCE_DIR "/docs/findings.md", "r");
    static char text[1 << 17];

    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (const struct nw_preflight_rule *rule = nw_preflight_rules; rule->codes != NULL; rule++) {
        char copy[512], row[64];
        char *rest = copy;

        snprintf(copy, sizeof copy, "%s", rule->codes);
        for (char *code; (code = strsep(&rest, " ")) != NULL;) {
            snprintf(row, sizeof row, "`%s`", code);
            cr_expect_not_null(strstr(text, row), "docs/findings.md: no %s", row);
        }
    }
}

Test(topo_preflight, equal_hosts_say_nothing_and_failures_come_first)
{
    const struct block healthy = {.hosts = 4};
    const struct block ill = {.hosts = 3,
                              .set_count = 3,
                              .sets = {"host2 gpu0 persistence_mode=0",
                                       "host2 gpu1 power_limit_w=500",
                                       "host3 gpu2 row_remap_failed=1"}};
    struct nw_findings findings = {0};

    judge(&healthy, &findings);
    cr_expect_eq(findings.count, 0, "%s", findings.count > 0 ? findings.items[0].text : "");
    nw_findings_free(&findings);
    judge(&ill, &findings);
    cr_assert_geq(findings.count, 3);
    for (size_t i = 1; i < findings.count; i++)
        cr_expect_leq(findings.items[i].severity, findings.items[i - 1].severity);
    nw_findings_free(&findings);
}

/* 128 hosts with the same fault are one line, and take no long time. */
Test(topo_preflight, what_all_hosts_have_is_one_finding, .timeout = 20)
{
    enum { MANY = 128 };
    struct nw_topo *hosts[MANY];
    struct nw_findings findings = {0};
    const struct nw_preflight_input input = {.hosts = hosts, .host_count = MANY, .no_gaps = true};

    for (int h = 0; h < MANY; h++) {
        hosts[h] = read_host("", h + 1);
        apply(hosts[h], 1, "host1 gpu* power_limit_w=500");
    }
    cr_assert_eq(nw_preflight_judge(&input, &findings), NW_OK);
    cr_assert_eq(findings.count, 1, "%zu", findings.count);
    cr_expect_not_null(strstr(findings.items[0].where, "node1 gpu0, gpu1"));
    cr_expect_not_null(strstr(findings.items[0].where, " more"));
    nw_findings_free(&findings);
    for (int h = 0; h < MANY; h++)
        nw_topo_free(hosts[h]);
}

/* An empty machine, and no machine. */
Test(topo_preflight, what_is_unknown_is_not_found)
{
    struct nw_topo_node machine = {.kind = NW_NODE_MACHINE, .parent = -1, .numa = -1};
    struct nw_topo empty = {.nodes = &machine, .node_count = 1};
    struct nw_topo *hosts[] = {&empty, &empty};
    struct nw_findings findings = {0};

    cr_assert_eq(nw_preflight_judge(&(struct nw_preflight_input){.hosts = hosts, .host_count = 2},
                                    &findings),
                 NW_OK);
    cr_expect_eq(findings.count, 0);
    nw_findings_free(&findings);
    cr_assert_eq(nw_preflight_judge(&(struct nw_preflight_input){.hosts = NULL}, &findings), NW_OK);
    cr_expect_eq(findings.count, 0);
}
