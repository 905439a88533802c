/* Several sources of one machine made one. Nodes of `into` are renumbered. */
#include "topo/merge.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/read.h"

enum { MAX_FINDINGS = 4000 }; /* the reader of the JSON takes 4096 */

/* --- is it one machine? --- */

/* "node1" and "node1.cluster.local" are one host; so is what no source names. */
static bool same_host(const char *a, const char *b)
{
    const size_t x = strcspn(a, "."), y = strcspn(b, ".");

    if (a[0] == '\0' || b[0] == '\0')
        return true;
    if (a[x] == '\0' || b[y] == '\0')
        return x == y && strncasecmp(a, b, x) == 0;
    return strcasecmp(a, b) == 0;
}

static nw_rc check_host(const struct nw_topo *into, const struct nw_topo *from)
{
    if (same_host(into->host, from->host))
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "%s is of host %s, %s of host %s: two machines are not merged; give the files "
                   "of one machine",
                   into->source, into->host, from->source, from->host);
}

/* --- gaps --- */

static bool has_devices(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind >= NW_NODE_GPU)
            return true;
    return false;
}

static int nvidia_count(const struct nw_topo *topo)
{
    int count = 0;

    for (size_t i = 0; i < topo->node_count; i++)
        count += topo->nodes[i].kind == NW_NODE_GPU && nw_topo_is_nvidia(&topo->nodes[i]);
    return count;
}

/* Is anything read of NVLink, be it that there is none? */
static bool knows_nvlink(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->link_count; i++)
        if (topo->links[i].kind == NW_LINK_NVLINK)
            return true;
    for (size_t i = 0; i < topo->node_count; i++)
        if (nw_topo_number(topo, (int)i, NW_FACT_NVLINK_COUNT) >= 0)
            return true;
    for (size_t i = 0; i < topo->stated_count; i++)
        if (topo->nodes[topo->stated[i].a].kind == NW_NODE_GPU &&
            topo->nodes[topo->stated[i].b].kind == NW_NODE_GPU)
            return true;
    return nw_merge_is_whole(topo) && (topo->gaps & NW_TOPO_NO_NVLINK) == 0 &&
           nvidia_count(topo) >= 2;
}

static unsigned unite_gaps(const struct nw_topo *into, const struct nw_topo *from)
{
    const unsigned both = into->gaps & from->gaps, any = into->gaps | from->gaps;
    const struct nw_topo *cpus = into->pu_count > 0 || from->pu_count == 0 ? into : from;
    unsigned gaps = cpus->gaps & NW_TOPO_RESTRICTED;

    if ((any & NW_TOPO_NO_NVLINK) != 0 && !knows_nvlink(into) && !knows_nvlink(from))
        gaps |= NW_TOPO_NO_NVLINK;
    if (nw_merge_is_whole(into) || nw_merge_is_whole(from))
        return gaps;
    if ((both & NW_TOPO_NO_IO) != 0)
        return gaps | (both & (NW_TOPO_NO_IO | NW_TOPO_PARTIAL));
    if ((any & NW_TOPO_NO_IO) == 0 || has_devices(into) || has_devices(from))
        return gaps | NW_TOPO_PARTIAL;
    return gaps | NW_TOPO_NO_IO;
}

/* --- findings --- */

