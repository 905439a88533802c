#include "bench/tcp_work.h"

#include <string.h>

#include "bench/words.h"

/* A connection that breaks is a cause of its own: as NW_EPEER it would be taken for the echo of
 * another rank's failure, which there need not be. */
static nw_rc as_cause(nw_rc rc)
{
    const struct nw_err error = *nw_last_error();

    if (rc == NW_OK || rc == NW_ETIMEOUT)
        return rc;
    return nw_fail_at(NW_ELIB, error.lib, error.lib_code, error.where, "%s", error.text);
}

static nw_rc tcp_call(const struct nw_work *base, uint64_t index)
{
    const struct nw_tcp_work *work = (const struct nw_tcp_work *)base;
    const bool sends = work->sends != (work->both && index % 2 == 1);
    const uint64_t bytes = work->word_count * NW_WORD_BYTES;

    if (work->link == NULL)
        return NW_OK;
    return as_cause(sends ? nw_tcp_send(work->link, work->data, bytes)
                          : nw_tcp_receive(work->link, work->data, bytes));
}

static void tcp_fill(const struct nw_work *base, uint64_t round)
{
    const struct nw_tcp_work *work = (const struct nw_tcp_work *)base;

    if (work->link == NULL)
        return;
    if (!work->sends)
        memset(work->data, NW_POISON, work->word_count * NW_WORD_BYTES);
    for (uint64_t i = 0; work->sends && i < work->word_count; i++)
        work->data[i] = nw_word_of(work->from_rank, round, i);
}

static uint64_t tcp_check(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    const struct nw_tcp_work *work = (const struct nw_tcp_work *)base;
    uint64_t wrong = 0;

    for (uint64_t i = 0; work->link != NULL && i < work->word_count; i++) {
        const uint64_t expected = nw_word_of(work->from_rank, round, i);

        if (work->data[i] == expected || wrong++ > 0)
            continue;
        *first_out = (struct nw_wrong){.index = i,
                                       .expected = (double)expected,
                                       .found = (double)work->data[i],
                                       .from_rank = work->from_rank};
    }
    return wrong;
}

struct nw_tcp_work nw_tcp_work_of(uint64_t *data, uint64_t bytes, bool both)
{
    return (struct nw_tcp_work){
        .work = {.call = tcp_call, .fill = tcp_fill, .check = tcp_check, .result_stays = true},
        .both = both,
        .data = data,
        .word_count = bytes / NW_WORD_BYTES,
    };
}
