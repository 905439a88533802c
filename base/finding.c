#include "base/finding.h"

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

nw_rc nw_findings_copy(struct nw_findings *to, const struct nw_findings *from)
{
    const size_t before = to->count;
    const size_t count = from->count; /* `to` may be `from` */

    for (size_t i = 0; i < count; i++) {
        const struct nw_finding *item = &from->items[i];
        const nw_rc rc =
            append_texts(to, item->severity, item->code, item->where, item->remedy, item->text);

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