/* "gpu0" of one source may be "gpu7" of the other. */
static nw_rc rename_words(const struct nw_merge *merge, const char *text, char **text_out)
{
    char *copy = NULL;
    size_t size;
    FILE *stream = open_memstream(&copy, &size);

    if (stream == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for a finding");
    while (*text != '\0') {
        size_t length = 0;
        const char *word = NULL;

        while (isalnum((unsigned char)text[length]) || text[length] == '_')
            length++;
        for (size_t f = 1; f < merge->from->node_count && length > 3 && word == NULL; f++)
            if (merge->from->nodes[f].kind == NW_NODE_GPU && merge->into_of[f] >= 0 &&
                strncmp(merge->from->nodes[f].name, text, length) == 0 &&
                merge->from->nodes[f].name[length] == '\0')
                word = merge->into->nodes[merge->into_of[f]].name;
        if (word != NULL)
            fputs(word, stream);
        else
            fwrite(text, 1, length > 0 ? length : 1, stream);
        text += length > 0 ? length : 1;
    }
    if (fclose(stream) != 0)
        return nw_fail(NW_ENOMEM, "out of memory for a finding");
    *text_out = copy;
    return NW_OK;
}

static bool is_same(const struct nw_finding *a, const struct nw_finding *b)
{
    return strcmp(a->code, b->code) == 0 && strcmp(a->where, b->where) == 0 &&
           strcmp(a->text, b->text) == 0;
}

static nw_rc take_finding(struct nw_merge *merge, const struct nw_finding *finding)
{
    struct nw_findings *list = &merge->into->findings;
    struct nw_finding copy = *finding;
    nw_rc rc;

    copy.where = copy.text = NULL;
    rc = rename_words(merge, finding->where, &copy.where);
    if (rc == NW_OK)
        rc = rename_words(merge, finding->text, &copy.text);
    bool known = list->count >= MAX_FINDINGS;

    for (size_t i = 0; i < list->count && rc == NW_OK && !known; i++)
        known = is_same(&list->items[i], &copy);
    if (rc == NW_OK && !known)
        rc = nw_findings_copy_one(list, &copy);
    free(copy.where);
    free(copy.text);
    return rc;
}

/* What is said of a gap that is filled, and what nw_topo_judge says: it judges the whole anew. */
static bool is_outdated(const char *code, unsigned gaps, bool judged_anew)
{
    if (judged_anew && nw_topo_is_judged(code))
        return true;
    return ((gaps & NW_TOPO_NO_NVLINK) == 0 && strcmp(code, "nvlink-unknown") == 0) ||
           ((gaps & NW_TOPO_NO_IO) == 0 && strncmp(code, "io-not-", 7) == 0);
}

static void drop_outdated(struct nw_findings *list, unsigned gaps, bool judged_anew)
{
    struct nw_findings kept = {.capacity = list->capacity, .items = list->items};

    for (size_t i = 0; i < list->count; i++) {
        const struct nw_finding item = list->items[i];

        if (!is_outdated(item.code, gaps, judged_anew)) {
            kept.items[kept.count++] = item;
            continue;
        }
        free(item.code);
        free(item.where);
        free(item.text);
        free(item.remedy);
        free(item.effect);
    }
    *list = kept;
}

static nw_rc merge_findings(struct nw_merge *merge, unsigned gaps, bool judged_anew)
{
    const struct nw_findings *list = &merge->from->findings;

    drop_outdated(&merge->into->findings, gaps, judged_anew);
    for (size_t i = 0; i < list->count; i++)
        if (!is_outdated(list->items[i].code, gaps, judged_anew))
            NW_TRY(take_finding(merge, &list->items[i]));
    return NW_OK;
}

/* --- stated against derived --- */

/* What a tool said of a pair against what the tree of another source shows: one finding for all. */
static nw_rc judge_classes(struct nw_merge *merge, size_t stated_before, bool had_tree)
{
    struct nw_topo *into = merge->into;
    const struct nw_topo_stated *first = NULL;
    char what[200], said[64], shown[64];
    int count = 0;

    if (into->stated_count == stated_before && had_tree)
        return NW_OK; /* nothing new */
    for (size_t i = 0; i < into->stated_count; i++) {
        const struct nw_topo_stated *stated = &into->stated[i];
        const nw_class tree = nw_topo_class_of_tree(into, stated->a, stated->b);

        if (stated->class_id <= NW_CLASS_NV || tree <= NW_CLASS_NV || stated->class_id == tree)
            continue;
        count++;
        if (first == NULL)
            first = stated;
    }
    if (first == NULL)
        return NW_OK;
    snprintf(what, sizeof what, "path to %.60s (the first of %d such pairs)",
             into->nodes[first->b].name, count);
    snprintf(said, sizeof said, "%s", nw_class_name(first->class_id));
    snprintf(shown, sizeof shown, "%s",
             nw_class_name(nw_topo_class_of_tree(into, first->a, first->b)));
    return nw_merge_disagree(merge, first->a, what, said, "the tool that lists it", shown,
                             "the tree of PCI devices");
}

/* --- all of it --- */

static bool has_tree(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (topo->nodes[i].kind == NW_NODE_BRIDGE)
            return true;
    return false;
}

static void unite_source(struct nw_topo *into, const struct nw_topo *from)
{
    const size_t had = strlen(into->source), more = strlen(from->source);

    if (more == 0 || strstr(into->source, from->source) != NULL)
        return;
    if (had + more + 3 < sizeof into->source)
        snprintf(into->source + had, sizeof into->source - had, "%s%s", had > 0 ? " + " : "",
                 from->source);
    else if (had + 6 < sizeof into->source && strstr(into->source, " + …") == NULL)
        strcpy(into->source + had, " + …");
}

static nw_rc merge_cpus(struct nw_merge *merge)
{
    struct nw_topo *into = merge->into;
    const struct nw_topo *from = merge->from;
    char values[2][32];

    if (into->core_count > 0 && from->core_count > 0 && into->core_count != from->core_count &&
        ((into->gaps | from->gaps) & (NW_TOPO_RESTRICTED | NW_TOPO_PARTIAL)) == 0) {
        snprintf(values[0], sizeof values[0], "%d", into->core_count);
        snprintf(values[1], sizeof values[1], "%d", from->core_count);
        NW_TRY(nw_merge_disagree(merge, -1, "number of cores", values[0], NULL, values[1], NULL));
    }
    if (into->pu_count == 0) {
        into->pu_count = from->pu_count;
        into->pu_allowed_count = from->pu_allowed_count;
        into->pu_complete_count = from->pu_complete_count;
    }
    if (into->core_count == 0)
        into->core_count = from->core_count;
    if (into->memory_bytes == 0)
        into->memory_bytes = from->memory_bytes;
    return NW_OK;
}

static void merge_names(struct nw_topo *into, const struct nw_topo *from)
{
    /* the longer of "node1" and "node1.cluster.local" */
    if (strlen(from->host) > strlen(into->host))
        snprintf(into->host, sizeof into->host, "%s", from->host);
    if (into->os[0] == '\0')
        snprintf(into->os, sizeof into->os, "%s", from->os);
    unite_source(into, from);
}

static nw_rc merge_all(struct nw_merge *merge)
{
    struct nw_topo *into = merge->into;
    const struct nw_topo *from = merge->from;
    const bool had_tree = has_tree(into) || !has_tree(from);
    const size_t stated_before = into->stated_count;
    const bool judges = ((into->sources | from->sources) & NW_SOURCE_HWLOC) != 0;
    const unsigned gaps = unite_gaps(into, from);

    NW_TRY(nw_merge_match(merge));
    NW_TRY(merge_cpus(merge));
    for (int f = 0; f < (int)from->node_count; f++)
        if (merge->into_of[f] != NW_MERGE_DROP)
            NW_TRY(nw_merge_node(merge, f, merge->into_of[f]));
    NW_TRY(nw_merge_facts(merge));
    NW_TRY(nw_merge_links(merge));
    NW_TRY(nw_merge_stated(merge));
    NW_TRY(nw_merge_gids(merge));
    NW_TRY(judge_classes(merge, stated_before, had_tree));
    NW_TRY(merge_findings(merge, gaps, judges));
    into->gaps = gaps;
    into->sources |= from->sources;
    merge_names(into, from);
    NW_TRY(nw_merge_order(into));
    into->package_count = nw_topo_count(into, NW_NODE_PACKAGE);
    into->numa_count = nw_topo_count(into, NW_NODE_NUMA);
    return judges ? nw_topo_judge(into) : NW_OK;
}

bool nw_merge_is_fabric(const struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, "fabric-view") == 0)
            return true;
    return false;
}

