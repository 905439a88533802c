#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "results/import_kit.h"

/* "-n 8", "-n8", "--ntasks=8", "--ntasks 8": 0: not this option. */
static int option_value(const struct nw_imp_words *words, int at, const char *name)
{
    const struct nw_slice word = words->word[at];
    const size_t length = strlen(name);
    struct nw_slice value = {word.at + length, 0};
    uint64_t number;

    if (!nw_imp_starts(word, name))
        return 0;
    value.length = word.length - length;
    if (value.length > 0 && value.at[0] == '=')
        value.at++, value.length--;
    else if (value.length == 0 && at + 1 < words->count)
        value = words->word[at + 1];
    return nw_imp_u64(value, &number) && number > 0 && number < 10000000 ? (int)number : 0;
}

static int find_option(const struct nw_imp_words *words, const char *const *names)
{
    for (int i = 0; i < words->count; i++)
        for (size_t k = 0; names[k] != NULL; k++) {
            const int value = option_value(words, i, names[k]);

            if (value > 0)
                return value;
        }
    return 0;
}

static void take_command(struct nw_slice line, bool slurm, struct nw_imp_ranks *ranks)
{
    static const char *const count[] = {"-np", "-n", "--ntasks", NULL};
    static const char *const each[] = {"--ntasks-per-node", "-ppn", "-npernode", NULL};
    static const char *const nodes[] = {"-N", "--nodes", NULL};
    struct nw_imp_words words;

    nw_imp_split(line, &words);
    const int hosts = slurm ? find_option(&words, nodes) : 0;
    const int per_host = find_option(&words, each);
    int all = 0;

    /* "--ntasks" is the beginning of "--ntasks-per-node", which takes no value then. */
    all = find_option(&words, count);
    if (all == 0 && hosts > 0)
        all = hosts * (per_host > 0 ? per_host : 1);
    if (all > 0)
        ranks->ranks = all;
    if (hosts > 0)
        ranks->hosts = hosts;
    else if (all > 0 && per_host > 0)
        ranks->hosts = (all + per_host - 1) / per_host;
}

/* "MPI startup(): 3       3244     node1  {1,5}" */
static void take_listed(struct nw_slice text, struct nw_imp_ranks *ranks)
{
    struct nw_imp_words words;
    uint64_t rank, pid;
    char name[64];
    int at = 0;

    nw_imp_split(text, &words);
    if (words.count < 4 || !nw_imp_u64(words.word[0], &rank) || !nw_imp_u64(words.word[1], &pid) ||
        rank > 10000000 || !isalpha((unsigned char)words.word[2].at[0]))
        return;
    ranks->listed = (int)rank + 1 > ranks->listed ? (int)rank + 1 : ranks->listed;
    nw_imp_copy(name, sizeof name, words.word[2]);
    while (at < ranks->host_count && strcmp(ranks->host[at], name) != 0)
        at++;
    if (at < ranks->host_count)
        return;
    if (at == NW_IMP_HOSTS) {
        ranks->many_hosts = true;
        return;
    }
    memcpy(ranks->host[at], name, sizeof name);
    ranks->host_count++;
}

void nw_imp_take_ranks(struct nw_slice line, struct nw_imp_ranks *ranks)
{
    const struct nw_slice startup = nw_imp_behind(line, "MPI startup(): ");

    if (startup.length > 0)
        take_listed(startup, ranks);
    else if (nw_imp_find(line, "srun ") != NULL)
        take_command(line, true, ranks);
    else if (nw_imp_find(line, "mpirun ") != NULL || nw_imp_find(line, "mpiexec ") != NULL)
        take_command(line, false, ranks);
}

int nw_imp_rank_count(const struct nw_imp_ranks *ranks)
{
    return ranks->listed > 0 ? ranks->listed : ranks->ranks;
}

int nw_imp_host_count(const struct nw_imp_ranks *ranks)
{
    if (ranks->host_count > 0)
        return ranks->many_hosts ? 0 : ranks->host_count;
    return ranks->hosts;
}

nw_rc nw_imp_tell_both_ways(const struct nw_imp *imp, size_t line, double sum_bytes_per_s)
{
    char sum[32], half[32];

    return nw_imp_tell(imp, NW_FINDING_INFO, "both-ways", line, NULL,
                       "a bidirectional test prints the sum of both ways, %s Gb/s at most; what "
                       "counts is one way, %s Gb/s",
                       nw_format_sig(sum, sum_bytes_per_s * 8e-9, 4),
                       nw_format_sig(half, sum_bytes_per_s * 4e-9, 4));
}
