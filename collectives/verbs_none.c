/* Built where there was no header of libibverbs (or NW_VERBS=OFF): there is no RDMA to be seen, and
 * the reason is said. The functions of an end can then not be reached. */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/verbs.h"

#define WHY                                                                                        \
    "no RDMA: built without it (there was no libibverbs-dev and librdmacm-dev, or NW_VERBS=OFF)"

bool nw_verbs_built(void)
{
    return false;
}

nw_rc nw_verbs_open(struct nw_verbs **verbs_out)
{
    struct nw_verbs *verbs = calloc(1, sizeof *verbs);

    if (verbs == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the RDMA devices");
    snprintf(verbs->why, sizeof verbs->why, "%s", WHY);
    *verbs_out = verbs;
    return NW_OK;
}

void nw_verbs_close(struct nw_verbs *verbs)
{
    free(verbs);
}

nw_rc nw_verbs_end_open(const struct nw_verbs *verbs, const struct nw_verbs_port *port,
                        const struct nw_verbs_wish *wish, void *buffer, uint64_t bytes,
                        struct nw_dev *dev, struct nw_verbs_end **end_out)
{
    (void)verbs, (void)port, (void)wish, (void)buffer, (void)bytes, (void)dev, (void)end_out;
    return nw_fail(NW_ENODEV, "%s", WHY);
}

void nw_verbs_end_close(struct nw_verbs_end *end)
{
    (void)end;
}

void nw_verbs_end_card(const struct nw_verbs_end *end, uint8_t card[NW_VERBS_CARD_BYTES])
{
    (void)end;
    card[0] = 0;
}

nw_rc nw_verbs_connect(struct nw_verbs_end *end, const uint8_t card[NW_VERBS_CARD_BYTES])
{
    (void)end, (void)card;
    return nw_fail(NW_ENODEV, "%s", WHY);
}

nw_rc nw_verbs_connect_start(struct nw_verbs_end *end, const uint8_t card[NW_VERBS_CARD_BYTES])
{
    return nw_verbs_connect(end, card);
}

nw_rc nw_verbs_connect_step(struct nw_verbs_end *end, bool *done_out)
{
    (void)end, (void)done_out;
    return nw_fail(NW_ENODEV, "%s", WHY);
}

const struct nw_verbs_link *nw_verbs_end_link(const struct nw_verbs_end *end)
{
    (void)end;
    return NULL;
}

const struct nw_verbs_word *nw_verbs_end_trouble(const struct nw_verbs_end *end)
{
    (void)end;
    return NULL;
}

bool nw_verbs_end_is_broken(const struct nw_verbs_end *end)
{
    (void)end;
    return true;
}

nw_rc nw_verbs_prepare(struct nw_verbs_end *end, const struct nw_verbs_run *run)
{
    (void)end, (void)run;
    return nw_fail(NW_ENODEV, "%s", WHY);
}

nw_rc nw_verbs_run(struct nw_verbs_end *end, const struct nw_verbs_run *run,
                   struct nw_verbs_result *result_out)
{
    (void)end, (void)run, (void)result_out;
    return nw_fail(NW_ENODEV, "%s", WHY);
}

nw_rc nw_verbs_run_all(struct nw_verbs_end *const *ends, const struct nw_verbs_run *runs,
                       size_t count, struct nw_verbs_result *results_out)
{
    (void)ends, (void)runs, (void)count, (void)results_out;
    return nw_fail(NW_ENODEV, "%s", WHY);
}
