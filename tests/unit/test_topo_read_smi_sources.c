/* The right reading of each file as tests/field/SOURCES.tsv has it, in its own words: counted there
 * by another program over the text, here over the topology. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "tests/unit/topo_expect.h"
#include "topo/nvml_api.h"

/* The value of "key=" in "a=1; key=2; …", up to the next ';'. */
static bool value_of(const char *reading, const char *key, char value[200])
{
    const size_t length = strlen(key);

    for (const char *at = reading; (at = strstr(at, key)) != NULL; at += length)
        if ((at == reading || at[-1] == ' ') && at[length] == '=') {
            at += length + 1;
            snprintf(value, 200, "%.*s", (int)strcspn(at, ";"), at);
            return true;
        }
    return false;
}

static int gpu(const struct nw_topo *topo, int number)
{
    char name[16];

    snprintf(name, sizeof name, "gpu%d", number);
    return expect_node(topo, name);
}

/* --- topom --- */

/* Cells of a word in the rows of the first `rows` GPUs. */
static int cells_of(const struct nw_topo *topo, int rows, const char *word)
{
    int count = 0;

    for (int row = 0; row < rows; row++)
        for (size_t i = 1; i < topo->node_count; i++) {
            char text[16];

            if ((int)i != gpu(topo, row))
                count += strcmp(expect_class(expect_stated(topo, gpu(topo, row), (int)i), text),
                                word) == 0;
        }
    return count;
}

/* "PIX", "NV12", "X": other statements about a pair ("OK", words) are none. */
static bool is_class(const char *value)
{
    for (int i = NW_CLASS_SELF; i < NW_CLASS_COUNT; i++)
        if (i == NW_CLASS_NV ? strncmp(value, "NV", 2) == 0
                             : strcmp(value, nw_class_name((nw_class)i)) == 0)
            return true;
    return false;
}

static void check_levels(const struct nw_topo *topo, int rows, char *levels, const char *file)
{
    int merged = 0;

    for (char *rest = levels, *word; (word = strsep(&rest, ",")) != NULL;)
        if (strncmp(word, "NODENODEx", 9) == 0)
            merged += 2 * atoi(word + 9);
        else if (strncmp(word, "NODEx", 5) == 0)
            merged += atoi(word + 5);
        else if (strncmp(word, "OKx", 3) == 0) {
            double peers = 0;

            for (int i = 0; i < rows; i++)
                peers += nw_topo_number(topo, gpu(topo, i), NW_FACT_PEERS);
            cr_expect_eq(peers, atoi(word + 3), "%s: %g pairs are OK", file, peers);
        } else {
            const int expected = atoi(strrchr(word, 'x') + 1);

            *strrchr(word, 'x') = '\0';
            cr_expect_eq(cells_of(topo, rows, word), expected, "%s: %d cells are %s, not %d", file,
                         cells_of(topo, rows, word), word, expected);
        }
    cr_expect_eq(cells_of(topo, rows, "NODE"), merged, "%s: %d cells are NODE, not %d", file,
                 cells_of(topo, rows, "NODE"), merged);
}

static void check_matrix(const struct nw_topo *topo, const char *reading, const char *file)
{
    char value[200], text[16];
    int rows, a, b, used;

    if (!value_of(reading, "gpu_rows", value))
        return;
    rows = atoi(value);
    cr_assert_geq(nw_topo_count(topo, NW_NODE_GPU), rows, "%s", file);
    if (value_of(reading, "levels", value))
        check_levels(topo, rows, value, file);
    for (const char *at = reading; (at = strstr(at, "GPU")) != NULL; at += 3) {
        if (sscanf(at, "GPU%d-GPU%d%n", &a, &b, &used) != 2)
            continue;
        used++; /* '=' of what was counted, a blank in what was written */
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at + used, " ;,"), at + used);
        if (is_class(value))
            cr_expect_str_eq(expect_class(expect_stated(topo, gpu(topo, a), gpu(topo, b)), text),
                             value, "%s: GPU%d-GPU%d is %s, not %s", file, a, b, text, value);
    }
    /* the file with cells grown together has one word less in that row */
    if (value_of(reading, "cells in GPU0 row", value))
        cr_expect_eq((int)topo->node_count - 1, atoi(value) + (strstr(reading, "NODENODE") != NULL),
                     "%s", file);
}

