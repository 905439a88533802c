/* The table of plain `nvidia-smi`, and nvidia-smi -L. Each GPU has two or three lines of three
 * cells, the same places since 2011; the widths and some headings changed. Long names are cut with
 * "...": such a name is no model. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "topo/read_smi.h"

enum { MAX_CELLS = 4, MAX_WORDS = 24 };

struct table {
    struct nw_smi *smi;
    struct nw_scan *text;
    bool in_gpus; /* below "|====", above the processes */
    int row;      /* of the current GPU: 1, 2, 3; 0: none open */
    bool elided;
};

bool nw_is_smi_grid(const char *data, size_t length)
{
    return nw_scan_has(data, length, 0, "NVIDIA-SMI ") &&
           nw_scan_has(data, length, 0, "Volatile Uncorr. ECC");
}

bool nw_is_smi_table(const char *data, size_t length)
{
    return nw_is_smi_grid(data, length) || nw_is_smi_message(data, length);
}

static size_t split(char *line, char **cells)
{
    size_t count = 0;

    line = nw_scan_trim(line);
    if (*line == '|')
        line++;
    while (count < MAX_CELLS) {
        char *bar = strchr(line, '|');

        if (bar == NULL)
            break;
        *bar = '\0';
        cells[count++] = nw_scan_trim(line);
        line = bar + 1;
    }
    return count;
}

/* --- the head --- */

static nw_rc take_version(struct table *table, const char *label, const char *path)
{
    const char *at = strstr(table->text->line, label);
    char value[32];
    size_t length;

    if (at == NULL)
        return NW_OK;
    at += strlen(label);
    at += strspn(at, " ");
    length = strcspn(at, " |\t");
    if (length == 0 || length >= sizeof value)
        return NW_OK;
    memcpy(value, at, length);
    value[length] = '\0';
    return nw_smi_value(table->smi, NW_SMI_TEXT, path, value);
}

static nw_rc take_head(struct table *table)
{
    NW_TRY(take_version(table, "Driver Version:", "Driver Version"));
    NW_TRY(take_version(table, "KMD Version:", "KMD Version"));
    NW_TRY(take_version(table, "CUDA Version:", "CUDA Version"));
    return take_version(table, "CUDA UMD Version:", "CUDA UMD Version");
}

/* --- the lines of a GPU --- */

/* "0  NVIDIA H100 80GB HBM3          On": number, name, persistence or Windows' driver model. */
static nw_rc take_name(struct table *table, char *cell)
{
    char *words[MAX_WORDS], name[128] = "";
    const size_t count = nw_scan_words(cell, words, MAX_WORDS);
    size_t end = count;

    if (count < 2 || count > MAX_WORDS)
        return NW_OK;
    NW_TRY(nw_smi_value(table->smi, NW_SMI_TEXT, "Persistence Mode", words[count - 1]));
    if (count > 2)
        end--;
    for (size_t i = 1; i < end; i++) {
        const size_t used = strlen(name);

        if (strstr(words[i], "...") != NULL)
            return nw_findings_add(&table->smi->topo->findings, NW_FINDING_INFO, "name-cut",
                                   table->smi->topo->nodes[table->smi->gpu].name,
                                   "give nvidia-smi -L or nvidia-smi -q as well",
                                   "the table cuts the GPU's name: \"%s ...\" could be several "
                                   "products",
                                   name);
        snprintf(name + used, sizeof name - used, "%s%s", used > 0 ? " " : "", words[i]);
    }
    return nw_smi_value(table->smi, NW_SMI_TEXT, "Product Name", name);
}

