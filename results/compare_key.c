#include "results/compare_key.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "results/select.h"

typedef enum { OF_TEXT, OF_INT, OF_U64, OF_BOOL, OF_GPU, OF_BACKEND, OF_SIMULATED } kind;

/* name: for --across; NULL: it can never differ. */
static const struct field {
    const char *name, *title;
    kind kind;
    size_t offset;
} fields[] = {
#define OF(member) offsetof(struct nw_record, member)
    {NULL, "case", OF_TEXT, OF(case_name)},
    {NULL, "collective", OF_TEXT, OF(collective)},
    {NULL, "size", OF_U64, OF(bytes)},
    {NULL, "type", OF_TEXT, OF(dtype)},
    {NULL, "ranks", OF_INT, OF(rank_count)},
    {"op", "reduction", OF_TEXT, OF(op)},
    {"root", "root", OF_INT, OF(root)},
    {"place", "in place", OF_BOOL, OF(in_place)},
    {"lane", "lane", OF_TEXT, OF(lane)},
    {"features", "features", OF_TEXT, OF(features)},
    {"hosts", "hosts", OF_INT, OF(host_count)},
    {"peers", "first rank", OF_INT, OF(peer_a)},
    {"peers", "second rank", OF_INT, OF(peer_b)},
    {"nics", "first NIC", OF_TEXT, OF(nic_a)},
    {"nics", "second NIC", OF_TEXT, OF(nic_b)},
    {NULL, "memory", OF_TEXT, OF(memory)},
    {NULL, "connections", OF_INT, OF(stream_count)},
    {NULL, "piece", OF_U64, OF(piece_bytes)},
    {NULL, "m", OF_U64, OF(m)},
    {NULL, "n", OF_U64, OF(n)},
    {NULL, "k", OF_U64, OF(k)},
    {"backend", "backend", OF_BACKEND, 0},
    {"gpu", "GPU", OF_GPU, 0},
    {NULL, "simulated", OF_SIMULATED, 0},
#undef OF
};
enum { FIELD_COUNT = sizeof fields / sizeof fields[0], SIZE_FIELDS = 3 };

nw_rc nw_compare_across(const char *list, uint32_t *mask_out)
{
    static const char *const names[] = {"op",    "root", "place",   "lane", "features", "hosts",
                                        "peers", "nics", "backend", "gpu",  NULL};
    uint32_t mask = 0;
    char accepted[256];

    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ",");
        bool found = false;

        for (size_t i = 0; i < FIELD_COUNT; i++)
            if (fields[i].name != NULL && strlen(fields[i].name) == length &&
                strncmp(fields[i].name, at, length) == 0) {
                mask |= UINT32_C(1) << i;
                found = true;
            }
        if (!found)
            return nw_fail(NW_EUSAGE, "--across: \"%.*s\" is none of what may differ; accepted: %s",
                           (int)length, at, nw_join_names(accepted, sizeof accepted, names));
        at += length + (at[length] == ',');
    }
    *mask_out = mask;
    return NW_OK;
}

static const char *gpu_of(const struct nw_context *context)
{
    if (context->gpu_model[0] != '\0')
        return context->gpu_model;
    return context->hosts != NULL ? context->hosts[0].gpu_model : "";
}

static bool is_simulated(const struct nw_compare_entry *entry)
{
    return entry->record->simulated || entry->context->simulated;
}

static const char *text_of(const struct field *field, const struct nw_compare_entry *entry)
{
    switch (field->kind) {
    case OF_GPU:
        return gpu_of(entry->context);
    case OF_BACKEND:
        return entry->context->backend;
    default:
        return (const char *)entry->record + field->offset;
    }
}

static int64_t number_of(const struct field *field, const struct nw_compare_entry *entry)
{
    const void *at = (const char *)entry->record + field->offset;

    switch (field->kind) {
    case OF_INT:
        return *(const int *)at;
    case OF_BOOL:
        return *(const bool *)at;
    case OF_SIMULATED:
        return is_simulated(entry);
    default:
        return (int64_t) * (const uint64_t *)at;
    }
}

static bool is_text(const struct field *field)
{
    return field->kind == OF_TEXT || field->kind == OF_GPU || field->kind == OF_BACKEND;
}

static int order_of(const struct field *field, const struct nw_compare_entry *a,
                    const struct nw_compare_entry *b)
{
    if (is_text(field))
        return strcmp(text_of(field, a), text_of(field, b));
    const int64_t left = number_of(field, a), right = number_of(field, b);

    return (left > right) - (left < right);
}

static int order_over(const struct nw_compare_entry *a, const struct nw_compare_entry *b,
                      size_t count, uint32_t mask)
{
    for (size_t i = 0; i < count; i++) {
        const int order = (mask >> i & 1) != 0 ? 0 : order_of(&fields[i], a, b);

        if (order != 0)
            return order;
    }
    return 0;
}

int nw_compare_order(const struct nw_compare_entry *a, const struct nw_compare_entry *b,
                     uint32_t mask)
{
    return order_over(a, b, FIELD_COUNT, mask);
}

int nw_compare_order_size(const struct nw_compare_entry *a, const struct nw_compare_entry *b)
{
    return order_over(a, b, SIZE_FIELDS, 0);
}

static void put_value(char text[64], const struct field *field,
                      const struct nw_compare_entry *entry)
{
    const int64_t number = is_text(field) ? 0 : number_of(field, entry);

    if (is_text(field))
        snprintf(text, 64, "%.62s", text_of(field, entry)[0] != '\0' ? text_of(field, entry) : "?");
    else if (field->kind == OF_BOOL || field->kind == OF_SIMULATED)
        snprintf(text, 64, "%s", number != 0 ? "yes" : "no");
    else if (field->kind == OF_INT && number <= 0 && strcmp(field->title, "root") != 0)
        snprintf(text, 64, "?");
    else
        snprintf(text, 64, "%lld", (long long)number);
}

size_t nw_compare_differences(const struct nw_compare_entry *a, const struct nw_compare_entry *b,
                              uint32_t mask, char *text, size_t size)
{
    size_t count = 0, used = 0;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        char left[64], right[64];

        if ((mask >> i & 1) != 0 || order_of(&fields[i], a, b) == 0)
            continue;
        put_value(left, &fields[i], a);
        put_value(right, &fields[i], b);
        if (text != NULL && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s: %s, %s",
                                     count > 0 ? "; " : "", fields[i].title, left, right);
        count++;
    }
    return count;
}

bool nw_compare_usable(const struct nw_record *record)
{
    return record->rc == NW_OK && record->wrong_elements <= 0 &&
           isfinite(nw_compare_time(record)) && nw_compare_time(record) > 0;
}

double nw_compare_rate(const struct nw_record *record)
{
    if (isfinite(record->busbw_bytes_per_s))
        return record->busbw_bytes_per_s;
    return isfinite(record->flop_per_s) ? record->flop_per_s : record->algbw_bytes_per_s;
}

double nw_compare_time(const struct nw_record *record)
{
    if (isfinite(record->time_ns.median) && record->time_ns.median > 0)
        return record->time_ns.median;
    const double rate = nw_compare_rate(record);

    return rate > 0 ? 1e18 / rate : NAN;
}
