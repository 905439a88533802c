#include "bench/status.h"

#include <string.h>

void nw_bench_status_deadline(struct nw_bench_status *status, uint64_t deadline_ns)
{
    if (status != NULL)
        atomic_store_explicit(&status->deadline_ns, deadline_ns, memory_order_relaxed);
}

void nw_bench_status_write(struct nw_bench_status *status, uint64_t deadline_ns, const char *text)
{
    uint64_t words[NW_BENCH_STATUS_WORDS] = {0};
    size_t length = strlen(text);

    if (status == NULL)
        return;
    if (length > NW_BENCH_STATUS_TEXT - 1)
        length = NW_BENCH_STATUS_TEXT - 1;
    memcpy(words, text, length);

    const uint32_t sequence = atomic_load_explicit(&status->sequence, memory_order_relaxed);

    atomic_store_explicit(&status->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < NW_BENCH_STATUS_WORDS; i++)
        atomic_store_explicit(&status->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&status->sequence, sequence + 2, memory_order_release);
    nw_bench_status_deadline(status, deadline_ns);
}

void nw_bench_status_read(const struct nw_bench_status *status, char text[NW_BENCH_STATUS_TEXT],
                          uint64_t *deadline_ns_out)
{
    uint64_t words[NW_BENCH_STATUS_WORDS];
    /* A writer killed in mid-write leaves the sequence odd for ever: give up after a while. */
    int tries = 1000;
    uint32_t before, after;

    do {
        before = atomic_load_explicit(&status->sequence, memory_order_acquire);
        for (size_t i = 0; i < NW_BENCH_STATUS_WORDS; i++)
            words[i] = atomic_load_explicit(&status->words[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&status->sequence, memory_order_relaxed);
    } while ((before != after || before % 2 != 0) && --tries > 0);
    if (tries == 0)
        words[0] = 0;
    memcpy(text, words, sizeof words);
    *deadline_ns_out = atomic_load_explicit(&status->deadline_ns, memory_order_relaxed);
}