/* --- smi --- */

static int with_pcie(const struct nw_topo *topo, bool widths, int max, int now)
{
    int count = 0;

    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_topo_node *node = &topo->nodes[i];

        if (node->kind != NW_NODE_GPU)
            continue;
        if (widths)
            count += node->link_max_lanes == max && node->link_lanes == now;
        else
            count += nw_topo_number(topo, (int)i, NW_FACT_LINK_MAX_GENERATION) == max &&
                     nw_topo_number(topo, (int)i, NW_FACT_LINK_GENERATION) == now;
    }
    return count;
}

static void check_pcie(const struct nw_topo *topo, char *list, bool widths, const char *file)
{
    int max, now, count;

    for (char *rest = list, *word; (word = strsep(&rest, ",")) != NULL;) {
        cr_assert_eq(sscanf(word, " %d/%d x%d", &max, &now, &count), 3, "%s: \"%s\"", file, word);
        cr_expect_eq(with_pcie(topo, widths, max, now), count, "%s: %d GPUs have %d/%d", file,
                     with_pcie(topo, widths, max, now), max, now);
    }
}

static void check_throttle(const struct nw_topo *topo, char *list, const char *file)
{
    static const struct {
        const char *name;
        unsigned bit;
    } reasons[] = {{"HW Slowdown", NW_THROTTLE_HARDWARE},
                   {"HW Power Brake Slowdown", NW_THROTTLE_POWER_BRAKE},
                   {"HW Thermal Slowdown", NW_THROTTLE_HARDWARE_HEAT},
                   {"SW Power Cap", NW_THROTTLE_POWER_CAP},
                   {"SW Thermal Slowdown", NW_THROTTLE_HEAT}};

    for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++) {
        const char *at = strstr(list, reasons[r].name);
        int count = 0, expected = 0;

        if (at != NULL)
            expected = atoi(at + strlen(reasons[r].name) + 2);
        for (size_t i = 0; i < topo->node_count; i++) {
            const double bits = nw_topo_number(topo, (int)i, NW_FACT_THROTTLE);

            count += !isnan(bits) && ((unsigned)bits & reasons[r].bit) != 0;
        }
        cr_expect_eq(count, expected, "%s: %s on %d GPUs, not %d", file, reasons[r].name, count,
                     expected);
    }
}

/* "3/3/8x/16x": generation now and at most, lanes now and at most; '?': not in the file. */
static void check_xml_pcie(const struct nw_topo *topo, const char *value, const char *file)
{
    char text[80], numbers[4][16];
    const double facts[] = {nw_topo_number(topo, 1, NW_FACT_LINK_GENERATION),
                            nw_topo_number(topo, 1, NW_FACT_LINK_MAX_GENERATION)};

    for (int i = 0; i < 2; i++)
        snprintf(numbers[i], sizeof numbers[i], isnan(facts[i]) ? "?" : "%.0f", facts[i]);
    for (int i = 0; i < 2; i++) {
        const int lanes = i == 0 ? topo->nodes[1].link_lanes : topo->nodes[1].link_max_lanes;

        snprintf(numbers[2 + i], sizeof numbers[2 + i], lanes > 0 ? "%dx" : "?", lanes);
    }
    snprintf(text, sizeof text, "%s/%s/%s/%s", numbers[0], numbers[1], numbers[2], numbers[3]);
    cr_expect_str_eq(text, value, "%s: pcie is %s, not %s", file, text, value);
}

