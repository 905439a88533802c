#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "results/nccltests.h"

void nw_nt_facts_free(struct nw_nt_facts *facts)
{
    json_decref(facts->environment);
    *facts = (struct nw_nt_facts){0};
}

static void free_hosts(struct nw_nt_hosts *hosts)
{
    free(hosts->items);
    free(hosts->slots);
    *hosts = (struct nw_nt_hosts){0};
}

void nw_nt_run_init(struct nw_nt_run *run)
{
    struct nw_nt_row *rows = run->rows;
    const size_t capacity = run->row_capacity;

    nw_nt_facts_free(&run->facts);
    free_hosts(&run->hosts);
    *run = (struct nw_nt_run){
        .tool = "nccl-tests",
        .warmup = -1,
        .iterations = -1,
        .validation = -1,
        .highest_rank = -1,
        .group_count = 1,
        .out_of_bounds = -1,
        .average = {NAN, NAN},
        .rows = rows,
        .row_capacity = capacity,
    };
}

void nw_nt_run_free(struct nw_nt_run *run)
{
    nw_nt_run_init(run);
    free(run->rows);
    *run = (struct nw_nt_run){0};
}

void nw_nt_mishap(struct nw_nt_mishap *mishap, size_t line, struct nw_slice text)
{
    if (mishap->count++ > 0)
        return;
    mishap->line = line;
    nw_imp_copy(mishap->text, sizeof mishap->text, text);
}

/* --- hosts --- */

/* FNV-1a, 64 bits. */
static uint64_t hash_of(struct nw_slice name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * UINT64_C(1099511628211);
    return hash;
}

static void seat(struct nw_nt_hosts *hosts, int index)
{
    size_t slot = hosts->items[index].hash & (hosts->slot_count - 1);

    while (hosts->slots[slot] != 0)
        slot = (slot + 1) & (hosts->slot_count - 1);
    hosts->slots[slot] = index + 1;
}

/* Room for one more host with at most half of the slots taken. */
static bool make_room(struct nw_nt_hosts *hosts)
{
    if (hosts->count < hosts->capacity)
        return true;
    const int capacity = hosts->capacity > 0 ? 2 * hosts->capacity : 16;
    struct nw_nt_host *items = realloc(hosts->items, (size_t)capacity * sizeof *items);

    if (items == NULL)
        return false;
    hosts->items = items;
    int *slots = calloc(2 * (size_t)capacity, sizeof *slots);

    if (slots == NULL)
        return false;
    free(hosts->slots);
    hosts->slots = slots;
    hosts->slot_count = 2 * (size_t)capacity;
    hosts->capacity = capacity;
    for (int i = 0; i < hosts->count; i++)
        seat(hosts, i);
    return true;
}

/* The host of that name, one rank richer; NULL: no memory. */
static struct nw_nt_host *count_host(struct nw_nt_hosts *hosts, struct nw_slice name)
{
    const uint64_t hash = hash_of(name);

    for (size_t slot = hash; hosts->slot_count > 0; slot++) {
        const int index = hosts->slots[slot & (hosts->slot_count - 1)] - 1;

        if (index < 0)
            break;
        if (hosts->items[index].hash == hash) {
            hosts->items[index].rank_count++;
            return &hosts->items[index];
        }
    }
    if (!make_room(hosts))
        return NULL;
    struct nw_nt_host *host = &hosts->items[hosts->count];

    *host = (struct nw_nt_host){.hash = hash, .rank_count = 1};
    nw_imp_copy(host->name, sizeof host->name, name);
    seat(hosts, hosts->count++);
    return host;
}

/* --- the list of ranks --- */

bool nw_nt_parse_rank(struct nw_slice text, struct nw_nt_rank *rank_out)
{
    const char *bracket = memchr(text.at, ']', text.length);
    /* The words behind the bracket are the GPU's name. */
    const struct nw_slice head = {text.at,
                                  bracket != NULL ? (size_t)(bracket - text.at) : text.length};
    struct nw_nt_rank rank = {.rank = -1};
    struct nw_imp_words words;

    nw_imp_split(head, &words);
    for (int i = 0; i + 1 < words.count; i++) {
        const struct nw_slice word = words.word[i], next = words.word[i + 1];
        uint64_t number;

        if (nw_imp_is(word, "on") && rank.host.at == NULL) {
            if (i + 2 < words.count && nw_imp_is(words.word[i + 2], "device"))
                rank.host = next;
        } else if ((nw_imp_is(word, "Rank") || nw_imp_is(word, "Group")) &&
                   nw_imp_u64(next, &number) && number <= 100000000) {
            *(word.at[0] == 'R' ? &rank.rank : &rank.group) = (int)number;
        }
    }
    if (rank.rank < 0 || rank.host.at == NULL)
        return false;
    if (bracket != NULL)
        rank.gpu = nw_imp_trim(
            (struct nw_slice){bracket + 1, text.length - (size_t)(bracket + 1 - text.at)});
    *rank_out = rank;
    return true;
}

