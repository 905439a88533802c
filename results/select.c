#include "results/select.h"

#include <stddef.h>
#include <string.h>

static const char *const places[] = {"both", "out", "in", NULL};

#define FIELD(name) .offset = offsetof(struct nw_select, name)

const struct nw_option nw_select_options[] = {
    {.help = "Which results:"},
    {.name = "cases",
     .argument = "LIST",
     .type = NW_OPTION_TEXT,
     FIELD(cases),
     .help = "of these cases only: coll, pairs, p2p … (comma-separated)"},
    {.name = "collectives",
     .argument = "LIST",
     .type = NW_OPTION_TEXT,
     FIELD(collectives),
     .help = "of these collectives only: all_reduce, alltoall …"},
    {.name = "lanes",
     .argument = "LIST",
     .type = NW_OPTION_TEXT,
     FIELD(lanes),
     .help = "of these lanes only: auto, nvlink, tcp …"},
    {.name = "datatype",
     .key = 'd',
     .argument = "LIST",
     .type = NW_OPTION_TEXT,
     FIELD(dtypes),
     .help = "of these element types only"},
    {.name = "op",
     .key = 'o',
     .argument = "LIST",
     .type = NW_OPTION_TEXT,
     FIELD(ops),
     .help = "with these reductions only: sum, none …"},
    {.name = "place",
     .argument = "PLACE",
     .type = NW_OPTION_CHOICE,
     .choices = places,
     FIELD(place),
     .help = "out: out of place only; in: in place only (both)"},
    {.name = "minbytes",
     .key = 'b',
     .argument = "SIZE",
     .type = NW_OPTION_BYTES,
     .max = 9e18,
     FIELD(min_bytes),
     .help = "from this size on; suffixes K M G are binary"},
    {.name = "maxbytes",
     .key = 'e',
     .argument = "SIZE",
     .type = NW_OPTION_BYTES,
     .max = 9e18,
     FIELD(max_bytes),
     .help = "up to this size"},
    {.name = "ranks",
     .argument = "N",
     .type = NW_OPTION_INT,
     .min = 1,
     .max = 1e6,
     FIELD(rank_count),
     .help = "between this many ranks only"},
    {.name = "hosts",
     .argument = "N",
     .type = NW_OPTION_INT,
     .min = 1,
     .max = 1e6,
     FIELD(host_count),
     .help = "on this many hosts only"},
    {.name = "host",
     .argument = "NAME",
     .type = NW_OPTION_TEXT,
     FIELD(host),
     .help = "of this host only: one of a pair, or one of the run's"},
};
const size_t nw_select_option_count = sizeof nw_select_options / sizeof nw_select_options[0];

bool nw_list_has(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        at += strspn(at, " ");
        if (strncmp(at, name, length) == 0 && strchr(", ", at[length]) != NULL)
            return true;
    }
    return false;
}

static bool takes_name(const char *list, const char *name)
{
    return list == NULL || nw_list_has(list, name);
}

static bool takes_host(const char *host, const struct nw_record *record,
                       const struct nw_context *context)
{
    if (host == NULL || strcmp(record->host_a, host) == 0 || strcmp(record->host_b, host) == 0)
        return true;
    if (record->host_a[0] != '\0' || record->host_b[0] != '\0' || context == NULL)
        return false;
    for (int i = 0; context->hosts != NULL && i < context->host_count; i++)
        if (strcmp(context->hosts[i].name, host) == 0)
            return true;
    return false;
}

bool nw_select_takes(const struct nw_select *select, const struct nw_record *record,
                     const struct nw_context *context)
{
    const bool any_place = select->place == NULL || strcmp(select->place, "both") == 0;

    return takes_name(select->cases, record->case_name) &&
           takes_name(select->collectives, record->collective) &&
           takes_name(select->lanes, record->lane) && takes_name(select->dtypes, record->dtype) &&
           takes_name(select->ops, record->op) &&
           (any_place || record->in_place == (strcmp(select->place, "in") == 0)) &&
           record->bytes >= select->min_bytes &&
           (select->max_bytes == 0 || record->bytes <= select->max_bytes) &&
           (select->rank_count == 0 || record->rank_count == select->rank_count) &&
           (select->host_count == 0 || record->host_count == select->host_count) &&
           takes_host(select->host, record, context);
}
