/* nvidia-smi topo -m, -mp, -p2p: a line of names, then a row for each. Columns are told apart by
 * their place and never by their names, which old drivers cut to equal ones; a row counts only when
 * the "X" of the device itself stands in its place. A row that does not fit is refused and said. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/read_smi_matrix.h"

static bool ends_word(char letter)
{
    return letter == '\0' || letter == ' ' || letter == '\t';
}

/* "GPU12": its number; -1: no such word. */
static int gpu_number(const char *word, size_t length)
{
    char digits[8];
    uint64_t number;

    if (length < 4 || length > 8 || strncmp(word, "GPU", 3) != 0)
        return -1;
    snprintf(digits, sizeof digits, "%.*s", (int)length - 3, word + 3);
    if (nw_parse_u64(digits, 0, NW_SMI_MAX_GPUS - 1, &number) != NW_OK) {
        nw_clear_error();
        return -1;
    }
    return (int)number;
}

/* A NIC's name has a digit or '_' ("mlx5_0", "NIC3", "rdmap16s27"); words of a sentence have none.
 */
static bool is_device(const char *word, size_t length)
{
    bool mark = false;

    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)word[i]) && strchr("_.:-", word[i]) == NULL)
            return false;
        mark |= isdigit((unsigned char)word[i]) || word[i] == '_';
    }
    return mark && length > 0 && length < 48 && isalpha((unsigned char)word[0]);
}

static const char *next_word(const char *at, size_t *length_out)
{
    at += strspn(at, " \t");
    *length_out = strcspn(at, " \t");
    return at;
}

/* A row's beginning: a GPU's label, then a cell. */
static bool is_row(const char *line)
{
    struct nw_smi_cell cell;
    size_t length;
    const char *word = next_word(line, &length);

    if (gpu_number(word, length) < 0)
        return false;
    word = next_word(word + length, &length);
    return nw_smi_cell_of(word, &cell) > 0;
}

static bool is_header(const char *line)
{
    size_t length, count = 0;
    const char *word = next_word(line, &length);

    if (gpu_number(word, length) < 0 || is_row(line))
        return false;
    for (; *word != '\0'; word = next_word(word + length, &length), count++) {
        if (nw_scan_starts(word, "CPU Aff") || nw_scan_starts(word, "NUMA Aff") ||
            nw_scan_starts(word, "GPU NUMA"))
            return true;
        if (!is_device(word, length))
            return false;
    }
    return count > 0;
}

/* The line without what mails ("> ") and Markdown tables ("|") put around it. */
static char *plain(char *line)
{
    for (char *mark = line; *mark == '>' || *mark == ' ' || *mark == '\t'; mark++)
        *mark = *mark == '>' ? ' ' : *mark;
    for (char *bar = line; (bar = strchr(bar, '|')) != NULL;)
        *bar = ' ';
    return line;
}

bool nw_is_smi_topo(const char *data, size_t length)
{
    return nw_is_smi_foreign(data, length) || nw_is_smi_matrix(data, length);
}

bool nw_is_smi_matrix(const char *data, size_t length)
{
    struct nw_scan text;
    bool found = false;

    if (!nw_scan_has(data, length, 0, "GPU") || nw_scan_open(&text, data, length, "") != NW_OK)
        return false;
    while (!found && nw_scan_next(&text)) {
        const char *line = plain(text.line);

        found = is_row(line) || (is_header(line) && strstr(line, "Affinity") != NULL);
    }
    nw_scan_close(&text);
    nw_clear_error();
    return found;
}

/* --- the line of names --- */

