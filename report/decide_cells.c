/* Cells and words of the decision. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "report/decide_text_parts.h"

void nw_say(struct nw_say *say, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int written =
        nw_vprint_to(say->to + say->length, say->size - say->length, format, arguments);

    va_end(arguments);
    if (written > 0)
        say->length += (size_t)written;
    if (say->length >= say->size)
        say->length = say->size - 1; /* cut */
}

const char *nw_cell_span(struct nw_cell *cell, double ns)
{
    char text[32];

    if (ns >= 2 * DAY_NS && isfinite(ns))
        nw_print_to(cell->text, sizeof cell->text, "%s days", nw_format_sig(text, ns / DAY_NS, 3));
    else
        nw_print_to(cell->text, sizeof cell->text, "%s",
                    isfinite(ns) ? nw_format_ns(text, ns) : "–");
    return cell->text;
}

const char *nw_cell_money(struct nw_cell *cell, double amount)
{
    char text[32];

    if (amount >= 1e3 && amount < 1e6)
        snprintf(cell->text, sizeof cell->text, "%.0f", amount);
    else if (amount >= 1e15)
        snprintf(cell->text, sizeof cell->text, "%.3g", amount);
    else if (amount >= 1e6)
        nw_print_to(cell->text, sizeof cell->text, "%s", nw_format_count(text, amount));
    else
        nw_print_to(cell->text, sizeof cell->text, "%s", nw_format_sig(text, amount, 3));
    return cell->text;
}

const char *nw_cell_rate(struct nw_cell *cell, double bytes_per_s)
{
    const bool small = bytes_per_s < 0.1e9;
    char text[32];

    nw_print_to(cell->text, sizeof cell->text, "%s %s",
                nw_format_sig(text, bytes_per_s / (small ? 1e6 : 1e9), 3), small ? "MB/s" : "GB/s");
    return cell->text;
}

const char *nw_cell_certainty(struct nw_cell *cell, double probability)
{
    return probability > 0.99 ? "> 99 %" : nw_cell_percent(cell, probability);
}

const char *nw_cell_currency(struct nw_cell *cell, const struct nw_terms *terms)
{
    nw_print_to(cell->text, sizeof cell->text, "%s%.40s", terms->currency[0] != '\0' ? " " : "",
                terms->currency);
    return cell->text;
}

double nw_verdict_certainty(const struct nw_choice *choice)
{
    switch (choice->pays) {
    case NW_PAYS_YES:
        return choice->probability;
    case NW_PAYS_NO:
        return 1 - choice->probability;
    case NW_PAYS_DEADLINE:
        return choice->in_time_probability;
    default:
        return NAN;
    }
}