/* NW_OK and *ignored_out where `from` shows many machines: nothing of it is one of this machine's
 * devices for certain. */
static nw_rc check_fabric(struct nw_topo *into, const struct nw_topo *from, bool *ignored_out)
{
    *ignored_out = nw_merge_is_fabric(from);
    if (*ignored_out)
        return nw_findings_add(
            &into->findings, NW_FINDING_INFO, "fabric-ignored", from->source,
            "for one machine give ibstat or ibv_devinfo of that machine",
            "%.200s shows a fabric, not one machine: nothing of it is taken over", from->source);
    if (nw_merge_is_fabric(into))
        return nw_fail(NW_EUSAGE,
                       "%s shows a fabric, not one machine: %s is not merged into it; give ibstat "
                       "or ibv_devinfo of the machine",
                       into->source, from->source);
    return NW_OK;
}

nw_rc nw_topo_merge(struct nw_topo *into, const struct nw_topo *from)
{
    bool ignored;

    struct nw_merge merge = {.into = into, .from = from, .into_count = (int)into->node_count};
    nw_rc rc;

    NW_TRY(check_fabric(into, from, &ignored));
    if (ignored)
        return NW_OK;
    NW_TRY(check_host(into, from));
    merge.into_of = calloc(from->node_count + 1, sizeof *merge.into_of);
    merge.from_of = calloc(into->node_count + 1, sizeof *merge.from_of);
    rc = merge.into_of != NULL && merge.from_of != NULL
             ? NW_OK
             : nw_fail(NW_ENOMEM, "out of memory for %zu devices", from->node_count);
    for (size_t i = 0; i < from->node_count && rc == NW_OK; i++)
        merge.into_of[i] = NW_MERGE_NO_NODE;
    for (size_t i = 0; i < into->node_count && rc == NW_OK; i++)
        merge.from_of[i] = -1;
    if (rc == NW_OK)
        rc = merge_all(&merge);
    free(merge.into_of);
    free(merge.from_of);
    return rc;
}