static void check_query(const struct nw_topo *topo, const char *reading, const char *file)
{
    char value[200];

    if (value_of(reading, "attached", value))
        cr_expect_eq(nw_topo_number(topo, 0, NW_FACT_GPUS_ATTACHED), atof(value), "%s", file);
    if (value_of(reading, "sections", value) || value_of(reading, "gpus", value))
        cr_expect_eq(nw_topo_count(topo, NW_NODE_GPU), atoi(value), "%s", file);
    if (value_of(reading, "name", value))
        cr_expect_str_eq(topo->nodes[1].model, value, "%s", file);
    if (value_of(reading, "driver", value))
        cr_expect_str_eq(nw_topo_text(topo, 0, NW_FACT_DRIVER), value, "%s", file);
    if (value_of(reading, "gen max/cur", value)) {
        check_pcie(topo, value, false, file);
        value[0] = '\0';
        value_of(reading, "throttle", value);
        check_throttle(topo, value, file);
    }
    if (value_of(reading, "width max/cur", value))
        check_pcie(topo, value, true, file);
    if (value_of(reading, "pcie", value))
        check_xml_pcie(topo, value, file);
    if (value_of(reading, "mig", value) && strcmp(value, "N/A") == 0)
        cr_expect(isnan(nw_topo_number(topo, 1, NW_FACT_MIG)), "%s", file);
}

/* --- nvlink --- */

/* "GPU3: 4 active x 25.781 GB/s, 2 inactive" */
static void check_links(const struct nw_topo *topo, const char *at, const char *file)
{
    int number, active, inactive = 0, checked = 0;
    double rate = NAN;

    for (; (at = strstr(at, "GPU")) != NULL; at += 3) {
        const char *down;
        int node;

        if (sscanf(at, "GPU%d: %d active x %lf", &number, &active, &rate) < 2)
            continue;
        down = strstr(at, " inactive");
        inactive = down != NULL && down > at + 2 ? atoi(down - 1) : 0;
        node = gpu(topo, number);
        cr_assert_geq(node, 0, "%s: no gpu%d", file, number);
        checked++;
        if (isnan(nw_topo_number(topo, node, NW_FACT_NVLINK_COUNT))) {
            char cut[] = "finding file-cut"; /* the list is not whole: no count then */

            expect_statement(topo, cut, file);
        } else {
            cr_expect_eq(nw_topo_number(topo, node, NW_FACT_NVLINK_COUNT), active, "%s", file);
            if (active > 0)
                cr_expect_eq(nw_topo_number(topo, node, NW_FACT_NVLINK_INACTIVE_COUNT), inactive,
                             "%s", file);
        }
        if (active > 0)
            cr_expect_float_eq(nw_topo_number(topo, node, NW_FACT_NVLINK_RATE), rate * 1e9, 1e3,
                               "%s", file);
    }
    cr_expect(checked > 0, "%s: nothing checked", file);
}

/* --- the list --- */

static bool check_file(char *line)
{
    char *file = strsep(&line, "\t"), *fields[6], path[1100];
    struct nw_topo *topo = NULL;

    for (int i = 0; i < 6; i++)
        fields[i] = strsep(&line, "\t");
    if (fields[4] == NULL || strchr(file, '/') == NULL ||
        (strcmp(fields[1], "topom") != 0 && strcmp(fields[1], "smi") != 0 &&
         strcmp(fields[1], "nvlink") != 0))
        return false;
    file = strchr(file, '/') + 1;
    snprintf(path, sizeof path, "%s/tests/field/%s", NW_SOURCE_DIR, file);
    if (nw_topo_read_file(path, &topo) != NW_OK) {
        cr_expect(strstr(fields[4], "refuses") != NULL || strstr(fields[4], "not NVIDIA") != NULL,
                  "%s was refused: %s", file, nw_last_error()->text);
        return true;
    }
    cr_expect(topo->gaps & NW_TOPO_PARTIAL, "%s", file);
    if (strcmp(fields[1], "topom") == 0)
        check_matrix(topo, fields[4], file);
    else if (strcmp(fields[1], "smi") == 0)
        check_query(topo, fields[4], file);
    else
        check_links(topo, strstr(fields[4], "links="), file);
    nw_topo_free(topo);
    return true;
}

Test(topo_read_smi_sources, each_file_is_read_as_its_source_says)
{
    char *data, *rest, *line;
    size_t length;
    int count = 0;

    cr_assert_eq(nw_file_read(NW_SOURCE_DIR "/tests/field/SOURCES.tsv", 1 << 24, &data, &length),
                 NW_OK);
    for (rest = data; (line = strsep(&rest, "\n")) != NULL;)
        count += check_file(line);
    free(data);
    cr_expect_geq(count, 58, "%d files", count);
}