static void note_gpu(struct nw_nt_run *run, struct nw_nt_host *host, struct nw_slice gpu)
{
    char model[sizeof run->gpu_model] = "";

    if (gpu.at != NULL)
        nw_imp_copy(model, sizeof model, gpu);
    if (host->rank_count == 1)
        memcpy(host->gpu_model, model, sizeof model);
    else if (strcmp(host->gpu_model, model) != 0)
        host->gpu_model[0] = '\0';
    if (run->gpu_model[0] == '\0')
        memcpy(run->gpu_model, model, sizeof model);
    else if (strcmp(run->gpu_model, model) != 0)
        run->gpus_differ = true;
}

nw_rc nw_nt_add_rank(struct nw_nt_run *run, const struct nw_nt_rank *rank, size_t line)
{
    if (run->rank_lines++ == 0)
        run->first_rank_line = line;
    run->first_group_size += rank->group == 0;
    if (rank->group + 1 > run->group_count)
        run->group_count = rank->group + 1;
    if (rank->rank > run->highest_rank)
        run->highest_rank = rank->rank;
    struct nw_nt_host *host = count_host(&run->hosts, rank->host);

    if (host == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a list of hosts");
    note_gpu(run, host, rank->gpu);
    return NW_OK;
}

/* --- "nThread 1 nGpus 1 minBytes 8 maxBytes 4294967296 step: 2(factor) warmup iters: 5 iters: 20
 * agg iters: 1 validation: 1 graph: 0" --- */

static bool number_at(struct nw_slice text, const char *label, uint64_t *value)
{
    const char *at = nw_imp_find(text, label);

    if (at == NULL)
        return false;
    at += strlen(label);
    const size_t left = text.length - (size_t)(at - text.at);
    size_t digits = 0;

    while (digits < left && isdigit((unsigned char)at[digits]))
        digits++;
    return nw_imp_u64((struct nw_slice){at, digits}, value);
}

void nw_nt_options_line(struct nw_nt_run *run, struct nw_slice text)
{
    uint64_t number;

    run->options_seen = true;
    if (number_at(text, "minBytes ", &number))
        run->min_bytes = number;
    if (number_at(text, "maxBytes ", &number))
        run->max_bytes = number;
    if (number_at(text, "step: ", &number)) {
        run->step = number;
        run->step_is_factor = nw_imp_find(text, "(factor)") != NULL;
    }
    if (number_at(text, "warmup iters: ", &number) && number < 1000000000)
        run->warmup = (int)number;
    const char *warmup = nw_imp_find(text, "warmup iters: ");

    if (warmup != NULL) {
        const char *behind = warmup + strlen("warmup ");
        const struct nw_slice rest = {behind + 1, text.length - (size_t)(behind + 1 - text.at)};

        if (number_at(rest, " iters: ", &number) && number < 1000000000)
            run->iterations = (int)number;
    }
    if (number_at(text, "validation: ", &number) && number < 1000000000)
        run->validation = (int)number;
}

/* --- the collective's program --- */

bool nw_nt_collective_name(struct nw_slice text, char *name, size_t size)
{
    const char *perf = nw_imp_find(text, "_perf");

    while (perf != NULL) {
        const char *start = perf;

        while (start > text.at && (islower((unsigned char)start[-1]) || start[-1] == '_'))
            start--;
        nw_imp_copy(name, size, (struct nw_slice){start, (size_t)(perf - start)});
        if (nw_coll_find(name) != NULL || strcmp(name, "alltoallv") == 0 ||
            strcmp(name, "hypercube") == 0)
            return true;
        const char *next = perf + 1;

        perf =
            nw_imp_find((struct nw_slice){next, text.length - (size_t)(next - text.at)}, "_perf");
    }
    return false;
}

/* --- NCCL's own lines --- */

static struct nw_slice from(struct nw_slice text, const char *at)
{
    return (struct nw_slice){at, text.length - (size_t)(at - text.at)};
}

static struct nw_slice first_word(struct nw_slice text)
{
    struct nw_imp_words words;

    text = nw_imp_trim(text);
    nw_imp_split(text, &words);
    return words.count > 0 ? words.word[0] : (struct nw_slice){text.at, 0};
}

static nw_rc set_variable(struct nw_nt_facts *facts, struct nw_slice name, struct nw_slice value)
{
    char key[64], text[256];

    if (value.length == 0 || name.length >= sizeof key)
        return NW_OK;
    nw_imp_copy(key, sizeof key, name);
    nw_imp_copy(text, sizeof text, value);
    if (strcmp(key, "NCCL_ALGO") == 0)
        nw_imp_copy(facts->algorithm, sizeof facts->algorithm, value);
    if (facts->environment == NULL)
        facts->environment = json_object();
    if (facts->environment == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the environment of a log");
    return nw_json_set_text(facts->environment, key, text);
}

/* NCCL_X=value, NCCL_X='value', 'NCCL_X=value', "NCCL_X set by environment to value." */
static nw_rc take_variables(struct nw_nt_facts *facts, struct nw_slice text)
{
    static const char set[] = " set by environment to ";

    for (const char *at = nw_imp_find(text, "NCCL_"); at != NULL;) {
        const char *start = at, *end = text.at + text.length;
        const char quote_before = start > text.at ? start[-1] : ' ';

        while (at < end &&
               (isupper((unsigned char)*at) || isdigit((unsigned char)*at) || *at == '_'))
            at++;
        const struct nw_slice name = {start, (size_t)(at - start)};
        struct nw_slice value = {at, 0};

        if (nw_imp_starts(from(text, at), set)) {
            value = nw_imp_trim(from(text, at + strlen(set)));
            if (value.length > 0 && value.at[value.length - 1] == '.')
                value.length--;
            return set_variable(facts, name, value);
        }
        if (at < end && *at == '=') {
            const char quote = at + 1 < end && (at[1] == '\'' || at[1] == '"') ? at[1]
                               : quote_before == '\'' || quote_before == '"'   ? quote_before
                                                                               : ' ';
            value.at = at + 1 + (at + 1 < end && at[1] == quote && quote != ' ');
            const char *stop = memchr(value.at, quote, (size_t)(end - value.at));

            value.length = (size_t)((stop != NULL ? stop : end) - value.at);
            NW_TRY(set_variable(facts, name, value));
            at = value.at + value.length;
        }
        at = at < end ? nw_imp_find(from(text, at), "NCCL_") : NULL;
    }
    return NW_OK;
}

static void take_counts(struct nw_nt_facts *facts, struct nw_slice text)
{
    static const char *const rank_labels[] = {" nranks ", " nRanks "};
    uint64_t number;

    for (size_t i = 0; i < sizeof rank_labels / sizeof rank_labels[0]; i++)
        if (number_at(text, rank_labels[i], &number) && number < 100000000 &&
            (int)number > facts->rank_count)
            facts->rank_count = (int)number;
    if (number_at(text, " nNodes ", &number) && number < 100000000 &&
        (int)number > facts->host_count)
        facts->host_count = (int)number;
}

/* Only "Using network" says what NCCL really took; "NET/IB : Using" names it before 2.5 and when it
 * is the only one listed. */
static void take_network(struct nw_nt_facts *facts, struct nw_slice message)
{
    static const struct {
        const char *starts, *name;
    } listed[] = {
        {"NET/IB : Using", "IB"},
        {"NET/Socket : Using", "Socket"},
        {"NET/OFI Selected", "AWS Libfabric"},
    };

    if (nw_imp_starts(message, "Using network ")) {
        nw_imp_copy(facts->network, sizeof facts->network,
                    nw_imp_trim(from(message, message.at + strlen("Using network "))));
        return;
    }
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
        if (facts->network[0] == '\0' && nw_imp_starts(message, listed[i].starts))
            strcpy(facts->network, listed[i].name);
}

static void take_version(struct nw_nt_facts *facts, struct nw_slice text)
{
    static const char *const labels[] = {"NCCL version ", "RCCL version : "};

    for (size_t i = 0; i < sizeof labels / sizeof labels[0] && facts->nccl_version[0] == '\0';
         i++) {
        const char *at = nw_imp_find(text, labels[i]);

        if (at == NULL)
            continue;
        const struct nw_slice version = first_word(from(text, at + strlen(labels[i])));

        if (version.length > 0 && isdigit((unsigned char)version.at[0]))
            nw_imp_copy(facts->nccl_version, sizeof facts->nccl_version, version);
    }
}

nw_rc nw_nt_nccl_line(struct nw_nt_facts *facts, struct nw_slice text)
{
    static const char info[] = "NCCL INFO ";
    const char *at = nw_imp_find(text, info);

    if (at == NULL) {
        take_version(facts, text);
        return take_variables(facts, text);
    }
    const struct nw_slice message = nw_imp_trim(from(text, at + strlen(info)));

    if (message.length == 0)
        return NW_OK;
    switch (message.at[0]) {
    case 'N':
        take_network(facts, message);
        take_version(facts, message);
        return nw_imp_starts(message, "NCCL_") ? take_variables(facts, message) : NW_OK;
    case 'U':
        take_network(facts, message);
        return NW_OK;
    case 'c':
    case 'n':
        take_counts(facts, message);
        return NW_OK;
    default:
        return NW_OK;
    }
}
