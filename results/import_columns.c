#include <ctype.h>
#include <math.h>
#include <string.h>

#include "results/import_kit.h"

/* Bars stand between the cells of some tables. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '|';
}

static struct nw_slice trim_cells(struct nw_slice text)
{
    while (text.length > 0 && is_blank(text.at[0]))
        text.at++, text.length--;
    while (text.length > 0 && is_blank(text.at[text.length - 1]))
        text.length--;
    return text;
}

/* --- header --- */

/* The title that `text` begins with; the longest of several. */
static const struct nw_imp_title *title_of(struct nw_slice text, const struct nw_imp_title *titles)
{
    const struct nw_imp_title *best = NULL;

    for (; titles->title != NULL; titles++) {
        const size_t length = strlen(titles->title);

        if (nw_imp_starts(text, titles->title) &&
            (text.length == length || is_blank(text.at[length])) &&
            (best == NULL || length > strlen(best->title)))
            best = titles;
    }
    return best;
}

/* Up to a tab or two blanks. */
static size_t unknown_length(struct nw_slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] == '\t' ||
            (is_blank(text.at[i]) && (i + 1 == text.length || is_blank(text.at[i + 1]))))
            return i;
    return text.length;
}

bool nw_imp_header(struct nw_slice text, const struct nw_imp_title *titles, int least,
                   struct nw_imp_columns *columns_out)
{
    struct nw_imp_columns columns = {0};
    int known = 0;

    text = trim_cells(text);
    while (text.length > 0 && columns.count < NW_IMP_COLUMNS) {
        const struct nw_imp_title *title = title_of(text, titles);
        size_t length;

        if (title == NULL && columns.count == 0)
            return false;
        if (title != NULL) {
            length = strlen(title->title);
            columns.at[columns.count] = *title;
            known++;
        } else {
            length = unknown_length(text);
            columns.at[columns.count].value = NW_IMP_OTHER;
        }
        columns.count++;
        text = trim_cells((struct nw_slice){text.at + length, text.length - length});
    }
    if (known < least)
        return false;
    *columns_out = columns;
    return true;
}

bool nw_imp_column(const struct nw_imp_columns *columns, nw_imp_value value)
{
    for (int i = 0; i < columns->count; i++)
        if (columns->at[i].value == value)
            return true;
    return false;
}

/* --- rows --- */

static bool is_whole_number(struct nw_slice word)
{
    uint64_t value;

    return nw_imp_u64(word, &value);
}

/* Sizes and counts are whole numbers; a time may have a point. */
static bool begins_row(struct nw_slice word, const struct nw_imp_title *column)
{
    struct nw_printed number;

    if (column->value == NW_IMP_BYTES || column->value == NW_IMP_ITERATIONS)
        return is_whole_number(word);
    return nw_imp_number(word, 0, &number);
}

static bool is_negative(struct nw_slice word)
{
    return word.length > 1 && word.at[0] == '-' && isdigit((unsigned char)word.at[1]);
}

/* A last line without newline may be cut within its last word; blanks behind that end it. */
static void drop_cut_word(struct nw_imp *imp, struct nw_slice text, struct nw_imp_words *words)
{
    const char *end = imp->data + imp->length;

    if (imp->whole || words->count == 0)
        return;
    if (text.at + text.length < end && is_blank(text.at[text.length]))
        return;
    words->count--;
    imp->torn = true;
}

static void refuse(struct nw_imp *imp, const char *why)
{
    nw_imp_count(&imp->unreadable, imp->line, nw_imp_slice(why));
}

static bool read_cell(struct nw_slice word, const struct nw_imp_title *column,
                      struct nw_imp_row *row)
{
    struct nw_printed number;

    if (column->value == NW_IMP_OTHER)
        return true;
    if (column->value == NW_IMP_CHECK) {
        row->check = word;
        return true;
    }
    if (!nw_imp_number(word, column->scale, &number))
        return false;
    if (column->factor > 0) {
        number.value *= column->factor;
        number.half_unit *= column->factor;
    }
    row->value[column->value] = number;
    return true;
}

bool nw_imp_row(struct nw_imp *imp, struct nw_slice text, const struct nw_imp_columns *columns,
                struct nw_imp_row *row_out)
{
    struct nw_imp_words words;
    struct nw_imp_row row = {.check = {text.at, 0}};

    if (columns->count == 0)
        return false;
    text = trim_cells(text);
    nw_imp_split(text, &words);
    if (words.count == 0 || !begins_row(words.word[0], &columns->at[0]))
        return false;
    drop_cut_word(imp, text, &words);
    if (words.count > columns->count || (!imp->torn && words.count < columns->count)) {
        refuse(imp, "it has another number of columns than the header");
        return false;
    }
    for (int i = 0; i < NW_IMP_VALUES; i++)
        row.value[i] = (struct nw_printed){NAN, NAN};
    for (int i = 0; i < words.count; i++) {
        if (read_cell(words.word[i], &columns->at[i], &row))
            continue;
        refuse(imp,
               is_negative(words.word[i]) ? "a column is negative" : "a column is not a number");
        return false;
    }
    *row_out = row;
    return words.count > 0;
}

/* --- matrices --- */

bool nw_imp_matrix_header(const struct nw_imp *imp, struct nw_slice text,
                          struct nw_imp_matrix *matrix_out, struct nw_slice *corner_out)
{
    struct nw_imp_words words;
    int first = 0, count = 0;
    uint64_t number;

    nw_imp_split(nw_imp_trim(text), &words);
    if (!imp->whole || words.count == 0)
        return false;
    *corner_out = (struct nw_slice){text.at, 0};
    if (!is_whole_number(words.word[0])) {
        *corner_out = words.word[0];
        first = 1;
    }
    while (first + count < words.count && count < NW_IMP_MATRIX &&
           nw_imp_u64(words.word[first + count], &number) && number == (uint64_t)count)
        count++;
    if (count == 0 || first + count != words.count)
        return false;
    *matrix_out = (struct nw_imp_matrix){.columns = count, .row = -1};
    return true;
}

bool nw_imp_matrix_row(struct nw_imp *imp, struct nw_slice text, struct nw_imp_matrix *matrix)
{
    struct nw_imp_words words;
    uint64_t number;

    if (matrix->columns == 0)
        return false;
    text = nw_imp_trim(text);
    nw_imp_split(text, &words);
    if (words.count == 0 || !nw_imp_u64(words.word[0], &number) || number >= NW_IMP_MATRIX)
        return false;
    drop_cut_word(imp, text, &words);
    if (words.count - 1 > matrix->columns || (!imp->torn && words.count - 1 < matrix->columns) ||
        words.count == 0) {
        if (!imp->torn)
            refuse(imp, "it has another number of columns than the matrix");
        return false;
    }
    matrix->row = (int)number;
    for (int i = 0; i < matrix->columns; i++)
        if (i + 1 >= words.count ||
            !nw_imp_number(words.word[i + 1], matrix->scale, &matrix->cell[i]))
            matrix->cell[i] = (struct nw_printed){NAN, NAN};
    return true;
}
