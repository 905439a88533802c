/* What a source says that shows one aspect of a machine: fact by fact, devices that say the same
 * together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/words.h"
#include "report/topo_text_parts.h"
#include "topo/nvml_api.h"

enum {
    GROUPS = 8, /* values of a fact that are told one by one; more are told as a range */
    NAMED = 2,  /* devices of a group that are named, more as first and last */
    NAME_WIDTH = 20,
    DEVICES_SIZE = 2 * (2 * NAME_WIDTH) + 32,
    TITLE_SIZE = 96,
    TEXT_SIZE = 224,
};

struct group {
    const struct nw_fact *fact;
    int nodes[NAMED], last, count;
};

/* Of one fact. */
struct values {
    struct group groups[GROUPS];
    int group_count;
    bool many; /* more than GROUPS */
    struct group all;
    const struct nw_fact *low, *high; /* NULL: texts */
};

static void add_to(struct group *group, const struct nw_fact *fact)
{
    if (group->count == 0)
        group->fact = fact;
    if (group->count < NAMED)
        group->nodes[group->count] = fact->node;
    group->last = fact->node;
    group->count++;
}

static bool is_equal(const struct nw_fact *a, const struct nw_fact *b)
{
    return isnan(a->number) ? isnan(b->number) && strcmp(a->text, b->text) == 0
                            : a->number == b->number;
}

static void add(struct values *values, const struct nw_fact *fact)
{
    add_to(&values->all, fact);
    if (!isnan(fact->number)) {
        if (values->low == NULL || fact->number < values->low->number)
            values->low = fact;
        if (values->high == NULL || fact->number > values->high->number)
            values->high = fact;
    }
    for (int i = 0; i < values->group_count; i++)
        if (is_equal(values->groups[i].fact, fact)) {
            add_to(&values->groups[i], fact);
            return;
        }
    if (values->group_count == GROUPS)
        values->many = true;
    else
        add_to(&values->groups[values->group_count++], fact);
}

static const char *name_of(const struct nw_topo *topo, int index)
{
    const struct nw_topo_node *node = &topo->nodes[index];

    return index == 0 ? nw_tr("machine")
           : node->pci[0] != '\0' && (node->kind == NW_NODE_BRIDGE || node->kind == NW_NODE_PCI ||
                                      node->name[0] == '\0')
               ? node->pci
           : node->name[0] != '\0' ? node->name
                                   : nw_node_kind_title(node->kind);
}

/* "gpu0", "gpu0, gpu1", "gpu0 … gpu7 (8)" */
static void write_devices(const struct nw_topo *topo, const struct group *group,
                          char text[DEVICES_SIZE])
{
    const char *first = name_of(topo, group->nodes[0]);

    if (group->count == 1)
        nw_print_to(text, DEVICES_SIZE, "%.*s", NAME_WIDTH, first);
    else if (group->count == 2)
        nw_print_to(text, DEVICES_SIZE, "%.*s, %.*s", NAME_WIDTH, first, NAME_WIDTH,
                    name_of(topo, group->nodes[1]));
    else
        nw_print_to(text, DEVICES_SIZE, "%.*s … %.*s (%d)", NAME_WIDTH, first, NAME_WIDTH,
                    name_of(topo, group->last), group->count);
}

/* Behind a colon the table of facts tells what may stand there, in brackets how it is kept. */
static size_t title_length(const char *title)
{
    const char *bits = strstr(title, " (bits of");

    return bits != NULL ? (size_t)(bits - title) : strcspn(title, ":");
}

static void add_row(struct nw_table *table, const struct nw_topo *topo, const struct group *group,
                    nw_fact_id id, const char *value)
{
    char devices[DEVICES_SIZE], title[TITLE_SIZE];
    const char *whole = nw_fact_rows[id].title;

    write_devices(topo, group, devices);
    nw_print_to(title, sizeof title, "%.*s", (int)title_length(whole), whole);
    nw_table_row(table, (const char *[]){devices, title, value});
}

static const char *value_text(const struct nw_fact *fact, char text[TEXT_SIZE])
{
    return fact->id == NW_FACT_THROTTLE && fact->number >= 0 && fact->number < 1e15
               ? nw_throttle_text(text, (uint64_t)fact->number)
               : nw_fact_value_text(fact, text);
}

static void add_rows(struct nw_table *table, const struct nw_topo *topo, nw_fact_id id,
                     const struct values *values)
{
    char low[TEXT_SIZE], high[TEXT_SIZE], text[2 * TEXT_SIZE + 8];

    for (int i = 0; i < values->group_count && !values->many; i++)
        add_row(table, topo, &values->groups[i], id, value_text(values->groups[i].fact, low));
    if (!values->many)
        return;
    if (values->low != NULL)
        nw_print_to(text, sizeof text, "%s to %s", nw_fact_value_text(values->low, low),
                    nw_fact_value_text(values->high, high));
    else
        nw_print_to(text, sizeof text, "more than %d different ones (--json tells each)", GROUPS);
    add_row(table, topo, &values->all, id, text);
}

/* What only tells devices from each other, or a person has no use for. */
static bool is_told(nw_fact_id id)
{
    static const nw_fact_id without[] = {NW_FACT_GPU_INDEX, NW_FACT_LID, NW_FACT_IOMMU_GROUP,
                                         NW_FACT_QUERY_TIME, NW_FACT_CARD_PORT};

    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (without[i] == id)
            return false;
    return (nw_fact_rows[id].flags & NW_FACT_SECRET) == 0;
}

nw_rc nw_topo_text_facts(FILE *stream, const struct nw_topo *topo)
{
    static const struct nw_column columns[] = {
        {"device", NW_LEFT}, {"fact", NW_WRAP}, {"value", NW_WRAP}};
    struct nw_table *table;
    bool any = false;

    if ((topo->gaps & NW_TOPO_PARTIAL) == 0 || topo->fact_count == 0)
        return NW_OK;
    NW_TRY(nw_table_open(columns, sizeof columns / sizeof *columns, &table));
    for (int id = 0; id < NW_FACT_COUNT; id++) {
        struct values values = {.group_count = 0};

        if (!is_told((nw_fact_id)id))
            continue;
        for (size_t i = 0; i < topo->fact_count; i++)
            if ((int)topo->facts[i].id == id)
                add(&values, &topo->facts[i]);
        if (values.all.count == 0)
            continue;
        add_rows(table, topo, (nw_fact_id)id, &values);
        any = true;
    }
    if (!any) {
        nw_table_free(table);
        return NW_OK;
    }
    fputs(nw_tr("\nwhat else the source says:\n"), stream);
    return nw_table_print(table, stream);
}