static nw_rc take_first(struct table *table, char **cells)
{
    char *words[MAX_WORDS];
    const size_t count = nw_scan_words(cells[1], words, MAX_WORDS);
    const char *bus_id = count > 0 && nw_smi_is_bus_id(words[0]) ? words[0] : NULL;
    uint64_t number;
    char digits[8];

    snprintf(digits, sizeof digits, "%.*s", (int)strspn(cells[0], "0123456789"), cells[0]);
    if (nw_parse_u64(digits, 0, NW_SMI_MAX_GPUS - 1, &number) != NW_OK)
        return nw_scan_fail(table->text, "\"%.20s\" is no number of a GPU", cells[0]);
    NW_TRY(nw_smi_begin_numbered(table->smi, (int)number));
    if (bus_id != NULL)
        NW_TRY(nw_smi_value(table->smi, NW_SMI_TEXT, "PCI/Bus Id", bus_id));
    NW_TRY(take_name(table, cells[0]));
    if (nw_scan_same(cells[2], "Off"))
        return nw_smi_value(table->smi, NW_SMI_TEXT, "ECC Mode/Current", "Disabled");
    if (isdigit((unsigned char)cells[2][0])) {
        NW_TRY(nw_smi_value(table->smi, NW_SMI_TEXT, "ECC Mode/Current", "Enabled"));
        return nw_smi_value(table->smi, NW_SMI_TEXT, "Volatile/Double Bit/Total", cells[2]);
    }
    return nw_smi_value(table->smi, NW_SMI_TEXT, "ECC Errors", cells[2]);
}

/* "72W /  700W" or "1MiB / 81559MiB" to the values of two paths. */
static nw_rc take_pair(struct table *table, char *text, const char *unit, const char *first,
                       const char *second)
{
    char *slash = strchr(text, '/'), value[2][40];

    if (slash == NULL)
        return NW_OK;
    *slash = '\0';
    for (int i = 0; i < 2; i++) {
        const char *part = nw_scan_trim(i == 0 ? text : slash + 1);
        const size_t digits = strspn(part, "0123456789.");

        snprintf(value[i], sizeof value[i], "%.*s %s", (int)(digits < 20 ? digits : 20), part,
                 unit);
        if (digits == 0)
            snprintf(value[i], sizeof value[i], "%.30s", part);
    }
    NW_TRY(nw_smi_value(table->smi, NW_SMI_TEXT, first, value[0]));
    return nw_smi_value(table->smi, NW_SMI_TEXT, second, value[1]);
}

/* "N/A   27C    P0             72W /  700W": fan, temperature, state, power. */
static nw_rc take_second(struct table *table, char **cells)
{
    static const char *const modes[][2] = {{"E. Process", "Exclusive_Process"},
                                           {"E. Thread", "Exclusive_Thread"},
                                           {"Prohibited", "Prohibited"},
                                           {"Default", "Default"}};
    char *power = strstr(cells[0], " P"), *at;
    char value[16];

    if (nw_scan_starts(cells[0], "ERR!"))
        NW_TRY(nw_smi_value(table->smi, NW_SMI_TEXT, "Fan Speed", "ERR!"));
    at = strstr(cells[0], "C ");
    if (at != NULL && at > cells[0] && isdigit((unsigned char)at[-1])) {
        const char *start = at;

        while (start > cells[0] && isdigit((unsigned char)start[-1]))
            start--;
        snprintf(value, sizeof value, "%.*s C", (int)(at - start < 6 ? at - start : 6), start);
        NW_TRY(nw_smi_value(table->smi, NW_SMI_TEXT, "GPU Current Temp", value));
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strstr(cells[2], modes[i][0]) != NULL)
            NW_TRY(nw_smi_value(table->smi, NW_SMI_TEXT, "Compute Mode", modes[i][1]));
    NW_TRY(take_pair(table, cells[1], "MiB", "FB Memory Usage/Used", "FB Memory Usage/Total"));
    if (power == NULL)
        return NW_OK;
    power += 2 + strspn(power + 2, "0123456789");
    return take_pair(table, power, "W", "Power Readings/Power Draw",
                     "Power Readings/Enforced Power Limit");
}

static nw_rc take_gpu_line(struct table *table)
{
    char *cells[MAX_CELLS];

    if (split(table->text->line, cells) != 3)
        return NW_OK;
    if (table->row == 0 && isdigit((unsigned char)cells[0][0])) {
        table->row = 1;
        return take_first(table, cells);
    }
    if (table->row == 1) {
        table->row = 2;
        return take_second(table, cells);
    }
    if (table->row == 2) {
        table->row = 3;
        return nw_smi_value(table->smi, NW_SMI_TEXT, "MIG Mode/Current", cells[2]);
    }
    return NW_OK;
}