static nw_rc add_column(struct nw_smi_matrix *matrix, const char *word, size_t length)
{
    struct nw_smi_column *column;

    if (matrix->count == NW_SMI_MAX_COLUMNS)
        return nw_scan_fail(matrix->text, "more than %d devices in one matrix", NW_SMI_MAX_COLUMNS);
    if (matrix->count == matrix->capacity) {
        const size_t capacity = matrix->capacity > 0 ? 2 * matrix->capacity : 16;
        struct nw_smi_column *columns = realloc(matrix->columns, capacity * sizeof *columns);

        if (columns == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for %zu columns", capacity);
        matrix->columns = columns;
        matrix->capacity = capacity;
    }
    column = &matrix->columns[matrix->count++];
    *column = (struct nw_smi_column){.number = gpu_number(word, length)};
    snprintf(column->label, sizeof column->label, "%.*s", (int)length, word);
    return NW_OK;
}

/* Column of the screen at which `at` stands. */
static int screen_at(const char *line, const char *at)
{
    int column = 0;

    for (; line < at; line++)
        column = *line == '\t' ? (column / 8 + 1) * 8 : column + 1;
    return column;
}

static nw_rc take_header(struct nw_smi_matrix *matrix)
{
    static const char *const headings[] = {"CPU Affinity", "NUMA Affinity", "GPU NUMA ID"};
    bool *const has[] = {&matrix->has_cpu, &matrix->has_numa, &matrix->has_memory};
    int *const at[] = {&matrix->cpu_at, &matrix->numa_at, &matrix->memory_at};
    const char *line = matrix->text->line, *word, *last = line;
    size_t length;

    for (word = next_word(line, &length); *word != '\0'; word = next_word(word + length, &length)) {
        if (!is_device(word, length) || nw_scan_starts(word, "GPU NUMA"))
            break;
        NW_TRY(add_column(matrix, word, length));
        last = word;
    }
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++) {
        const char *heading = strstr(word, headings[i]);

        *has[i] = heading != NULL;
        *at[i] = heading != NULL ? screen_at(line, heading) - screen_at(line, last) : 0;
    }
    matrix->cells = calloc(matrix->count * matrix->count, sizeof *matrix->cells);
    if (matrix->cells == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for a matrix of %zu devices", matrix->count);
    return nw_smi_matrix_open(matrix);
}

/* --- a row --- */

__attribute__((format(printf, 3, 4))) static nw_rc refuse_row(struct nw_smi_matrix *matrix,
                                                              const char *label, const char *format,
                                                              ...)
{
    char reason[160];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (matrix->refused[0] == '\0')
        snprintf(matrix->refused, sizeof matrix->refused, "row %.40s (line %d): %.100s", label,
                 matrix->text->number, reason);
    return nw_findings_add(&matrix->smi->topo->findings, NW_FINDING_WARN, "row-refused",
                           matrix->smi->what, "give the output as nvidia-smi printed it",
                           "row %s (line %d) is left out: %s", label, matrix->text->number, reason);
}

/* Can the word be read as cells without a separator ("NODENODE")? Behind the row's last cell, of
 * `left`, an affinity may follow ("SYS0-31"); of "NV120-31" nobody can tell. */
static bool splits(const char *word, size_t left)
{
    struct nw_smi_cell cell = {.kind = NW_CELL_NONE};

    while (!ends_word(*word)) {
        const size_t length = left > 0 ? nw_smi_cell_of(word, &cell) : 0;

        if (length == 0)
            return left == 0 && isdigit((unsigned char)*word) && cell.nvlinks == 0;
        word += length;
        left--;
    }
    return true;
}

/* A word that could be a cell of a later driver: no number, no list. */
static bool is_other(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)word[i]) && word[i] != '/' && word[i] != '*')
            return false;
    return length > 0 && length <= 8 && isalpha((unsigned char)word[0]);
}

/* One of `left` cells of the row at *at; false: something that is no cell. */
static bool take_cell(const char **at, size_t left, struct nw_smi_cell *cell_out)
{
    size_t length, whole;

    *at = next_word(*at, &whole);
    length = nw_smi_cell_of(*at, cell_out);
    if (length > 0 && splits(*at, left)) {
        *at += length;
        return true;
    }
    if (!is_other(*at, whole))
        return false;
    *cell_out = (struct nw_smi_cell){.kind = NW_CELL_UNKNOWN};
    *at += whole;
    return true;
}

static bool is_label(const struct nw_smi_matrix *matrix, const char *word, size_t length)
{
    for (size_t i = 0; i < matrix->count; i++)
        if (strlen(matrix->columns[i].label) == length &&
            memcmp(matrix->columns[i].label, word, length) == 0)
            return true;
    return false;
}

/* Is the next word one more cell? */
static bool has_cell(const char *at)
{
    struct nw_smi_cell cell;
    size_t length;

    at = next_word(at, &length);
    return length > 0 && nw_smi_cell_of(at, &cell) == length;
}

/* The place of the one X; -1: none, or several. */
static int self_of(const struct nw_smi_cell *cells, size_t count)
{
    int self = -1;

    for (size_t i = 0; i < count; i++)
        if (cells[i].kind == NW_CELL_SELF) {
            if (self >= 0)
                return -1;
            self = (int)i;
        }
    return self;
}

/* A file that ends in mid-cell leaves "NV1" of "NV12". */
static void drop_torn(const struct nw_smi_matrix *matrix, const char *at, struct nw_smi_cell *last)
{
    if (*at == '\0' && matrix->text->end == matrix->text->length && matrix->has_cpu &&
        last->kind == NW_CELL_CLASS && last->nvlinks > 0)
        last->kind = NW_CELL_NONE;
}

