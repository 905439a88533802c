#include "bench/words.h"

#include <string.h>

/* Made, and looked at, so much at a time in host memory. */
#define STAGE_WORDS 8192

static uint64_t stage_words(uint64_t count, uint64_t done)
{
    return count - done < STAGE_WORDS ? count - done : STAGE_WORDS;
}

void nw_words_put(struct nw_comm *comm, uint64_t *to, uint64_t count, int giver, uint64_t round)
{
    uint64_t stage[STAGE_WORDS];

    for (uint64_t done = 0; done < count; done += STAGE_WORDS) {
        const uint64_t words = stage_words(count, done);

        for (uint64_t i = 0; i < words; i++)
            stage[i] = nw_word_of(giver, round, done + i);
        nw_comm_put(comm, to + done, stage, words * NW_WORD_BYTES);
    }
}

void nw_words_poison(struct nw_comm *comm, uint64_t *to, uint64_t count)
{
    uint64_t stage[STAGE_WORDS];

    memset(stage, NW_POISON, sizeof stage);
    for (uint64_t done = 0; done < count; done += STAGE_WORDS)
        nw_comm_put(comm, to + done, stage, stage_words(count, done) * NW_WORD_BYTES);
}

uint64_t nw_words_check(struct nw_comm *comm, const uint64_t *data, uint64_t count, int giver,
                        uint64_t round, struct nw_wrong *first_out)
{
    uint64_t stage[STAGE_WORDS], wrong = 0;

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t expected = nw_word_of(giver, round, i);

        if (i % STAGE_WORDS == 0)
            nw_comm_get(comm, stage, data + i, stage_words(count, i) * NW_WORD_BYTES);
        if (stage[i % STAGE_WORDS] == expected || wrong++ > 0)
            continue;
        *first_out = (struct nw_wrong){.index = i,
                                       .expected = (double)expected,
                                       .found = (double)stage[i % STAGE_WORDS],
                                       .from_rank = giver};
    }
    return wrong;
}
