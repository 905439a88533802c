/* Path classes in nvidia-smi's sense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/topo.h"

static const struct {
    const char *name, *title;
} classes[] = {
#define X(class_id, name_text, title_text) [class_id] = {name_text, title_text},
    NW_CLASS_MAP(X)
#undef X
};

const char *nw_class_name(nw_class class_id)
{
    return (unsigned)class_id < NW_CLASS_COUNT ? classes[class_id].name : "?";
}

const char *nw_class_title(nw_class class_id)
{
    return (unsigned)class_id < NW_CLASS_COUNT ? classes[class_id].title : "unknown";
}

nw_class nw_class_parse(const char *text, int *nvlinks_out)
{
    uint64_t nvlinks;

    *nvlinks_out = 0;
    if (strncmp(text, "NV", 2) == 0 && text[2] != '\0') {
        if (nw_parse_u64(text + 2, 1, 1000, &nvlinks) != NW_OK) {
            nw_clear_error();
            return NW_CLASS_UNKNOWN;
        }
        *nvlinks_out = (int)nvlinks;
        return NW_CLASS_NV;
    }
    for (int i = NW_CLASS_SELF; i < NW_CLASS_COUNT; i++)
        if (i != NW_CLASS_NV && strcmp(classes[i].name, text) == 0)
            return (nw_class)i;
    return NW_CLASS_UNKNOWN;
}

/* Grows `*list` of elements of `size` bytes by one. */
static nw_rc grow(void **list, size_t *count, size_t *capacity, size_t size)
{
    if (*count == *capacity) {
        const size_t wanted = *capacity > 0 ? 2 * *capacity : 32;
        void *grown = realloc(*list, wanted * size);

        if (grown == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for a topology of %zu pairs", wanted);
        *list = grown;
        *capacity = wanted;
    }
    ++*count;
    return NW_OK;
}

nw_rc nw_topo_state(struct nw_topo *topo, int a, int b, nw_class class_id, int nvlinks)
{
    const struct nw_topo_stated stated = {
        .a = a < b ? a : b, .b = a < b ? b : a, .class_id = class_id, .nvlinks = nvlinks};

    for (size_t i = 0; i < topo->stated_count; i++)
        if (topo->stated[i].a == stated.a && topo->stated[i].b == stated.b) {
            topo->stated[i] = stated;
            return NW_OK;
        }
    NW_TRY(
        grow((void **)&topo->stated, &topo->stated_count, &topo->stated_capacity, sizeof stated));
    topo->stated[topo->stated_count - 1] = stated;
    return NW_OK;
}

nw_rc nw_topo_add_gid(struct nw_topo *topo, const struct nw_topo_gid *gid)
{
    NW_TRY(grow((void **)&topo->gids, &topo->gid_count, &topo->gid_capacity, sizeof *gid));
    topo->gids[topo->gid_count - 1] = *gid;
    return NW_OK;
}

nw_rc nw_topo_add_link(struct nw_topo *topo, const struct nw_topo_link *link)
{
    struct nw_topo_link *links = realloc(topo->links, (topo->link_count + 1) * sizeof *links);

    if (links == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %zu links", topo->link_count + 1);
    topo->links = links;
    links[topo->link_count++] = *link;
    return NW_OK;
}

nw_class nw_topo_class_of_tree(const struct nw_topo *topo, int a, int b)
{
    switch (nw_topo_path(topo, a, b)) {
    case NW_PATH_SAME:
        return a == b ? NW_CLASS_SELF : NW_CLASS_PIX;
    case NW_PATH_SWITCH:
        return NW_CLASS_PXB;
    case NW_PATH_ROOT:
        return NW_CLASS_PHB;
    case NW_PATH_NUMA:
        return NW_CLASS_NODE;
    default:
        return NW_CLASS_SYS;
    }
}

nw_class nw_topo_class(const struct nw_topo *topo, int a, int b, int *nvlinks_out)
{
    const struct nw_topo_link *link = nw_topo_link_between(topo, NW_LINK_NVLINK, a, b);
    int nvlinks = 0;
    nw_class class_id = link != NULL ? NW_CLASS_NV : NW_CLASS_UNKNOWN;

    if (link != NULL)
        nvlinks = link->lane_count;
    for (size_t i = 0; i < topo->stated_count; i++)
        if ((topo->stated[i].a == a && topo->stated[i].b == b) ||
            (topo->stated[i].a == b && topo->stated[i].b == a)) {
            class_id = topo->stated[i].class_id;
            nvlinks = topo->stated[i].nvlinks;
        }
    if (class_id == NW_CLASS_UNKNOWN)
        class_id = nw_topo_class_of_tree(topo, a, b);
    if (nvlinks_out != NULL)
        *nvlinks_out = nvlinks;
    return class_id;
}
