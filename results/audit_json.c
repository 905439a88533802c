#include <math.h>

#include "base/finding_json.h"
#include "base/json.h"
#include "results/audit.h"

static const char *suffix_of(nw_audit_unit unit)
{
    static const char *const suffixes[] = {
        [NW_AUDIT_TEXT] = "",
        [NW_AUDIT_COUNT] = "_count",
        [NW_AUDIT_BYTES] = "_bytes",
        [NW_AUDIT_BYTES_PER_S] = "_bytes_per_s",
        [NW_AUDIT_FLOP_PER_S] = "_flop_per_s",
        [NW_AUDIT_PER_S] = "_per_s",
        [NW_AUDIT_W] = "_w",
        [NW_AUDIT_NS] = "_ns",
        [NW_AUDIT_PRICE] = "_node_hour_price",
    };

    return suffixes[unit];
}

static nw_rc set_number(json_t *json, const char *name, nw_audit_unit unit, double value)
{
    char key[64];

    snprintf(key, sizeof key, "%s%s", name, suffix_of(unit));
    if ((unit == NW_AUDIT_COUNT || unit == NW_AUDIT_BYTES) && isfinite(value))
        return nw_json_set_int(json, key, (int64_t)value);
    return nw_json_set_real(json, key, value);
}

static nw_rc set_numbers(json_t *json, const struct nw_audit_row *row)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"quoted", row->quoted},
        {"ceiling", row->ceiling},
        {"expected_low", row->expected_low},
        {"expected_high", row->expected_high},
        {"measured", row->measured},
        {"measured_low", row->measured_low},
        {"measured_high", row->measured_high},
    };

    if (row->unit != NW_AUDIT_TEXT)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            NW_TRY(set_number(json, numbers[i].name, row->unit, numbers[i].value));
    if (row->part < 1)
        NW_TRY(nw_json_set_real(json, "part_of_node", row->part));
    NW_TRY(nw_json_set_real(json, "measured_of_quoted", row->measured / (row->quoted * row->part)));
    NW_TRY(nw_json_set_real(json, "measured_of_ceiling", row->measured / row->ceiling));
    return nw_json_set_real(json, "measured_of_expected_low", row->measured / row->expected_low);
}

static nw_rc set_readings(json_t *json, const struct nw_audit_row *row)
{
    json_t *list = json_array();

    if (row->reading_count == 0) {
        json_decref(list);
        return NW_OK;
    }
    NW_TRY(nw_json_set_new(json, "readings", list));
    for (size_t i = 0; i < row->reading_count; i++) {
        const struct nw_audit_reading *reading = &row->readings[i];
        json_t *item = json_object();

        if (json_array_append_new(list, item) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the readings of an audit");
        NW_TRY(nw_json_set_text(item, "algorithm", reading->algorithm));
        NW_TRY(nw_json_set_real(item, "bytes_per_s", reading->bytes_per_s));
        NW_TRY(nw_json_set_real(item, "expected_low_bytes_per_s", reading->expected_low));
        NW_TRY(nw_json_set_real(item, "expected_high_bytes_per_s", reading->expected_high));
        NW_TRY(nw_json_set_bool(item, "possible", reading->possible));
    }
    return NW_OK;
}

static nw_rc set_findings(json_t *json, const char *key, const struct nw_findings *findings)
{
    json_t *list;

    NW_TRY(nw_findings_to_json(findings, &list));
    return nw_json_set_new(json, key, list);
}

static nw_rc set_row(json_t *json, const struct nw_audit_row *row)
{
    NW_TRY(nw_json_set_text(json, "area", row->area));
    NW_TRY(nw_json_set_text(json, "key", row->key));
    NW_TRY(nw_json_set_text(json, "claim", row->claim));
    NW_TRY(nw_json_set_text(json, "quoted", row->quoted_text));
    NW_TRY(nw_json_set_int(json, "quote_line", row->quote_line));
    NW_TRY(nw_json_set_text(json, "verdict", nw_audit_verdict_key(row->verdict)));
    NW_TRY(nw_json_set_text(json, "measured",
                            row->measured_text[0] != '\0' ? row->measured_text : NULL));
    NW_TRY(nw_json_set_text(json, "reason", row->reason[0] != '\0' ? row->reason : NULL));
    NW_TRY(nw_json_set_text(json, "how_to_measure", row->how[0] != '\0' ? row->how : NULL));
    NW_TRY(nw_json_set_text(json, "source", row->source[0] != '\0' ? row->source : NULL));
    NW_TRY(nw_json_set_bool(json, "simulated", row->simulated));
    if (row->machine_count > 0)
        NW_TRY(nw_json_set_int(json, "machine_count", row->machine_count));
    NW_TRY(set_numbers(json, row));
    NW_TRY(set_readings(json, row));
    return row->causes.count > 0 ? set_findings(json, "causes", &row->causes) : NW_OK;
}

static nw_rc set_head(json_t *json, const struct nw_audit *audit)
{
    json_t *quote;

    NW_TRY(nw_json_set_int(json, "schema", NW_SCHEMA_VERSION));
    NW_TRY(nw_json_set_text(json, "kind", "audit"));
    NW_TRY(nw_json_set_text(json, "quote_file", audit->quote.path));
    NW_TRY(nw_quote_to_json(&audit->quote, &quote));
    NW_TRY(nw_json_set_new(json, "quote", quote));
    NW_TRY(nw_json_set_bool(json, "simulated", audit->simulated));
    for (int verdict = 0; verdict < NW_AUDIT_VERDICT_COUNT; verdict++) {
        char key[64];

        snprintf(key, sizeof key, "%s_count", nw_audit_verdict_key((nw_audit_verdict)verdict));
        NW_TRY(nw_json_set_u64(json, key, nw_audit_count(audit, (nw_audit_verdict)verdict)));
    }
    return NW_OK;
}

static nw_rc set_costs(json_t *json, const struct nw_audit *audit)
{
    json_t *list = json_array();

    NW_TRY(nw_json_set_new(json, "costs", list));
    for (size_t i = 0; i < audit->cost_count; i++) {
        const struct nw_audit_cost *cost = &audit->costs[i];
        json_t *item = json_object();

        if (json_array_append_new(list, item) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the costs of an audit");
        NW_TRY(nw_json_set_text(item, "key", cost->key));
        NW_TRY(nw_json_set_text(item, "title", cost->title));
        NW_TRY(nw_json_set_real(item, "value", cost->value));
        NW_TRY(nw_json_set_text(item, "currency", audit->quote.currency));
        NW_TRY(nw_json_set_text(item, "how", cost->how));
        NW_TRY(nw_json_set_bool(item, "simulated", cost->simulated));
    }
    return NW_OK;
}

static nw_rc set_all(json_t *json, const struct nw_audit *audit)
{
    json_t *rows;

    NW_TRY(set_head(json, audit));
    rows = json_array();
    NW_TRY(nw_json_set_new(json, "rows", rows));
    for (size_t i = 0; i < audit->row_count; i++) {
        json_t *row = json_object();

        if (json_array_append_new(rows, row) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the rows of an audit");
        NW_TRY(set_row(row, &audit->rows[i]));
    }
    NW_TRY(set_costs(json, audit));
    return set_findings(json, "findings", &audit->findings);
}

nw_rc nw_audit_to_json(const struct nw_audit *audit, json_t **json_out)
{
    json_t *json = json_object();
    const nw_rc rc =
        json == NULL ? nw_fail(NW_ENOMEM, "no memory for an audit") : set_all(json, audit);

    if (rc != NW_OK) {
        json_decref(json);
        return rc;
    }
    *json_out = json;
    return NW_OK;
}
