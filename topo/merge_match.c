/* Which node of one source is which of the other: by what identifies it, else by number where both
 * show equally many. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/merge.h"

int nw_merge_number(const char *name)
{
    const size_t length = strlen(name);
    size_t digits = 0;

    while (digits < length && digits < 7 && isdigit((unsigned char)name[length - 1 - digits]))
        digits++;
    return digits > 0 ? atoi(name + length - digits) : -1;
}

static const struct nw_topo_node *from_node(const struct nw_merge *merge, int f)
{
    return &merge->from->nodes[f];
}

static void join(struct nw_merge *merge, int f, int i)
{
    merge->into_of[f] = i;
    merge->from_of[i] = f;
}

static bool is_free(const struct nw_merge *merge, int f, int i)
{
    return merge->into_of[f] == NW_MERGE_NO_NODE && merge->from_of[i] < 0;
}

static bool differ(const char *a, const char *b)
{
    return a != NULL && b != NULL && a[0] != '\0' && b[0] != '\0' && strcasecmp(a, b) != 0;
}

/* What identifies a device is known of both and is not the same. */
static bool contradict(const struct nw_merge *merge, int f, int i)
{
    static const nw_fact_id ids[] = {NW_FACT_UUID, NW_FACT_NODE_GUID, NW_FACT_MAC};

    if (differ(from_node(merge, f)->pci, merge->into->nodes[i].pci))
        return true;
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++)
        if (differ(nw_topo_text(merge->from, f, ids[k]), nw_topo_text(merge->into, i, ids[k])))
            return true;
    return false;
}

/* --- by what identifies a node --- */

static bool same_pci(const struct nw_merge *merge, int f, int i)
{
    const struct nw_topo_node *a = from_node(merge, f), *b = &merge->into->nodes[i];

    if (a->pci[0] == '\0' || strcmp(a->pci, b->pci) != 0)
        return false;
    if (a->kind == NW_NODE_DISK && b->kind == NW_NODE_DISK) /* a controller may have several */
        return !differ(a->name, b->name);
    return a->kind == b->kind || (a->kind != NW_NODE_BRIDGE && b->kind != NW_NODE_BRIDGE &&
                                  (a->kind == NW_NODE_PCI || b->kind == NW_NODE_PCI));
}

static bool same_text(const struct nw_merge *merge, int f, int i, nw_fact_id id)
{
    const char *a = nw_topo_text(merge->from, f, id), *b = nw_topo_text(merge->into, i, id);

    return a != NULL && b != NULL && strcasecmp(a, b) == 0;
}

static bool same_id(const struct nw_merge *merge, int f, int i)
{
    if (from_node(merge, f)->kind != merge->into->nodes[i].kind)
        return false;
    switch (from_node(merge, f)->kind) {
    case NW_NODE_GPU:
        return same_text(merge, f, i, NW_FACT_UUID);
    case NW_NODE_NIC:
        return same_text(merge, f, i, NW_FACT_NODE_GUID) || same_text(merge, f, i, NW_FACT_MAC);
    default:
        return false;
    }
}

/* "NIC0": a number of one listing, no name of the system. */
bool nw_merge_is_general(const char *name)
{
    return strncasecmp(name, "NIC", 3) == 0 && isdigit((unsigned char)name[3]);
}

static bool has_word(const char *list, const char *word, size_t length)
{
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Do two blank-separated lists share a name of the system? */
static bool share_name(const char *a, const char *b)
{
    char word[64];

    for (a += strspn(a, " "); *a != '\0'; a += strspn(a, " ")) {
        const size_t length = strcspn(a, " ");

        if (length < sizeof word) {
            snprintf(word, sizeof word, "%.*s", (int)length, a);
            if (!nw_merge_is_general(word) && has_word(b, word, length))
                return true;
        }
        a += length;
    }
    return false;
}

static void nic_names(const struct nw_topo *topo, int node, char text[256])
{
    const char *interface = nw_topo_text(topo, node, NW_FACT_NETDEV);

    snprintf(text, 256, "%s %s %.60s", topo->nodes[node].name, topo->nodes[node].os_names,
             interface != NULL ? interface : "");
}

static bool same_name(const struct nw_merge *merge, int f, int i)
{
    const struct nw_topo_node *a = from_node(merge, f), *b = &merge->into->nodes[i];
    char names[2][256];

    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case NW_NODE_NUMA:
        return a->numa >= 0 && a->numa == b->numa;
    case NW_NODE_NIC:
        nic_names(merge->from, f, names[0]);
        nic_names(merge->into, i, names[1]);
        return share_name(names[0], names[1]) && !differ(a->pci, b->pci);
    case NW_NODE_PACKAGE:
    case NW_NODE_BRIDGE:
    case NW_NODE_DISK:
    case NW_NODE_PCI:
        return a->name[0] != '\0' && strcmp(a->name, b->name) == 0 && !differ(a->pci, b->pci);
    default:
        return false;
    }
}