static nw_rc take_row(struct nw_smi_matrix *matrix, const char *label, size_t label_length)
{
    const char *at = label + label_length, *line = matrix->text->line, *last = at;
    struct nw_smi_cell cells[NW_SMI_MAX_COLUMNS];
    char name[48];
    int self;

    snprintf(name, sizeof name, "%.*s", (int)label_length, label);
    for (size_t i = 0; i < matrix->count; i++) {
        last = at + strspn(at, " \t");
        if (!take_cell(&at, matrix->count - i, &cells[i]))
            return refuse_row(matrix, name, "%zu cells for the %zu devices of the line of names", i,
                              matrix->count);
    }
    if (has_cell(at))
        return refuse_row(matrix, name, "more cells than the %zu devices of the line of names",
                          matrix->count);
    self = self_of(cells, matrix->count);
    if (self < 0)
        return refuse_row(matrix, name, "it has no \"X\", or several");
    if (strcmp(matrix->columns[self].label, name) != 0)
        return refuse_row(matrix, name, "its \"X\" stands below %s", matrix->columns[self].label);
    if (matrix->columns[self].seen) {
        matrix->again = true; /* printed again, by watch or -l */
        return NW_OK;
    }
    drop_torn(matrix, at, &cells[matrix->count - 1]);
    memcpy(&matrix->cells[(size_t)self * matrix->count], cells, matrix->count * sizeof *cells);
    matrix->columns[self].seen = true;
    matrix->row_count++;
    if (matrix->columns[self].number < 0)
        return NW_OK;
    return nw_smi_matrix_affinity(matrix, (size_t)self, at,
                                  screen_at(line, at) - screen_at(line, last));
}

/* --- the other lines --- */

static void take_command(struct nw_smi_matrix *matrix, const char *line)
{
    const char *p2p = strstr(line, "-p2p");

    if (strstr(line, "topo") == NULL)
        return;
    if (strstr(line, " -mp") != NULL || strstr(line, "--matrix_pci") != NULL)
        matrix->pcie_only = true;
    if (p2p != NULL) {
        p2p += 4 + strspn(p2p + 4, " =");
        matrix->is_p2p = true;
        matrix->capability = *p2p;
    }
}

static void take_legend(struct nw_smi_matrix *matrix, char *line)
{
    struct nw_scan_pair pair;

    matrix->has_legend |= nw_scan_starts(line, "Legend");
    matrix->legend_has_nvlink |= nw_scan_starts(line, "NV#");
    if (!nw_scan_pair(line, &pair) || pair.value[0] == '\0')
        return;
    for (size_t i = 0; i < matrix->count; i++)
        if (strcmp(matrix->columns[i].label, pair.key) == 0 && matrix->columns[i].number < 0)
            snprintf(matrix->columns[i].real, sizeof matrix->columns[i].real, "%.*s",
                     (int)strcspn(pair.value, " \t"), pair.value);
}

static nw_rc take_line(struct nw_smi_matrix *matrix)
{
    char *line = nw_scan_trim(plain(matrix->text->line));
    size_t length;
    const char *word = next_word(line, &length);
    bool message;

    if (nw_scan_elision(line)) {
        matrix->elided |= matrix->count > 0;
        return NW_OK;
    }
    NW_TRY(nw_smi_message(matrix->smi, line, &message));
    if (message)
        return NW_OK;
    if (matrix->count == 0) {
        take_command(matrix, line);
        return is_header(line) ? take_header(matrix) : NW_OK;
    }
    if (is_header(line)) {
        matrix->again = true;
        return NW_OK;
    }
    if (is_label(matrix, word, length))
        return take_row(matrix, word, length);
    take_legend(matrix, line);
    return NW_OK;
}

static nw_rc take_lines(struct nw_smi_matrix *matrix)
{
    while (!matrix->again && nw_scan_next(matrix->text))
        NW_TRY(take_line(matrix));
    NW_TRY(matrix->text->rc);
    if (matrix->count == 0)
        return nw_fail(NW_EUSAGE,
                       "%s: rows of a matrix of nvidia-smi topo, but not the line of names above "
                       "them; give it whole",
                       matrix->smi->what);
    if (matrix->row_count == 0)
        return nw_fail(
            NW_EUSAGE,
            "%s: the line of names of nvidia-smi topo, and no row that fits it%s%s; give "
            "the output as it was printed",
            matrix->smi->what, matrix->refused[0] != '\0' ? ": " : "", matrix->refused);
    return nw_smi_matrix_close(matrix);
}

nw_rc nw_read_smi_topo(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_smi smi;
    struct nw_scan text;
    struct nw_smi_matrix matrix = {.smi = &smi, .text = &text};
    nw_rc rc;

    NW_TRY(nw_smi_refuse_foreign(data, length, what));
    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_smi_open(&smi, what, "nvidia-smi topo");
    if (rc == NW_OK) {
        rc = take_lines(&matrix);
        rc = nw_smi_close(&smi, rc, topo_out);
    }
    nw_smi_matrix_free(&matrix);
    nw_scan_close(&text);
    return rc;
}
