/* "graph,register,ctas=2-8": what NCCL is asked to use besides. */
#include <string.h>

#include "base/units.h"
#include "collectives/comm.h"

#define ACCEPTED "graph, register, window, ctas=N, ctas=MIN-MAX with commas between them, or none"
#define CTAS_MAX 64 /* MAXCHANNELS of NCCL's device.h; 32 before 2.19, which then takes that */

static nw_rc refuse(const char *list, const char *item, size_t length)
{
    return nw_fail(NW_EUSAGE, "\"%.80s\": \"%.*s\" is not known; accepted: " ACCEPTED, list,
                   (int)(length < 40 ? length : 40), item);
}

/* "4" or "2-8" */
static nw_rc parse_ctas(const char *text, size_t length, struct nw_nccl_wish *wish)
{
    char copy[32];
    char *dash;
    uint64_t min = 0, max = 0;

    if (length < sizeof copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
        dash = strchr(copy, '-');
        if (dash != NULL)
            *dash = '\0';
        if (nw_parse_u64(copy, 1, CTAS_MAX, &min) == NW_OK &&
            nw_parse_u64(dash != NULL ? dash + 1 : copy, 1, CTAS_MAX, &max) == NW_OK &&
            min <= max) {
            wish->min_ctas = (int)min;
            wish->max_ctas = (int)max;
            wish->features |= NW_NCCL_CTAS;
            return NW_OK;
        }
    }
    return nw_fail(NW_EUSAGE,
                   "ctas=%.*s: accepted are 1 to %d, and a range of them, the smaller one first: "
                   "ctas=8, ctas=2-8",
                   (int)(length < 40 ? length : 40), text, CTAS_MAX);
}

nw_rc nw_nccl_wish_parse(const char *list, struct nw_nccl_wish *wish_out)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"graph", NW_NCCL_GRAPH},
                 {"register", NW_NCCL_REGISTER},
                 {"window", NW_NCCL_WINDOW},
                 {"none", 0}};
    struct nw_nccl_wish wish = {0};
    size_t items = 0, nones = 0;

    for (const char *at = list;; items++) {
        const size_t length = strcspn(at, ",");
        size_t i = 0;

        while (i < sizeof names / sizeof *names &&
               (strlen(names[i].name) != length || strncmp(names[i].name, at, length) != 0))
            i++;
        if (i < sizeof names / sizeof *names) {
            wish.features |= names[i].bit;
            nones += names[i].bit == 0;
        } else if (strncmp(at, "ctas=", 5) == 0) {
            NW_TRY(parse_ctas(at + 5, length - 5, &wish));
        } else {
            return refuse(list, at, length);
        }
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    if (nones > 0 && items > 0)
        return nw_fail(NW_EUSAGE, "\"%.80s\": none stands alone; accepted: " ACCEPTED, list);
    *wish_out = wish;
    return NW_OK;
}
