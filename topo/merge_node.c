/* What a node takes over from its counterpart in another source, and where both contradict. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "topo/merge.h"
#include "topo/read.h"

enum { MAX_TOLD = 64 };

/* --- disagreements --- */

static const char *source_of(const struct nw_topo *topo)
{
    return topo->source[0] != '\0' ? topo->source : "a source without a name";
}

static bool is_told(const struct nw_findings *list, const char *where, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].where, where) == 0 && strcmp(list->items[i].text, text) == 0)
            return true;
    return false;
}

nw_rc nw_merge_disagree(struct nw_merge *merge, int node, const char *what, const char *into_value,
                        const char *into_source, const char *from_value, const char *from_source)
{
    struct nw_topo *into = merge->into;
    const char *host = into->host[0] != '\0' ? into->host : merge->from->host;
    const char *device = node > 0 ? into->nodes[node].name : "";
    char where[160], text[1024];

    if (merge->told >= MAX_TOLD)
        return NW_OK;
    snprintf(where, sizeof where, "%s%s%s", host, host[0] != '\0' && device[0] != '\0' ? " " : "",
             device);
    snprintf(text, sizeof text, "%s: %.200s by %.220s, %.200s by %.220s", what, into_value,
             into_source != NULL && into_source[0] != '\0' ? into_source : source_of(into),
             from_value,
             from_source != NULL && from_source[0] != '\0' ? from_source : source_of(merge->from));
    nw_clean_text(text); /* where it was cut */
    if (is_told(&into->findings, where, text))
        return NW_OK;
    merge->told++;
    return nw_findings_add(&into->findings, NW_FINDING_WARN, "sources-disagree", where,
                           "read both again, at one time and on this machine; the first one counts "
                           "until then",
                           "%s", text);
}

/* --- products --- */

enum { FAMILY, FORM, SIZE, CATEGORIES, OTHER = CATEGORIES };
enum { MAX_WORDS = 16, WORD = 24 };

struct product_words {
    char words[CATEGORIES][MAX_WORDS][WORD];
    int count[CATEGORIES];
};

/* "h100" and "4090" are families, "sxm" "pcie" "nvl" forms, "80gb" a size. */
static int category_of(const char *word)
{
    static const char *const forms[] = {"sxm", "pcie", "nvl"};
    const size_t digits = strspn(word, "0123456789"), length = strlen(word);

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(word, forms[i]) == 0)
            return FORM;
    if (digits > 0 && digits < length &&
        (strcmp(word + digits, "gb") == 0 || strcmp(word + digits, "gib") == 0))
        return SIZE;
    if (digits == length)
        return digits >= 4 ? FAMILY : OTHER;
    if (strncmp(word, "hbm", 3) == 0)
        return OTHER;
    return strcspn(word, "0123456789") <= 3 && strpbrk(word, "0123456789") != NULL ? FAMILY : OTHER;
}

static void add_word(struct product_words *product, char *word)
{
    int category;

    if (strncmp(word, "sxm", 3) == 0)
        word[3] = '\0';
    category = category_of(word);
    if (category < CATEGORIES && product->count[category] < MAX_WORDS)
        snprintf(product->words[category][product->count[category]++], WORD, "%s", word);
}

static void split(const char *name, struct product_words *product)
{
    char word[WORD];
    size_t length = 0;

    *product = (struct product_words){0};
    for (;; name++) {
        if (isalnum((unsigned char)*name)) {
            if (length + 1 < sizeof word)
                word[length++] = (char)tolower((unsigned char)*name);
            continue;
        }
        word[length] = '\0';
        if (length > 0)
            add_word(product, word);
        length = 0;
        if (*name == '\0')
            return;
    }
}

bool nw_merge_models_differ(const char *a, const char *b)
{
    struct product_words x, y;

    split(a, &x);
    split(b, &y);
    for (int c = 0; c < CATEGORIES; c++) {
        bool shared = x.count[c] == 0 || y.count[c] == 0;

        for (int i = 0; i < x.count[c]; i++)
            for (int k = 0; k < y.count[c]; k++)
                shared |= strcmp(x.words[c][i], y.words[c][k]) == 0;
        if (!shared)
            return true;
    }
    return false;
}

/* --- fields --- */

static void take_text(char *into, size_t size, const char *from)
{
    if (into[0] == '\0')
        snprintf(into, size, "%s", from);
}

#define TAKE_TEXT(member) take_text(into->member, sizeof into->member, from->member)
#define TAKE(member, unknown)                                                                      \
    do {                                                                                           \
        if (into->member == (unknown))                                                             \
            into->member = from->member;                                                           \
    } while (0)

/* Words of `from` that `into` lacks, whole ones only. */
static void unite_words(char *into, size_t size, const char *from)
{
    for (from += strspn(from, " "); *from != '\0'; from += strspn(from, " ")) {
        const size_t length = strcspn(from, " "), had = strlen(into);
        bool known = false;

        for (const char *at = into; *at != '\0'; at += strspn(at, " ")) {
            known |= strcspn(at, " ") == length && strncmp(at, from, length) == 0;
            at += strcspn(at, " ");
        }
        if (!known && had + length + 2 <= size)
            snprintf(into + had, size - had, "%s%.*s", had > 0 ? " " : "", (int)length, from);
        from += length;
    }
}

