#include "base/finding.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const severity_names[] = {
    [NW_FINDING_INFO] = "info",
    [NW_FINDING_WARN] = "warning",
    [NW_FINDING_FAIL] = "failure",
};

static void free_item(struct nw_finding *item)
{
    free(item->code);
    free(item->where);
    free(item->text);
    free(item->remedy);
    free(item->effect);
}

static nw_rc no_memory(void)
{
    return nw_fail(NW_ENOMEM, "no memory for a finding");
}

/* Takes the texts of `item` over, also on failure. */
static nw_rc append(struct nw_findings *list, struct nw_finding item)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? 2 * list->capacity : 4;
        struct nw_finding *items = realloc(list->items, capacity * sizeof *items);

        if (items == NULL) {
            free_item(&item);
            return no_memory();
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return NW_OK;
}

static nw_rc append_texts(struct nw_findings *list, nw_severity severity, const char *code,
                          const char *where, const char *remedy, const char *text)
{
    struct nw_finding item = {
        .severity = severity,
        .code = strdup(code != NULL ? code : ""),
        .where = strdup(where != NULL ? where : ""),
        .text = strdup(text),
        .remedy = remedy != NULL ? strdup(remedy) : NULL,
        .lost_bytes_per_s = NAN,
        .step_ns = NAN,
    };

    if (item.code == NULL || item.where == NULL || item.text == NULL ||
        (remedy != NULL && item.remedy == NULL)) {
        free_item(&item);
        return no_memory();
    }
    return append(list, item);
}

nw_rc nw_findings_add(struct nw_findings *list, nw_severity severity, const char *code,
                      const char *where, const char *remedy, const char *format, ...)
{
    char *text;
    va_list arguments;

    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return no_memory();
    const nw_rc rc = append_texts(list, severity, code, where, remedy, text);

    free(text);
    return rc;
}

nw_rc nw_findings_effect(struct nw_findings *list, double lost_bytes_per_s, const char *format, ...)
{
    struct nw_finding *item = list->count > 0 ? &list->items[list->count - 1] : NULL;
    char *text;
    va_list arguments;

    if (item == NULL)
        return NW_OK;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return no_memory();
    free(item->effect);
    item->effect = text;
    item->lost_bytes_per_s = lost_bytes_per_s;
    return NW_OK;
}

nw_rc nw_findings_copy_one(struct nw_findings *to, const struct nw_finding *from)
{
    const double lost_bytes_per_s = from->lost_bytes_per_s, step_ns = from->step_ns;
    char *effect = from->effect != NULL ? strdup(from->effect) : NULL; /* `from` may move */
    nw_rc rc = from->effect != NULL && effect == NULL ? no_memory() : NW_OK;

    if (rc == NW_OK)
        rc = append_texts(to, from->severity, from->code, from->where, from->remedy, from->text);
    if (rc != NW_OK) {
        free(effect);
        return rc;
    }
    to->items[to->count - 1].effect = effect;
    to->items[to->count - 1].lost_bytes_per_s = lost_bytes_per_s;
    to->items[to->count - 1].step_ns = step_ns;
    return NW_OK;
}

nw_rc nw_findings_copy(struct nw_findings *to, const struct nw_findings *from)
{
    const size_t before = to->count;
    const size_t count = from->count; /* `to` may be `from` */

    for (size_t i = 0; i < count; i++) {
        const nw_rc rc = nw_findings_copy_one(to, &from->items[i]);

        if (rc != NW_OK) {
            while (to->count > before)
                free_item(&to->items[--to->count]);
            return rc;
        }
    }
    return NW_OK;
}

void nw_findings_free(struct nw_findings *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_item(&list->items[i]);
    free(list->items);
    *list = (struct nw_findings){0};
}

const char *nw_severity_name(nw_severity severity)
{
    return (size_t)severity < sizeof severity_names / sizeof severity_names[0]
               ? severity_names[severity]
               : "failure";
}
