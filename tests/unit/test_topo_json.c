#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "tests/unit/topo_machines.h"
#include "topo/topo.h"

/* To text and back: every key and digit the same. */
static void check_round_trip(const char *name, const struct nw_topo *topo)
{
    json_t *first, *second;
    struct nw_topo *copy;
    char *text, *again;

    cr_assert_eq(nw_topo_to_json(topo, &first), NW_OK, "%s", nw_last_error()->text);
    text = json_dumps(first, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    cr_assert_not_null(text);
    cr_assert_eq(nw_topo_read_data(text, strlen(text), name, &copy), NW_OK, "%s",
                 nw_last_error()->text);
    cr_assert_eq(nw_topo_to_json(copy, &second), NW_OK);
    again = json_dumps(second, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    cr_expect_str_eq(text, again, "%s changes on its way through JSON", name);
    cr_expect_eq(copy->node_count, topo->node_count);
    for (size_t i = 0; i < topo->node_count && i < copy->node_count; i++) {
        cr_expect_eq(copy->nodes[i].memory_bytes, topo->nodes[i].memory_bytes);
        cr_expect_eq(copy->nodes[i].link_bytes_per_s, topo->nodes[i].link_bytes_per_s);
        cr_expect_eq(copy->nodes[i].parent, topo->nodes[i].parent);
        cr_expect_eq(copy->nodes[i].numa, topo->nodes[i].numa);
        cr_expect_eq(copy->nodes[i].port_up, topo->nodes[i].port_up);
    }
    cr_expect_eq(copy->gaps, topo->gaps);
    cr_expect_eq(copy->sources, topo->sources | NW_SOURCE_JSON);
    cr_expect_eq(copy->findings.count, topo->findings.count);
    free(text);
    free(again);
    json_decref(first);
    json_decref(second);
    nw_topo_free(copy);
}

Test(topo_json, round_trip_of_every_machine_is_exact)
{
    for (int i = 0; i < MACHINE_COUNT; i++) {
        struct nw_topo *topo;
        char path[1024];

        if (!machine_path(all_machines[i], path, sizeof path))
            continue;
        cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s", nw_last_error()->text);
        check_round_trip(all_machines[i], topo);
        nw_topo_free(topo);
    }
}

Test(topo_json, saving_is_whole_and_reads_back)
{
    char folder[] = "/tmp/nw-topo-XXXXXX", path[128], there[128];
    struct nw_topo *live, *copy;

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/machine.json", folder);
    snprintf(there, sizeof there, "%s/no/such/folder.json", folder);
    cr_assert_eq(nw_topo_read_live(&live), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(nw_topo_save(live, path), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_topo_read_file(path, &copy), NW_OK, "%s", nw_last_error()->text);
    cr_expect_str_eq(copy->host, live->host);
    cr_expect_str_eq(copy->source, "live");
    cr_expect_eq(nw_topo_save(live, there), NW_EIO);
    cr_expect_eq(remove(path), 0);
    cr_expect_eq(rmdir(folder), 0, "something half-written was left");
    check_round_trip("live", live);
    nw_topo_free(live);
    nw_topo_free(copy);
}

#define HEAD    "{\"schema\": 1, \"kind\": \"topology\", \"sources\": [\"hwloc\"], \"gaps\": [], "
#define TAIL    "\"links\": [], \"findings\": []}"
#define MACHINE "{\"kind\": \"machine\", \"name\": \"machine\"}"

Test(topo_json, what_is_wrong_is_named)
{
    static const struct {
        const char *text;
        const char *in_error; /* all of these words, split at '|' */
    } rows[] = {
        {"{", "m.json:1|not valid JSON"},
        {"{}", "kind|missing"},
        {"[]", "no known format"},
        {"{\"kind\": \"record\"}", "kind|record|topology"},
        {"{\"kind\": \"topology\"}", "schema|missing"},
        {"{\"kind\": \"topology\", \"schema\": 2}", "schema|2|reads schema 1"},
        {"{\"kind\": \"topology\", \"schema\": \"1\"}", "schema|integer"},
        {"{\"kind\": \"topology\", \"kind\": \"topology\"}", "duplicate"},
        {HEAD TAIL, "nodes|missing"},
        {HEAD "\"nodes\": [], " TAIL, "nodes|empty"},
        {HEAD "\"nodes\": {}, " TAIL, "nodes|array"},
        {HEAD "\"nodes\": [1], " TAIL, "nodes[0]|object"},
        {HEAD "\"node\": [" MACHINE "], " TAIL, "node|nearest|nodes"},
        {HEAD "\"nodes\": [" MACHINE "], \"memory\": 3, " TAIL, "unknown key|memory"},
        {HEAD "\"nodes\": [{\"kind\": \"gpu\"}], " TAIL, "nodes[0]|gpu|first node"},
        {HEAD "\"nodes\": [" MACHINE ", {\"kind\": \"gpu\"}], " TAIL, "nodes[1]|parent -1"},
        {HEAD "\"nodes\": [" MACHINE ", {\"kind\": \"gpu\", \"parent\": 1}], " TAIL,
         "nodes[1]|parent 1"},
        {HEAD "\"nodes\": [" MACHINE ", {\"kind\": \"gpu\", \"parent\": -7}], " TAIL,
         "nodes[1]|parent|-7"},
        {HEAD "\"nodes\": [" MACHINE ", {\"kind\": \"gpus\", \"parent\": 0}], " TAIL,
         "nodes[1]|gpus|accepted|nic"},
        {HEAD "\"nodes\": [" MACHINE
              ", {\"kind\": \"gpu\", \"parent\": 0, \"modell\": \"x\"}], " TAIL,
         "nodes[1]|modell|model"},
        {HEAD "\"nodes\": [" MACHINE ", {\"kind\": \"gpu\", \"parent\": 0, \"numa\": 1.5}], " TAIL,
         "nodes[1]|numa|integer"},
        {HEAD "\"nodes\": [" MACHINE
              ", {\"kind\": \"gpu\", \"parent\": 0, \"memory_bytes\": -1}], " TAIL,
         "nodes[1]|memory_bytes|-1"},
        {HEAD "\"nodes\": [" MACHINE
              ", {\"kind\": \"nic\", \"parent\": 0, \"rate_bits_per_s\": -5}], " TAIL,
         "nodes[1]|rate_bits_per_s|-5"},
        {HEAD "\"nodes\": [" MACHINE
              ", {\"kind\": \"nic\", \"parent\": 0, \"rate_bits_per_s\": 1e400}], " TAIL,
         "not valid JSON"},
        {HEAD "\"nodes\": [" MACHINE ", {\"kind\": \"nic\", \"parent\": 0, \"port_up\": 2}], " TAIL,
         "port_up|2|0 to 1"},
        {HEAD "\"nodes\": [" MACHINE "], \"package_count\": 2, " TAIL, "package_count|2|0"},
        {HEAD "\"nodes\": [" MACHINE "], \"links\": [{\"kind\": \"nvlink\", \"a\": 0, \"b\": 9}], "
              "\"findings\": []}",
         "links[0]|9"},
        {HEAD "\"nodes\": [" MACHINE "], \"links\": [{\"kind\": \"string\", \"a\": 0, \"b\": 0}], "
              "\"findings\": []}",
         "links[0]|string|nvlink"},
        {HEAD "\"nodes\": [" MACHINE "], \"links\": [], \"findings\": [{\"severity\": \"bad\"}]}",
         "findings[0]|severity|bad|warning"},
        {HEAD "\"nodes\": [" MACHINE
              "], \"facts\": [{\"node\": 0, \"fact\": \"nvlink_active_count\", "
              "\"value\": 2.6e10}], " TAIL,
         "facts[0]|nvlink_active_count|no machine"},
        {HEAD "\"nodes\": [" MACHINE "], \"facts\": [{\"node\": 0, \"fact\": \"power_w\", "
              "\"value\": -3}], " TAIL,
         "facts[0]|power_w|-3"},
        {"{\"schema\": 1, \"kind\": \"topology\", \"sources\": [\"guess\"]}",
         "sources|guess|hwloc"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = NULL;
        char words[256], *rest = words, *word;

        cr_expect_eq(nw_topo_read_data(rows[i].text, strlen(rows[i].text), "m.json", &topo),
                     NW_EUSAGE, "row %zu was accepted: %s", i, rows[i].text);
        cr_expect_null(topo);
        snprintf(words, sizeof words, "m.json|%s", rows[i].in_error);
        while ((word = strsep(&rest, "|")) != NULL)
            cr_expect(strstr(nw_last_error()->text, word) != NULL, "row %zu: no \"%s\" in: %s", i,
                      word, nw_last_error()->text);
    }
}

Test(topo_json, smallest_file_is_accepted)
{
    static const char text[] = HEAD "\"nodes\": [" MACHINE "], " TAIL;
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_read_data(text, sizeof text - 1, "m.json", &topo), NW_OK, "%s",
                 nw_last_error()->text);
    cr_expect_eq(topo->node_count, 1);
    cr_expect_eq(topo->nodes[0].numa, -1);
    cr_expect_eq(topo->nodes[0].port_up, -1);
    cr_expect_eq(topo->nodes[0].parent, -1);
    nw_topo_free(topo);
}

/* From a file that somebody sent: no codes that move the cursor, no second line. */
Test(topo_json, findings_carry_no_control_characters)
{
    static const char text[] =
        HEAD "\"nodes\": [" MACHINE "], \"links\": [], \"findings\": [{\"severity\": \"failure\", "
             "\"code\": \"x\", \"where\": \"a\\u001b[31m\", \"text\": \"b\\u001b[2J\\nc\", "
             "\"remedy\": \"d\\r\", \"effect\": \"e\\u007f\"}]}";
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_read_data(text, sizeof text - 1, "m.json", &topo), NW_OK, "%s",
                 nw_last_error()->text);
    cr_assert_eq(topo->findings.count, 1);
    const struct nw_finding *finding = &topo->findings.items[0];
    const char *const texts[] = {finding->where, finding->text, finding->remedy, finding->effect};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *at = texts[i]; *at != '\0'; at++)
            cr_expect((unsigned char)*at >= 0x20 && *at != 0x7f, "text %zu: %d", i, *at);
    nw_topo_free(topo);
}
