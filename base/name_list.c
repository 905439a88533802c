#include "base/name_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, SLOTS_A_NAME = 4 }; /* powers of two */

static size_t slot_of(const struct nw_name_list *list, const char *name)
{
    const size_t mask = SLOTS_A_NAME * (size_t)list->capacity - 1;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    size_t slot;

    for (const char *c = name; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    slot = (size_t)hash & mask;
    while (list->slots[slot] != 0 && strcmp(list->names[list->slots[slot] - 1], name) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static nw_rc grow(struct nw_name_list *list)
{
    const int capacity = list->capacity > 0 ? 2 * list->capacity : FIRST_CAPACITY;
    char **names = realloc(list->names, (size_t)capacity * sizeof *names);
    int *slots = calloc(SLOTS_A_NAME * (size_t)capacity, sizeof *slots);

    if (names != NULL)
        list->names = names;
    if (names == NULL || slots == NULL) {
        free(slots);
        return nw_fail(NW_ENOMEM, "no memory for %d names", capacity);
    }
    free(list->slots);
    list->slots = slots;
    list->capacity = capacity;
    for (int i = 0; i < list->count; i++)
        list->slots[slot_of(list, list->names[i])] = i + 1;
    return NW_OK;
}

nw_rc nw_name_list_index(struct nw_name_list *list, const char *name, int most, int *index_out)
{
    if (list->count == list->capacity)
        NW_TRY(grow(list));
    const size_t slot = slot_of(list, name);

    if (list->slots[slot] == 0) {
        if (list->count >= most)
            return nw_fail(NW_EUSAGE, "more than %d different names", most);
        list->names[list->count] = strdup(name);
        if (list->names[list->count] == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the name %s", name);
        list->slots[slot] = ++list->count;
    }
    *index_out = list->slots[slot] - 1;
    return NW_OK;
}

void nw_name_list_free(struct nw_name_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    free(list->slots);
    *list = (struct nw_name_list){0};
}