static nw_rc take_line(struct table *table)
{
    char *line = nw_scan_trim(table->text->line);
    bool message;

    if (nw_scan_elision(line)) {
        table->elided |= table->in_gpus;
        return NW_OK;
    }
    NW_TRY(nw_smi_message(table->smi, line, &message));
    if (message)
        return NW_OK;
    if (strstr(line, "Processes:") != NULL || strstr(line, "MIG devices:") != NULL ||
        strstr(line, "Compute processes:") != NULL) {
        table->in_gpus = false;
        return nw_smi_end_gpu(table->smi);
    }
    if (strstr(line, "NVIDIA-SMI ") != NULL)
        return nw_topo_count(table->smi->topo, NW_NODE_GPU) == 0 ? take_head(table) : NW_OK;
    if (nw_scan_starts(line, "|===")) {
        table->in_gpus = nw_topo_count(table->smi->topo, NW_NODE_GPU) == 0;
        return NW_OK;
    }
    if (table->in_gpus && (nw_scan_starts(line, "+--") || nw_scan_starts(line, "|--"))) {
        table->row = 0;
        return nw_smi_end_gpu(table->smi);
    }
    return table->in_gpus && line[0] == '|' ? take_gpu_line(table) : NW_OK;
}

static nw_rc take_lines(struct table *table)
{
    struct nw_topo *topo = table->smi->topo;

    while (nw_scan_next(table->text))
        NW_TRY(take_line(table));
    NW_TRY(table->text->rc);
    if (nw_topo_count(topo, NW_NODE_GPU) == 0)
        return nw_fail(NW_EUSAGE, "%s: the head of nvidia-smi's table, but no line of a GPU",
                       table->smi->what);
    if (table->elided)
        return nw_smi_cut(table->smi, "lines were left out (\"[...]\")");
    /* A whole table closes each GPU with a rule. */
    if (table->row != 0)
        return nw_smi_cut(table->smi, "the table ends within a GPU: it is cut off");
    return NW_OK;
}

nw_rc nw_read_smi_table(const char *data, size_t length, const char *what,
                        struct nw_topo **topo_out)
{
    struct nw_smi smi;
    struct nw_scan text;
    struct table table = {.smi = &smi, .text = &text};
    nw_rc rc;

    if (!nw_is_smi_grid(data, length))
        NW_TRY(nw_smi_refuse_message(data, length, what));
    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_smi_open(&smi, what, "nvidia-smi");
    if (rc == NW_OK) {
        rc = take_lines(&table);
        rc = nw_smi_close(&smi, rc, topo_out);
    }
    nw_scan_close(&text);
    return rc;
}

/* --- nvidia-smi -L --- */

bool nw_is_smi_list(const char *data, size_t length)
{
    struct nw_scan text;
    struct nw_smi_listed listed;
    bool found = false;

    if (!nw_scan_has(data, length, 0, "(UUID:") || nw_scan_open(&text, data, length, "") != NW_OK)
        return false;
    while (!found && nw_scan_next(&text))
        found = nw_smi_listed(text.line, &listed);
    nw_scan_close(&text);
    nw_clear_error();
    return found;
}

static nw_rc take_listed(struct nw_smi *smi, const struct nw_scan *text)
{
    struct nw_smi_listed listed;
    bool message;

    NW_TRY(nw_smi_message(smi, text->line, &message));
    if (!message && strstr(text->line, "MIG ") != NULL && strstr(text->line, "(UUID:") != NULL &&
        smi->gpu != 0)
        return nw_smi_value(smi, NW_SMI_TEXT, "MIG Mode/Current", "Enabled");
    if (message || !nw_smi_listed(text->line, &listed))
        return NW_OK;
    NW_TRY(nw_smi_begin_numbered(smi, listed.number));
    NW_TRY(nw_smi_value(smi, NW_SMI_TEXT, "Product Name", listed.model));
    return nw_smi_value(smi, NW_SMI_TEXT, "GPU UUID", listed.uuid);
}

nw_rc nw_read_smi_list(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_smi smi;
    struct nw_scan text;
    nw_rc rc;

    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_smi_open(&smi, what, "nvidia-smi -L");
    if (rc == NW_OK) {
        while (rc == NW_OK && nw_scan_next(&text))
            rc = take_listed(&smi, &text);
        rc = nw_smi_close(&smi, rc != NW_OK ? rc : text.rc, topo_out);
    }
    nw_scan_close(&text);
    return rc;
}
