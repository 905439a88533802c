/* What the live machine's files may hold: a mountinfo, a PCI device's configuration space. The
 * first byte says which; the rest has its very size, so that a byte read too far is seen. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topo/live_pci.h"
#include "topo/mounts.h"

static void read_mounts(char *text)
{
    struct nw_mounts mounts;
    struct nw_place place;
    char shared[64];

    if (nw_mounts_parse(text, &mounts) != NW_OK)
        return;
    nw_mounts_shared_text(&mounts, shared, sizeof shared);
    for (size_t i = 0; i < mounts.count && i < 8; i++)
        (void)nw_place_of("/nowhere", &mounts, mounts.items[i].point, &place);
    nw_mounts_free(&mounts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy;

    if (size == 0)
        return 0;
    copy = malloc(size); /* without the first byte, with a NUL */
    if (copy == NULL)
        return 0;
    memcpy(copy, data + 1, size - 1);
    copy[size - 1] = '\0';
    if (data[0] == 'm') {
        read_mounts(copy);
    } else {
        unsigned control = 0;

        if (nw_pci_find_acs(data + 1, size - 1, &control) == NW_ACS_FOUND && control > 0xffff)
            abort();
    }
    free(copy);
    return 0;
}
