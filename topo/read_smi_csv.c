/* nvidia-smi --query-gpu=… --format=csv: a line of column names, then one line a GPU. Without the
 * names the columns could be anything; they are taken from the command where it stands above. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/read_smi.h"

enum { MAX_CELLS = 512 };

struct csv {
    struct nw_smi *smi;
    struct nw_scan *text;
    char *names[MAX_CELLS];
    const char *units[MAX_CELLS]; /* inside `names`; "": none */
    size_t count;
    bool from_command; /* the names; a header may follow yet */
    bool apart;        /* a blank line came behind the rows: other text may follow */
    int elided;
};

/* Names that only a query has, one of which every useful query has. */
static const char *const known[] = {"name",
                                    "gpu_name",
                                    "index",
                                    "uuid",
                                    "gpu_uuid",
                                    "serial",
                                    "gpu_serial",
                                    "pci.bus_id",
                                    "gpu_bus_id",
                                    "timestamp",
                                    "driver_version",
                                    "count",
                                    "vbios_version",
                                    "memory.total",
                                    "memory.used",
                                    "pstate",
                                    "power.draw",
                                    "power.limit",
                                    "temperature.gpu",
                                    "utilization.gpu",
                                    "pcie.link.gen.current",
                                    "pcie.link.gen.max",
                                    "pcie.link.width.current",
                                    "pcie.link.width.max",
                                    "clocks.max.sm",
                                    "clocks.current.sm",
                                    "ecc.mode.current",
                                    "mig.mode.current",
                                    "persistence_mode",
                                    "compute_cap",
                                    "hostname"};

static bool is_known(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (nw_scan_same(name, known[i]))
            return true;
    return strncmp(name, "clocks_", 7) == 0 || strncmp(name, "ecc.errors.", 11) == 0 ||
           strncmp(name, "retired_pages.", 14) == 0 || strncmp(name, "remapped_rows.", 14) == 0;
}

/* Splits at commas, in place; all cells are counted, `max` kept. */
static size_t split(char *line, char **cells, size_t max)
{
    size_t count = 0;

    for (;;) {
        char *comma = strchr(line, ',');

        if (comma != NULL)
            *comma = '\0';
        if (count < max)
            cells[count] = nw_scan_trim(line);
        count++;
        if (comma == NULL)
            return count;
        line = comma + 1;
    }
}

/* The unit of "memory.total [MiB]" is cut off the name. */
static const char *cut_unit(char *name)
{
    char *open = strrchr(name, '['), *close;

    if (open == NULL || open == name)
        return "";
    close = strchr(open, ']');
    if (close == NULL || close[1] != '\0')
        return "";
    *open = *close = '\0';
    (void)nw_scan_trim(name);
    return open + 1;
}