/* "AMD bridge [1022:153e]": ids instead of a name. */
static bool is_nameless(const char *model)
{
    const size_t length = strlen(model);

    return length > 11 && model[length - 1] == ']' && model[length - 6] == ':' &&
           model[length - 11] == '[';
}

/* Who names a product: the driver rather than the PCI ID database; a name rather than ids; then
 * whoever says more. */
static bool names_better(const struct nw_merge *merge, const char *from, const char *into)
{
    const unsigned driver = NW_SOURCE_NVML | NW_SOURCE_SMI;
    const int by_driver =
        ((merge->from->sources & driver) != 0) - ((merge->into->sources & driver) != 0);
    const int named = is_nameless(into) - is_nameless(from);
    const int longer = (int)strlen(from) - (int)strlen(into);

    return by_driver != 0 ? by_driver > 0
           : named != 0   ? named > 0
           : longer != 0  ? longer > 0
                          : strcmp(from, into) > 0;
}

static nw_rc merge_model(struct nw_merge *merge, const struct nw_topo_node *from, int index)
{
    struct nw_topo_node *into = &merge->into->nodes[index];

    if (into->model[0] == '\0' || from->model[0] == '\0') {
        TAKE_TEXT(model);
        return NW_OK;
    }
    /* Other devices are named in as many ways as there are sources. */
    if (into->kind == NW_NODE_GPU && nw_merge_models_differ(into->model, from->model))
        return nw_merge_disagree(merge, index, "model", into->model, NULL, from->model, NULL);
    if (names_better(merge, from->model, into->model))
        snprintf(into->model, sizeof into->model, "%s", from->model);
    return NW_OK;
}

static nw_rc disagree_int(struct nw_merge *merge, int node, const char *what, const char *unit,
                          int into, int from)
{
    char values[2][32];

    snprintf(values[0], sizeof values[0], "%s%d", unit, into);
    snprintf(values[1], sizeof values[1], "%s%d", unit, from);
    return nw_merge_disagree(merge, node, what, values[0], NULL, values[1], NULL);
}

static nw_rc merge_numbers(struct nw_merge *merge, const struct nw_topo_node *from, int index)
{
    struct nw_topo_node *into = &merge->into->nodes[index];
    const double memory = (double)into->memory_bytes, other = (double)from->memory_bytes;

    if (into->numa >= 0 && from->numa >= 0 && into->numa != from->numa)
        NW_TRY(disagree_int(merge, index, "NUMA node", "", into->numa, from->numa));
    if (into->link_max_lanes > 0 && from->link_max_lanes > 0 &&
        into->link_max_lanes != from->link_max_lanes)
        NW_TRY(disagree_int(merge, index, "PCIe width at best", "x", into->link_max_lanes,
                            from->link_max_lanes));
    /* What the driver keeps for itself, and ECC, are in some figures and not in others. */
    if (into->kind == NW_NODE_GPU && memory > 0 && other > 0 &&
        fabs(memory - other) > 0.15 * fmax(memory, other))
        NW_TRY(disagree_int(merge, index, "memory in GiB", "", (int)(memory / 0x1p30),
                            (int)(other / 0x1p30)));
    TAKE(numa, -1);
    TAKE(pci_class, 0);
    TAKE(core_count, 0);
    TAKE(pu_count, 0);
    TAKE(memory_bytes, 0);
    TAKE(link_lanes, 0);
    TAKE(link_max_lanes, 0);
    TAKE(port_up, -1);
    if (!(into->link_bytes_per_s > 0))
        into->link_bytes_per_s = from->link_bytes_per_s;
    if (!(into->link_max_bytes_per_s > 0))
        into->link_max_bytes_per_s = from->link_max_bytes_per_s;
    if (!(into->rate_bits_per_s > 0))
        into->rate_bits_per_s = from->rate_bits_per_s;
    return NW_OK;
}

static nw_rc merge_pci(struct nw_merge *merge, const struct nw_topo_node *from, int index)
{
    struct nw_topo_node *into = &merge->into->nodes[index];
    char values[2][32];

    TAKE_TEXT(pci);
    if (into->pci_vendor != 0 && from->pci_vendor != 0 &&
        (into->pci_vendor != from->pci_vendor || (into->pci_device != 0 && from->pci_device != 0 &&
                                                  into->pci_device != from->pci_device))) {
        snprintf(values[0], sizeof values[0], "%04x:%04x", into->pci_vendor, into->pci_device);
        snprintf(values[1], sizeof values[1], "%04x:%04x", from->pci_vendor, from->pci_device);
        return nw_merge_disagree(merge, index, "PCI vendor and device", values[0], NULL, values[1],
                                 NULL);
    }
    TAKE(pci_vendor, 0);
    TAKE(pci_device, 0);
    return NW_OK;
}

