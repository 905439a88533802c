#include "base/finding_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"

static nw_rc fill(json_t *object, const struct nw_finding *finding)
{
    NW_TRY(nw_json_set_text(object, "severity", nw_severity_name(finding->severity)));
    NW_TRY(nw_json_set_text(object, "code", finding->code));
    NW_TRY(nw_json_set_text(object, "where", finding->where));
    NW_TRY(nw_json_set_text(object, "text", finding->text));
    NW_TRY(nw_json_set_text(object, "remedy", finding->remedy));
    NW_TRY(nw_json_set_text(object, "effect", finding->effect));
    NW_TRY(nw_json_set_real(object, "lost_bytes_per_s", finding->lost_bytes_per_s));
    return nw_json_set_real(object, "step_ns", finding->step_ns);
}

nw_rc nw_finding_to_json(const struct nw_finding *finding, json_t **json_out)
{
    json_t *object = json_object();

    if (object == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a finding");
    const nw_rc rc = fill(object, finding);

    if (rc != NW_OK) {
        json_decref(object);
        return rc;
    }
    *json_out = object;
    return NW_OK;
}

nw_rc nw_findings_to_json(const struct nw_findings *list, json_t **array_out)
{
    json_t *array = json_array(), *object;
    nw_rc rc = array != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for a list of findings");

    for (size_t i = 0; i < list->count && rc == NW_OK; i++) {
        rc = nw_finding_to_json(&list->items[i], &object);
        if (rc == NW_OK && json_array_append_new(array, object) != 0)
            rc = nw_fail(NW_ENOMEM, "no memory for a list of findings");
    }
    if (rc != NW_OK) {
        json_decref(array);
        return rc;
    }
    *array_out = array;
    return NW_OK;
}

static nw_rc get_severity(const json_t *object, const char *what, nw_severity *severity_out)
{
    static const nw_severity all[] = {NW_FINDING_INFO, NW_FINDING_WARN, NW_FINDING_FAIL};
    const char *text = NULL;

    NW_TRY(nw_json_get_text(object, what, "severity", true, &text));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(text, nw_severity_name(all[i])) == 0) {
            *severity_out = all[i];
            return NW_OK;
        }
    return nw_fail(NW_EUSAGE, "%s: \"severity\" is \"%.40s\"; accepted: info, warning, failure",
                   what, text);
}

/* The kind of line stands in the same object in a results file. */
static nw_rc check_keys(const json_t *object, const char *what)
{
    static const char *const known[] = {
        "severity",         "code",    "where",  "text", "remedy", "effect",
        "lost_bytes_per_s", "step_ns", "schema", "kind", NULL};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        bool found = false;

        for (size_t i = 0; known[i] != NULL; i++)
            found |= strcmp(known[i], key) == 0;
        if (!found) {
            char list[160];

            return nw_fail(NW_EUSAGE, "%s: unknown key \"%.40s\" in a finding. Accepted: %s", what,
                           key, nw_join_names(list, sizeof list, known));
        }
    }
    return NW_OK;
}

nw_rc nw_finding_from_json(const json_t *object, const char *what, struct nw_findings *list)
{
    const char *code = NULL, *where = NULL, *text = NULL, *remedy = NULL, *effect = NULL;
    double lost = NAN, step_ns = NAN;
    nw_severity severity = NW_FINDING_INFO;

    if (!json_is_object(object))
        return nw_fail(NW_EUSAGE, "%s: a finding is not an object", what);
    NW_TRY(check_keys(object, what));
    NW_TRY(get_severity(object, what, &severity));
    NW_TRY(nw_json_get_text(object, what, "code", true, &code));
    NW_TRY(nw_json_get_text(object, what, "where", true, &where));
    NW_TRY(nw_json_get_text(object, what, "text", true, &text));
    NW_TRY(nw_json_get_text(object, what, "remedy", false, &remedy));
    NW_TRY(nw_json_get_text(object, what, "effect", false, &effect));
    NW_TRY(nw_json_get_real(object, what, "lost_bytes_per_s", false, &lost));
    NW_TRY(nw_json_get_real(object, what, "step_ns", false, &step_ns));
    NW_TRY(nw_findings_add(list, severity, code, where, remedy, "%s", text));
    if (effect != NULL)
        NW_TRY(nw_findings_effect(list, lost, "%s", effect));
    list->items[list->count - 1].lost_bytes_per_s = lost;
    list->items[list->count - 1].step_ns = step_ns;
    return NW_OK;
}

nw_rc nw_findings_from_json(const json_t *array, const char *what, struct nw_findings *list)
{
    char place[400];

    if (!json_is_array(array))
        return nw_fail(NW_EUSAGE, "%s: not an array of findings", what);
    for (size_t i = 0; i < json_array_size(array); i++) {
        snprintf(place, sizeof place, "%.256s: findings[%zu]", what, i);
        NW_TRY(nw_finding_from_json(json_array_get(array, i), place, list));
    }
    return NW_OK;
}