/* Ports are named "mlx5_0/1"; of one NIC the number tells them apart. */
static bool same_port(const struct nw_merge *merge, int f, int i)
{
    const struct nw_topo_node *a = from_node(merge, f), *b = &merge->into->nodes[i];

    if (a->kind != NW_NODE_PORT || b->kind != NW_NODE_PORT)
        return false;
    if (a->parent > 0 && merge->into_of[a->parent] == b->parent)
        return nw_merge_number(a->name) == nw_merge_number(b->name);
    return a->name[0] != '\0' && strcmp(a->name, b->name) == 0;
}

static void match_by(struct nw_merge *merge,
                     bool (*same)(const struct nw_merge *merge, int f, int i))
{
    for (int f = 1; f < (int)merge->from->node_count; f++)
        for (int i = 1; i < merge->into_count && merge->into_of[f] == NW_MERGE_NO_NODE; i++)
            if (merge->from_of[i] < 0 && same(merge, f, i))
                join(merge, f, i);
}

/* --- by number --- */

struct list {
    const struct nw_topo *topo;
    int *nodes;
    int count;
};

/* The number that nvidia-smi gives a GPU, else that of its name. */
static int number_of(const struct nw_topo *topo, int node)
{
    const double index = nw_topo_number(topo, node, NW_FACT_GPU_INDEX);

    return index >= 0 && index < 1e6 ? (int)index : nw_merge_number(topo->nodes[node].name);
}

static int by_number(const void *a, const void *b, void *arg)
{
    const struct nw_topo *topo = arg;
    const int x = *(const int *)a, y = *(const int *)b;
    const int p = number_of(topo, x), q = number_of(topo, y);

    return p != q ? (p > q) - (p < q) : (x > y) - (x < y);
}

static bool is_rdma(const struct nw_topo_node *nic)
{
    return strcmp(nic->fabric, "ethernet") != 0 && strcmp(nic->fabric, "wifi") != 0;
}

/* nvidia-smi and NVML list NVIDIA's GPUs only; topo -m lists RDMA devices only. */
static bool is_candidate(const struct nw_topo *topo, int node, nw_node_kind kind, bool nvidia)
{
    const struct nw_topo_node *at = &topo->nodes[node];

    if (at->kind != kind)
        return false;
    return kind == NW_NODE_NIC ? is_rdma(at)
                               : !nvidia || at->pci_vendor == 0 || nw_topo_is_nvidia(at);
}