/* The link layer that an RDMA tool reads is better than what the class of the device suggests. */
static void merge_fabric(const struct nw_merge *merge, const struct nw_topo_node *from,
                         struct nw_topo_node *into)
{
    const bool better = (merge->from->sources & NW_SOURCE_RDMA) != 0 &&
                        (merge->into->sources & NW_SOURCE_RDMA) == 0;

    if (into->fabric[0] == '\0' || (better && from->fabric[0] != '\0'))
        snprintf(into->fabric, sizeof into->fabric, "%s", from->fabric);
}

static bool is_placeholder(const struct nw_topo_node *node)
{
    return node->name[0] == '\0' || strcmp(node->name, node->pci) == 0 ||
           (node->kind == NW_NODE_NIC && nw_merge_is_general(node->name));
}

/* "gpu8": the first name that no GPU has. */
static void name_gpu(const struct nw_topo *topo, struct nw_topo_node *node)
{
    for (int number = 0;; number++) {
        bool taken = false;

        snprintf(node->name, sizeof node->name, "gpu%d", number);
        for (size_t i = 0; i < topo->node_count && !taken; i++)
            taken = &topo->nodes[i] != node && strcmp(topo->nodes[i].name, node->name) == 0;
        if (!taken)
            return;
    }
}

static void merge_name(const struct nw_merge *merge, const struct nw_topo_node *from,
                       struct nw_topo_node *into)
{
    if (into->kind == NW_NODE_PCI && from->kind != NW_NODE_PCI) {
        into->kind = from->kind;
        if (into->kind == NW_NODE_GPU)
            name_gpu(merge->into, into);
        else if (from->name[0] != '\0')
            snprintf(into->name, sizeof into->name, "%s", from->name);
    } else if (is_placeholder(into) && !is_placeholder(from)) {
        snprintf(into->name, sizeof into->name, "%s", from->name);
    }
    unite_words(into->os_names, sizeof into->os_names, from->os_names);
}

/* --- place in the tree --- */

/* How much a parent says of a place. */
static int detail(const struct nw_topo_node *parent)
{
    switch (parent->kind) {
    case NW_NODE_MACHINE:
        return 0;
    case NW_NODE_PACKAGE:
        return 1;
    case NW_NODE_NUMA:
        return 2;
    default:
        return parent->pci[0] == '\0' ? 3 : 4;
    }
}

static bool is_above(const struct nw_topo *topo, int above, int node)
{
    for (int depth = 0; node >= 0 && depth < 128; depth++) {
        if (node == above)
            return true;
        node = topo->nodes[node].parent;
    }
    return node >= 0; /* too deep: as good as a cycle */
}

/* Where the other source has `from`, as a node of `into`. */
static int parent_in_into(const struct nw_merge *merge, int from)
{
    for (int up = merge->from->nodes[from].parent; up >= 0; up = merge->from->nodes[up].parent)
        if (merge->into_of[up] >= 0)
            return merge->into_of[up];
    return 0;
}

/* The nearer place wins: one that says more, or one that lies below the other. */
static void merge_parent(struct nw_merge *merge, int from, int index)
{
    struct nw_topo *into = merge->into;
    const int now = into->nodes[index].parent, other = parent_in_into(merge, from);

    if (index == 0 || other == now || into->nodes[index].kind == NW_NODE_PORT ||
        is_above(into, index, other))
        return;
    if (detail(&into->nodes[other]) > detail(&into->nodes[now]) || is_above(into, now, other))
        into->nodes[index].parent = other;
}

static nw_rc add(struct nw_merge *merge, int from)
{
    const struct nw_topo_node *node = &merge->from->nodes[from];
    int index;

    if (merge->into->node_count >= NW_MERGE_MAX_NODES)
        return nw_fail(NW_EUSAGE, "%s and %s together have more than %d devices: no machine has",
                       source_of(merge->into), source_of(merge->from), (int)NW_MERGE_MAX_NODES);
    NW_TRY(nw_topo_add_node(merge->into, node->kind, parent_in_into(merge, from), &index));
    merge->into->nodes[index] = *node;
    merge->into->nodes[index].parent = parent_in_into(merge, from);
    merge->into->nodes[index].first_fact = merge->into->nodes[index].first_link = 0;
    if (node->kind == NW_NODE_GPU)
        for (int i = 1; i < index; i++)
            if (strcmp(merge->into->nodes[i].name, node->name) == 0)
                name_gpu(merge->into, &merge->into->nodes[index]);
    merge->into_of[from] = index;
    return NW_OK;
}

nw_rc nw_merge_node(struct nw_merge *merge, int from, int into)
{
    const struct nw_topo_node *node = &merge->from->nodes[from];

    if (into == NW_MERGE_NO_NODE)
        return add(merge, from);
    merge_name(merge, node, &merge->into->nodes[into]);
    merge_fabric(merge, node, &merge->into->nodes[into]);
    NW_TRY(merge_model(merge, node, into));
    NW_TRY(merge_pci(merge, node, into));
    NW_TRY(merge_numbers(merge, node, into));
    merge_parent(merge, from, into);
    return NW_OK;
}