/* A header has at least one known name and nothing but names: letters, digits, '.', '_'. */
static bool is_header(const char *line)
{
    char *copy = strdup(line), *cells[MAX_CELLS];
    bool header = false, other = false;
    size_t count;

    if (copy == NULL)
        return false;
    count = split(copy, cells, MAX_CELLS);
    for (size_t i = 0; i < count && i < MAX_CELLS; i++) {
        (void)cut_unit(cells[i]);
        header |= is_known(cells[i]);
        other |= cells[i][0] == '\0' ||
                 cells[i][strspn(cells[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789._")] != '\0';
    }
    free(copy);
    /* A lone "name" or "index" is a word of any text. */
    return header && !other && count <= MAX_CELLS && (count > 1 || strchr(line, '.') != NULL);
}

/* The field list of "nvidia-smi --query-gpu=a,b,c --format=…"; NULL: no such command. */
static char *command_fields(char *line)
{
    char *at = strstr(line, "--query-gpu=");

    if (at == NULL)
        return NULL;
    at += strlen("--query-gpu=");
    at += strspn(at, "\"'");
    at[strcspn(at, " \t\"'")] = '\0';
    return at[0] != '\0' ? at : NULL;
}

/* Values without names: an identity, or a product's name beside a number with its unit. */
static bool is_values(const char *line)
{
    static const char *const brands[] = {"NVIDIA ", "Tesla ", "GeForce ", "Quadro ", "GRID "};
    char *copy = strchr(line, ',') != NULL ? strdup(line) : NULL, *cells[MAX_CELLS];
    bool identity = false, product = false, unit = false;
    double number;
    size_t count;

    if (copy == NULL)
        return false;
    count = split(copy, cells, MAX_CELLS);
    for (size_t i = 0; i < count && i < MAX_CELLS; i++) {
        identity |= nw_smi_is_bus_id(cells[i]) ||
                    (nw_scan_starts(cells[i], "GPU-") && strlen(cells[i]) == 40);
        unit |= nw_scan_number(cells[i], "MiB", &number) ||
                nw_scan_number(cells[i], "%", &number) || nw_scan_number(cells[i], "W", &number);
        for (size_t b = 0; b < sizeof brands / sizeof *brands; b++)
            product |= nw_scan_starts(cells[i], brands[b]);
    }
    free(copy);
    return identity || (product && unit);
}

bool nw_is_smi_csv(const char *data, size_t length)
{
    struct nw_scan text;
    bool found = false;

    if (nw_scan_open(&text, data, length, "") != NW_OK)
        return false;
    while (!found && nw_scan_next(&text))
        found = strstr(text.line, "--query-gpu=") != NULL || is_header(text.line) ||
                is_values(text.line);
    nw_scan_close(&text);
    nw_clear_error();
    return found;
}

bool nw_is_smi_columns(const char *data, size_t length)
{
    struct nw_scan text;
    bool found = false;

    if (nw_scan_open(&text, data, length, "") != NW_OK)
        return false;
    while (!found && nw_scan_next(&text))
        found = strchr(text.line, ',') != NULL && is_header(text.line);
    nw_scan_close(&text);
    nw_clear_error();
    return found;
}

static void free_names(struct csv *csv)
{
    for (size_t i = 0; i < csv->count; i++)
        free(csv->names[i]);
    csv->count = 0;
}

static nw_rc take_names(struct csv *csv, char *line)
{
    char *cells[MAX_CELLS];
    const size_t count = split(line, cells, MAX_CELLS);

    if (count > MAX_CELLS)
        return nw_scan_fail(csv->text, "more than %d columns", MAX_CELLS);
    free_names(csv);
    for (size_t i = 0; i < count; i++) {
        csv->names[i] = strdup(cells[i]);
        if (csv->names[i] == NULL)
            return nw_fail(NW_ENOMEM, "%s: out of memory for a column", csv->smi->what);
        csv->count++;
        csv->units[i] = cut_unit(csv->names[i]);
    }
    return NW_OK;
}

/* With nounits the unit is in the column's name alone. */
static nw_rc take_cell(struct csv *csv, size_t column, const char *cell)
{
    char value[256];
    double number;

    if (csv->units[column][0] != '\0' && nw_scan_number(cell, NULL, &number)) {
        snprintf(value, sizeof value, "%s %s", cell, csv->units[column]);
        cell = value;
    }
    return nw_smi_value(csv->smi, NW_SMI_CSV, csv->names[column], cell);
}

static nw_rc take_row(struct csv *csv)
{
    char *cells[MAX_CELLS];
    size_t count;

    if (strchr(csv->text->line, ',') == NULL && csv->count > 1)
        return NW_OK; /* a prompt, a heading */
    count = split(csv->text->line, cells, MAX_CELLS);
    if (count != csv->count && csv->apart)
        return NW_OK;
    if (count != csv->count)
        return nw_findings_add(&csv->smi->topo->findings, NW_FINDING_WARN, "row-refused",
                               csv->smi->what, "give the whole output",
                               "line %d has %zu values, the line of names has %zu: left out",
                               csv->text->number, count, csv->count);
    NW_TRY(nw_smi_begin_gpu(csv->smi, NULL));
    for (size_t i = 0; i < count; i++)
        NW_TRY(take_cell(csv, i, cells[i]));
    return nw_smi_end_gpu(csv->smi);
}

static nw_rc take_line(struct csv *csv)
{
    char *line = csv->text->line, *fields;
    bool message;

    csv->apart |= nw_scan_blank(line) && nw_topo_count(csv->smi->topo, NW_NODE_GPU) > 0;
    if (nw_scan_blank(line) || nw_scan_starts(line, "#"))
        return NW_OK;
    if (nw_scan_elision(line)) {
        csv->elided += csv->count > 0;
        return NW_OK;
    }
    NW_TRY(nw_smi_message(csv->smi, line, &message));
    if (message)
        return NW_OK;
    fields = command_fields(line);
    if (fields != NULL && csv->count == 0) {
        csv->from_command = true;
        return take_names(csv, fields);
    }
    if (fields != NULL)
        return NW_OK;
    if ((csv->count == 0 || csv->from_command) && is_header(line)) {
        csv->from_command = false;
        return take_names(csv, line);
    }
    return csv->count > 0 ? take_row(csv) : NW_OK;
}

static nw_rc take_lines(struct csv *csv)
{
    while (nw_scan_next(csv->text))
        NW_TRY(take_line(csv));
    NW_TRY(csv->text->rc);
    if (csv->count == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: values of GPUs without the line of their names, so nobody can tell "
                       "what they are; give nvidia-smi --query-gpu=… --format=csv (without "
                       "noheader)",
                       csv->smi->what);
    if (nw_topo_count(csv->smi->topo, NW_NODE_GPU) == 0)
        return nw_fail(NW_EUSAGE, "%s: names of columns, but no line of a GPU with as many values",
                       csv->smi->what);
    if (csv->elided > 0)
        return nw_smi_cut(csv->smi, "lines of GPUs were left out (\"[...]\")");
    return NW_OK;
}

/* The name of a GPU is its index, where that was asked for. */
static void name_gpus(struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++) {
        const struct nw_fact *fact = nw_topo_fact(topo, (int)i, NW_FACT_GPU_INDEX);

        if (topo->nodes[i].kind == NW_NODE_GPU && fact != NULL)
            snprintf(topo->nodes[i].name, sizeof topo->nodes[i].name, "gpu%.0f", fact->number);
    }
}

nw_rc nw_read_smi_csv(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_smi smi;
    struct nw_scan text;
    struct csv csv = {.smi = &smi, .text = &text};
    nw_rc rc;

    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_smi_open(&smi, what, "nvidia-smi --query-gpu");
    if (rc == NW_OK) {
        rc = take_lines(&csv);
        if (rc == NW_OK)
            name_gpus(smi.topo);
        rc = nw_smi_close(&smi, rc, topo_out);
    }
    free_names(&csv);
    nw_scan_close(&text);
    return rc;
}