/* Free nodes of a kind in order of their numbers. */
static nw_rc collect(const struct nw_topo *topo, const int *taken, int count, nw_node_kind kind,
                     bool nvidia, struct list *list)
{
    *list = (struct list){.topo = topo, .nodes = calloc((size_t)count + 1, sizeof *list->nodes)};
    if (list->nodes == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %d devices", count);
    for (int i = 1; i < count; i++)
        if (taken[i] == -1 && is_candidate(topo, i, kind, nvidia))
            list->nodes[list->count++] = i;
    if (list->count > 1)
        qsort_r(list->nodes, (size_t)list->count, sizeof *list->nodes, by_number, (void *)topo);
    return NW_OK;
}

static bool any_contradicts(const struct nw_merge *merge, const struct list *from,
                            const struct list *into)
{
    for (int k = 0; k < from->count; k++)
        if (contradict(merge, from->nodes[k], into->nodes[k]))
            return true;
    return false;
}

static void match_equal_numbers(struct nw_merge *merge, const struct list *from,
                                const struct list *into)
{
    for (int f = 0; f < from->count; f++)
        for (int i = 0; i < into->count; i++)
            if (is_free(merge, from->nodes[f], into->nodes[i]) &&
                number_of(merge->from, from->nodes[f]) == number_of(merge->into, into->nodes[i]) &&
                !contradict(merge, from->nodes[f], into->nodes[i]))
                join(merge, from->nodes[f], into->nodes[i]);
}

/* Devices that nothing identifies must not stand beside those they may be. */
static void drop_unidentified(struct nw_merge *merge, const struct list *from)
{
    for (int k = 0; k < from->count; k++)
        if (merge->into_of[from->nodes[k]] == NW_MERGE_NO_NODE &&
            from_node(merge, from->nodes[k])->pci[0] == '\0')
            merge->into_of[from->nodes[k]] = NW_MERGE_DROP;
}

static void match_gpu_lists(struct nw_merge *merge, const struct list *from,
                            const struct list *into)
{
    const bool explained = from->count < into->count ? !nw_merge_is_whole(merge->from)
                                                     : !nw_merge_is_whole(merge->into);

    if (from->count == 0 || into->count == 0)
        return;
    if (from->count == into->count && !any_contradicts(merge, from, into))
        for (int k = 0; k < from->count; k++)
            join(merge, from->nodes[k], into->nodes[k]);
    else if (from->count != into->count && explained)
        match_equal_numbers(merge, from, into);
    if (!explained || from->count == into->count)
        drop_unidentified(merge, from);
}

static bool all_general(const struct nw_topo *topo, const struct list *list)
{
    for (int k = 0; k < list->count; k++)
        if (!nw_merge_is_general(topo->nodes[list->nodes[k]].name))
            return false;
    return list->count > 0;
}

static void match_nic_lists(struct nw_merge *merge, const struct list *from,
                            const struct list *into)
{
    const bool from_general = all_general(merge->from, from);

    if (!from_general && !all_general(merge->into, into))
        return;
    if (from->count == into->count && !any_contradicts(merge, from, into))
        for (int k = 0; k < from->count; k++)
            join(merge, from->nodes[k], into->nodes[k]);
    else if (from_general && into->count > 0)
        drop_unidentified(merge, from);
}

static nw_rc match_by_number(struct nw_merge *merge, nw_node_kind kind)
{
    const unsigned nvidia_only = NW_SOURCE_SMI | NW_SOURCE_NVML;
    struct list from = {0}, into = {0};
    nw_rc rc = collect(merge->from, merge->into_of, (int)merge->from->node_count, kind,
                       (merge->into->sources & nvidia_only) != 0, &from);

    if (rc == NW_OK)
        rc = collect(merge->into, merge->from_of, merge->into_count, kind,
                     (merge->from->sources & nvidia_only) != 0, &into);
    if (rc == NW_OK && kind == NW_NODE_GPU)
        match_gpu_lists(merge, &from, &into);
    else if (rc == NW_OK)
        match_nic_lists(merge, &from, &into);
    free(from.nodes);
    free(into.nodes);
    return rc;
}

static int count_matched(const struct nw_merge *merge, nw_node_kind kind)
{
    int count = 0;

    for (int f = 1; f < (int)merge->from->node_count; f++)
        count += from_node(merge, f)->kind == kind && merge->into_of[f] >= 0;
    return count;
}

/* Where the first GPU without a counterpart is. */
static const char *unmatched_gpu(const struct nw_topo *topo, const int *other)
{
    for (size_t i = 1; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_GPU && other[i] < 0)
            return topo->nodes[i].pci[0] != '\0' ? topo->nodes[i].pci : topo->nodes[i].name;
    return "none";
}

/* A source that shows all devices lacks some that the other one shows. */
static nw_rc judge_gpu_count(struct nw_merge *merge)
{
    const int into = nw_topo_count(merge->into, NW_NODE_GPU);
    const int from = nw_topo_count(merge->from, NW_NODE_GPU);
    const int both = count_matched(merge, NW_NODE_GPU);
    const bool into_lacks = both < from && nw_merge_is_whole(merge->into);
    const bool from_lacks = both < into && nw_merge_is_whole(merge->from);
    char values[2][32];

    if (into == 0 || from == 0 || (!into_lacks && !from_lacks))
        return NW_OK;
    if (into == from)
        return nw_merge_disagree(merge, -1, "where the GPUs are",
                                 unmatched_gpu(merge->into, merge->from_of), NULL,
                                 unmatched_gpu(merge->from, merge->into_of), NULL);
    snprintf(values[0], sizeof values[0], "%d", into);
    snprintf(values[1], sizeof values[1], "%d", from);
    return nw_merge_disagree(merge, -1, "number of GPUs", values[0], NULL, values[1], NULL);
}

/* Packages and NUMA nodes: where both sources show the machine whole, none is added. */
static void drop_surplus(struct nw_merge *merge, nw_node_kind kind)
{
    if (nw_topo_count(merge->into, kind) == 0 || ((merge->into->gaps & NW_TOPO_PARTIAL) != 0))
        return;
    for (int f = 1; f < (int)merge->from->node_count; f++)
        if (from_node(merge, f)->kind == kind && merge->into_of[f] == NW_MERGE_NO_NODE)
            merge->into_of[f] = NW_MERGE_DROP;
}

nw_rc nw_merge_match(struct nw_merge *merge)
{
    join(merge, 0, 0);
    match_by(merge, same_pci);
    match_by(merge, same_id);
    match_by(merge, same_name);
    NW_TRY(match_by_number(merge, NW_NODE_GPU));
    NW_TRY(match_by_number(merge, NW_NODE_NIC));
    match_by(merge, same_port);
    drop_surplus(merge, NW_NODE_PACKAGE);
    drop_surplus(merge, NW_NODE_NUMA);
    return judge_gpu_count(merge);
}
