#include "report/letter_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define DASH "\xE2\x80\x93"

bool nw_figure_is_rate(const struct nw_audit_row *row)
{
    return row->unit == NW_AUDIT_BYTES_PER_S || row->unit == NW_AUDIT_FLOP_PER_S;
}

static const char *figure(char text[32], const struct nw_audit_row *row, double value)
{
    return row->unit == NW_AUDIT_FLOP_PER_S ? nw_format_sig(text, value / 1e12, 3)
                                            : nw_format_gb_per_s(text, value);
}

static const char *unit_of(const struct nw_audit_row *row)
{
    return row->unit == NW_AUDIT_FLOP_PER_S ? "TFLOP/s" : "GB/s";
}

const char *nw_figure_found(const struct nw_language *language, const struct nw_audit_row *row,
                            const char *text, char *out, size_t size)
{
    char value[32], low[32], high[32], rate[240];

    if (text[0] != '\0') {
        nw_words_say(language, text, out, size);
    } else if (nw_figure_is_rate(row) && isfinite(row->measured)) {
        snprintf(rate, sizeof rate, "%s%s %s",
                 row->verdict == NW_AUDIT_NOT_MEASURED ? "\xE2\x89\xA5 " : "",
                 figure(value, row, row->measured), unit_of(row));
        if (isfinite(row->measured_low))
            snprintf(rate + strlen(rate), sizeof rate - strlen(rate), " [%s, %s]",
                     figure(low, row, row->measured_low), figure(high, row, row->measured_high));
        snprintf(out, size, "%s", rate);
    } else {
        snprintf(out, size, DASH);
        return out;
    }
    if (row->simulated)
        snprintf(out + strlen(out), size - strlen(out), "%s", nw_words(language, " (simulated)"));
    return out;
}

const char *nw_figure_ceiling(const struct nw_audit_row *row, char out[80])
{
    char value[32];

    snprintf(out, 80, DASH);
    if (nw_figure_is_rate(row) && isfinite(row->ceiling))
        snprintf(out, 80, "%s %s", figure(value, row, row->ceiling), unit_of(row));
    return out;
}

const char *nw_figure_expected(const struct nw_audit_row *row, char out[80])
{
    char low[32], high[32];

    out[0] = '\0';
    if (nw_figure_is_rate(row) && isfinite(row->expected_low))
        snprintf(out, 80, "%s" DASH "%s %s", figure(low, row, row->expected_low),
                 figure(high, row, row->expected_high), unit_of(row));
    return out;
}
