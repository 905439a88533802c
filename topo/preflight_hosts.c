/* Are the hosts of a run built alike: GPUs, RDMA NICs, CPUs, RAM? The odd one is named by what most
 * have. */
#include <stdlib.h>

#include "base/units.h"
#include "topo/preflight_run.h"

/* RAM of equal machines differs by what the firmware keeps. */
#define RAM_REL 0.03

/* What one host has of something, in words that are equal on equal hosts; "": unknown. */
struct summary {
    char text[200];
    double amount; /* to tell what is missing: GPUs, or bytes/s; NAN */
};

typedef void summarise(const struct nw_topo *topo, struct summary *summary);

static void of_gpus(const struct nw_topo *topo, struct summary *summary)
{
    const struct nw_topo_node *first = NULL;
    bool mixed = false;
    int count = 0;
    char memory[32];

    if ((topo->gaps & (NW_TOPO_NO_IO | NW_TOPO_PARTIAL)) != 0)
        return;
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        if (!nw_topo_is_nvidia(&topo->nodes[i]))
            continue;
        first = first == NULL ? &topo->nodes[i] : first;
        mixed |= !nw_is_alike(first, &topo->nodes[i]);
        count++;
    }
    summary->amount = count;
    if (first == NULL)
        snprintf(summary->text, sizeof summary->text, "no NVIDIA GPU");
    else
        snprintf(summary->text, sizeof summary->text, "%d %s, %s", count,
                 mixed ? "GPUs of several models" : first->model,
                 first->memory_bytes > 0 ? nw_format_bytes(memory, first->memory_bytes)
                                         : "memory unknown");
}

static void of_nics(const struct nw_topo *topo, struct summary *summary)
{
    double rate = 0;
    int count = 0;

    if ((topo->gaps & (NW_TOPO_NO_IO | NW_TOPO_PARTIAL)) != 0)
        return;
    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        if (nw_is_rdma(&topo->nodes[i]) && topo->nodes[i].port_up != 0) {
            rate += topo->nodes[i].rate_bits_per_s;
            count++;
        }
    summary->amount = rate / 8;
    snprintf(summary->text, sizeof summary->text, "%d RDMA NICs up with %.4g Gb/s together", count,
             rate / 1e9);
}

static void of_cpus(const struct nw_topo *topo, struct summary *summary)
{
    const struct nw_topo_node *package = nw_topo_nth(topo, NW_NODE_PACKAGE, 0);

    if (package == NULL || (topo->gaps & NW_TOPO_RESTRICTED) != 0)
        return;
    snprintf(summary->text, sizeof summary->text, "%d × %s, %d cores", topo->package_count,
             package->model[0] != '\0' ? package->model : "CPU", topo->core_count);
}

/* In steps of RAM_REL, so that nearly equal is equal. */
static void of_memory(const struct nw_topo *topo, struct summary *summary)
{
    char text[32];

    if (topo->memory_bytes == 0)
        return;
    summary->amount = (double)topo->memory_bytes;
    snprintf(summary->text, sizeof summary->text, "%s of RAM",
             nw_format_bytes(text, topo->memory_bytes));
}

static bool is_same(const struct summary *a, const struct summary *b, double rel)
{
    if (a->text[0] == '\0' || b->text[0] == '\0')
        return false;
    if (rel > 0)
        return fabs(a->amount - b->amount) <= rel * fmax(a->amount, b->amount);
    return strcmp(a->text, b->text) == 0;
}

static const struct aspect {
    const char *code;
    summarise *summarise;
    double rel; /* by amount, where not 0 */
    nw_severity severity;
    const char *remedy, *effect;
} aspects[] = {
    {"gpus-differ", of_gpus, 0, NW_FINDING_FAIL,
     "look for a lost GPU (kernel log, \"nvidia-smi\"), or take hosts of one kind",
     "a job takes as many GPUs of each host as the smallest has, at the pace of the slowest"},
    {"nics-differ", of_nics, 0, NW_FINDING_WARN,
     "look at the ports that are down or slow (\"ibstat\"), or take hosts of one kind",
     "the host with the least network sets the pace of every collective"},
    {"cpus-differ", of_cpus, 0, NW_FINDING_WARN, "take hosts of one kind", NULL},
    {"memory-differs", of_memory, RAM_REL, NW_FINDING_WARN,
     "look for a memory module that has failed, or take hosts of one kind", NULL},
};

/* How many have what host `own` has. */
static size_t count_same(const struct summary *all, size_t count, size_t own, double rel)
{
    size_t same = 0;

    for (size_t i = 0; i < count; i++)
        same += is_same(&all[i], &all[own], rel);
    return same;
}

static nw_rc judge_aspect(struct nw_preflight_run *run, const struct aspect *aspect,
                          const struct summary *all)
{
    const size_t count = run->input->host_count;
    size_t usual = 0, most = 0, known = 0;
    char name[96];

    for (size_t i = 0; i < count; i++) {
        const size_t same = count_same(all, count, i, aspect->rel);

        known += all[i].text[0] != '\0';
        /* Without a majority, what has more is right: nothing was lost there. */
        if (same > most || (same == most && all[i].amount > all[usual].amount)) {
            most = same;
            usual = i;
        }
    }
    for (size_t i = 0; i < count && most < known; i++) {
        if (all[i].text[0] == '\0' || is_same(&all[i], &all[usual], aspect->rel))
            continue;
        NW_TRY(nw_tell(run, i, 0, aspect->severity, aspect->code, aspect->remedy,
                       "%s; %s and %zu of %zu hosts have %s", all[i].text,
                       nw_host_name(run, usual, name), most, known, all[usual].text));
        if (aspect->effect != NULL)
            NW_TRY(nw_tell_effect(
                run, aspect->summarise == of_nics ? all[usual].amount - all[i].amount : NAN, "%s",
                aspect->effect));
    }
    return NW_OK;
}

nw_rc nw_preflight_hosts_counts(struct nw_preflight_run *run)
{
    const size_t count = run->input->host_count;
    struct summary *all = calloc(count + 1, sizeof *all);
    nw_rc rc = NW_OK;

    if (all == NULL)
        return nw_fail(NW_ENOMEM, "out of memory to compare %zu hosts", count);
    for (size_t k = 0; k < sizeof aspects / sizeof *aspects && rc == NW_OK && count > 1; k++) {
        for (size_t i = 0; i < count; i++) {
            all[i] = (struct summary){.amount = NAN};
            aspects[k].summarise(nw_run_host(run, i), &all[i]);
        }
        rc = judge_aspect(run, &aspects[k], all);
    }
    free(all);
    return rc;
}
