#include "topo/facts.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/topo.h"

const struct nw_fact_row nw_fact_rows[NW_FACT_COUNT] = {
#define X(fact, key_text, type_id, flag_bits, title_text)                                          \
    [fact] = {key_text, type_id, flag_bits, title_text},
    NW_FACT_MAP(X)
#undef X
};

int nw_fact_find(const char *key)
{
    for (int i = 0; i < NW_FACT_COUNT; i++)
        if (strcmp(nw_fact_rows[i].key, key) == 0)
            return i;
    return -1;
}

const struct nw_fact *nw_topo_fact(const struct nw_topo *topo, int node, nw_fact_id id)
{
    if (node < 0 || (size_t)node >= topo->node_count)
        return NULL;
    for (int i = topo->nodes[node].first_fact; i > 0; i = topo->facts[i - 1].next)
        if (topo->facts[i - 1].id == id)
            return &topo->facts[i - 1];
    return NULL;
}

double nw_topo_number(const struct nw_topo *topo, int node, nw_fact_id id)
{
    const struct nw_fact *fact = nw_topo_fact(topo, node, id);

    return fact != NULL ? fact->number : NAN;
}

const char *nw_topo_text(const struct nw_topo *topo, int node, nw_fact_id id)
{
    const struct nw_fact *fact = nw_topo_fact(topo, node, id);

    return fact != NULL && fact->text[0] != '\0' ? fact->text : NULL;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);

    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool nw_fact_is_possible(nw_fact_id id, double number)
{
    static const nw_fact_id small[] = {NW_FACT_PYTORCH_GPUS,
                                       NW_FACT_GPUS_ATTACHED,
                                       NW_FACT_LINK_GENERATION,
                                       NW_FACT_LINK_MAX_GENERATION,
                                       NW_FACT_DEVICE_MAX_GENERATION,
                                       NW_FACT_LINK_LOADED,
                                       NW_FACT_PEERS,
                                       NW_FACT_CAPABILITY,
                                       NW_FACT_GPU_INDEX,
                                       NW_FACT_NVLINK_COUNT,
                                       NW_FACT_NVLINK_INACTIVE_COUNT,
                                       NW_FACT_GPU_NUMA_ID,
                                       NW_FACT_CARD_PORT,
                                       NW_FACT_WIDTH,
                                       NW_FACT_LID};
    /* 2^64 bytes are no limit; other numbers fit a whole number of 64 bits. */
    const double most = ends_with(nw_fact_rows[id].key, "_bytes") ? 18446744073709551616.0 : 9e18;

    if (!isfinite(number))
        return false;
    if (id == NW_FACT_TEMPERATURE)
        return number > -300 && number < 1000;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (small[i] == id)
            return number >= 0 && number <= 65535;
    return number >= 0 && number <= most;
}

static nw_rc place(struct nw_topo *topo, int node, nw_fact_id id, const char *source,
                   struct nw_fact **fact_out)
{
    struct nw_fact *fact = (struct nw_fact *)nw_topo_fact(topo, node, id);
    int next;

    if (node < 0 || (size_t)node >= topo->node_count)
        return nw_fail(NW_EUSAGE, "a fact of node %d; the machine has nodes 0 to %zu", node,
                       topo->node_count - 1);
    if (fact == NULL) {
        if (topo->fact_count == topo->fact_capacity) {
            const size_t capacity = topo->fact_capacity > 0 ? 2 * topo->fact_capacity : 32;
            struct nw_fact *facts = realloc(topo->facts, capacity * sizeof *facts);

            if (facts == NULL)
                return nw_fail(NW_ENOMEM, "out of memory for %zu facts of a machine", capacity);
            topo->facts = facts;
            topo->fact_capacity = capacity;
        }
        fact = &topo->facts[topo->fact_count++];
        next = topo->nodes[node].first_fact;
        topo->nodes[node].first_fact = (int)topo->fact_count;
    } else {
        next = fact->next;
    }
    *fact = (struct nw_fact){.node = node, .next = next, .id = id, .number = NAN};
    snprintf(fact->source, sizeof fact->source, "%s", source);
    nw_clean_text(fact->source);
    *fact_out = fact;
    return NW_OK;
}

nw_rc nw_topo_set_number(struct nw_topo *topo, int node, nw_fact_id id, double number,
                         const char *source)
{
    struct nw_fact *fact;

    if (!nw_fact_is_possible(id, number))
        return NW_OK;
    NW_TRY(place(topo, node, id, source, &fact));
    fact->number = number;
    return NW_OK;
}

nw_rc nw_topo_set_text(struct nw_topo *topo, int node, nw_fact_id id, const char *text,
                       const char *source)
{
    char squeezed[sizeof((struct nw_fact *)0)->text];
    struct nw_fact *fact;

    nw_squeeze(text != NULL ? text : "", squeezed, sizeof squeezed);
    nw_clean_text(squeezed); /* of a device, and where it was cut */
    if (squeezed[0] == '\0')
        return NW_OK;
    NW_TRY(place(topo, node, id, source, &fact));
    memcpy(fact->text, squeezed, sizeof squeezed);
    return NW_OK;
}

const char *nw_fact_value_text(const struct nw_fact *fact, char text[224])
{
    const char *key = nw_fact_rows[fact->id].key;
    char number[32];

    if (nw_fact_rows[fact->id].type == NW_FACT_TEXT)
        snprintf(text, 224, "%s", fact->text);
    else if (nw_fact_rows[fact->id].type == NW_FACT_YES_NO)
        snprintf(text, 224, "%s", fact->number != 0 ? "yes" : "no");
    else if (ends_with(key, "bytes_per_s"))
        snprintf(text, 224, "%s GB/s", nw_format_gb_per_s(number, fact->number));
    else if (ends_with(key, "bits_per_s"))
        snprintf(text, 224, "%.4g Gb/s", fact->number / 1e9);
    else if (ends_with(key, "_bytes") && fact->number >= 1.8446744073709551e19)
        snprintf(text, 224, "no limit");
    else if (ends_with(key, "_bytes") && fact->number >= 0)
        snprintf(text, 224, "%s", nw_format_bytes(number, (uint64_t)fact->number));
    else if (ends_with(key, "_hz"))
        snprintf(text, 224, "%.0f MHz", fact->number / 1e6);
    else if (ends_with(key, "_w"))
        snprintf(text, 224, "%.4g W", fact->number);
    else if (ends_with(key, "_c"))
        snprintf(text, 224, "%.3g C", fact->number);
    else if (ends_with(key, "_s"))
        snprintf(text, 224, "%s", nw_format_ns(number, fact->number * 1e9));
    else
        snprintf(text, 224, "%.15g", fact->number);
    return text;
}
