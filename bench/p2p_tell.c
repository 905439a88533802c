#include "bench/p2p_tell.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/copies_judge.h"
#include "topo/link.h"

#define PAIRS_NAMED 4

/* Of a GPU's links those that lead to the other, or to a switch, which reaches all. */
static double links_towards(const struct nw_device_about *from, const struct nw_device_about *to)
{
    double rate = 0;

    for (int i = 0; i < from->link_up_count; i++)
        if (from->links[i].to_switch || strcmp(from->links[i].peer_pci, to->pci) == 0)
            rate += from->links[i].bytes_per_s;
    return rate;
}

static double smaller(double a, double b) /* NAN where one is */
{
    return isnan(a) || a < b ? a : b;
}

static double nvlink_ceiling(const struct nw_p2p_result *result, int a, int b)
{
    const struct nw_device_about *about = result->devices.about;

    return smaller(links_towards(&about[a], &about[b]), links_towards(&about[b], &about[a]));
}

double nw_p2p_ceiling(const struct nw_p2p_result *result, int a, int b, bool staged,
                      const struct nw_pcie_link *pcie)
{
    const double nvlink = staged ? 0 : nvlink_ceiling(result, a, b);
    const struct nw_pcie_link *other = &result->devices.about[b].pcie;

    if (nvlink != 0)
        return nvlink;
    /* The measured GPU's link is known under load; of the other one's, which may look idle, only
     * how wide it is. */
    return smaller(nw_pcie_link_ceiling(pcie),
                   nw_pcie_bytes_per_s(other->max_generation, other->width));
}

/* ---- findings, host by host --------------------------------------------------------------------
 */

struct host {
    const struct nw_p2p_result *result;
    const struct nw_survey *survey;
    int number, gpu_count;
    const char *name;
};

static int rank_of(const struct host *host, int place)
{
    return nw_survey_rank(host->result->bench->comm, host->number, place);
}

static size_t at(const struct host *host, int a, int b)
{
    return (size_t)rank_of(host, a) * (size_t)host->result->bench->comm->rank_count +
           (size_t)rank_of(host, b);
}

static const struct nw_device_about *about(const struct host *host, int place)
{
    return &host->result->devices.about[rank_of(host, place)];
}

static void tell_hidden(const struct host *host)
{
    const char *why = host->survey->hosts[rank_of(host, 0)].why;

    if (why[0] != '\0')
        nw_bench_finding(host->result->bench, NW_FINDING_INFO, "p2p-hidden", host->name,
                         "show all GPUs of a host to each of its ranks",
                         "copies between GPUs are not measured, or not between all: %s", why);
}

struct off {
    int pairs, all; /* without access; of all that were looked at */
    bool nvlink, geforce;
    double staged_bytes_per_s; /* the slowest; NAN */
    char named[256];
};

static void count_pair(const struct host *host, int a, int b, struct off *off)
{
    const nw_peers peers = nw_survey_peers(host->survey, host->number, a, b);
    const size_t length = strlen(off->named);

    off->all += peers != NW_PEERS_UNKNOWN;
    if (peers != NW_PEERS_STAGED)
        return;
    if (off->pairs++ < PAIRS_NAMED)
        snprintf(off->named + length, sizeof off->named - length, "%s%d and %d",
                 length > 0 ? ", " : "", rank_of(host, a), rank_of(host, b));
    off->nvlink |= nvlink_ceiling(host->result, rank_of(host, a), rank_of(host, b)) != 0;
    off->geforce &= strstr(about(host, a)->model, "GeForce") != NULL &&
                    strstr(about(host, b)->model, "GeForce") != NULL;
    off->staged_bytes_per_s =
        fmin(off->staged_bytes_per_s,
             fmin(host->result->staged[at(host, a, b)], host->result->staged[at(host, b, a)]));
}

static void tell_off(const struct host *host)
{
    struct off off = {.geforce = true, .staged_bytes_per_s = NAN};
    char rate[32], which[320];

    for (int a = 0; a < host->gpu_count; a++)
        for (int b = a + 1; b < host->gpu_count; b++)
            count_pair(host, a, b, &off);
    if (off.pairs == 0)
        return;
    if (off.pairs == off.all)
        snprintf(which, sizeof which, "any of the %d GPUs", host->gpu_count);
    else
        snprintf(which, sizeof which, "the GPUs of ranks %s%s (%d of %d pairs)", off.named,
                 off.pairs > PAIRS_NAMED ? " …" : "", off.pairs, off.all);
    nw_bench_finding(
        host->result->bench, off.geforce && !off.nvlink ? NW_FINDING_INFO : NW_FINDING_WARN,
        "p2p-off", host->name,
        off.nvlink ? "nvidia-smi topo -p2p r and nvidia-smi nvlink -s say more; is the fabric "
                     "manager running?"
        : off.geforce
            ? "none: the driver gives GeForce cards no access to each other's memory"
            : "nvidia-smi topo -p2p r says why; IOMMU, ACS or a virtual machine can be in "
              "the way",
        "no access between the memories of %s%s: copies go through host memory at %s GB/s", which,
        off.nvlink ? ", although NVLinks are there" : "",
        nw_format_gb_per_s(rate, off.staged_bytes_per_s));
}

static bool is_switched(const struct host *host)
{
    for (int place = 0; place < host->gpu_count; place++) {
        if (about(host, place)->link_up_count == 0)
            return false;
        for (int i = 0; i < about(host, place)->link_up_count; i++)
            if (!about(host, place)->links[i].to_switch)
                return false;
    }
    return true;
}

static void tell_gpu(const struct host *host, const struct nw_peer_rate *gpu)
{
    const struct nw_device_about *its = about(host, gpu->a);
    char where[NW_COMM_RANK_TEXT], cause[64] = "", rate[32], usual[32];

    if (its->link_up_count < its->link_count)
        snprintf(cause, sizeof cause, "; %d of its %d NVLinks are up", its->link_up_count,
                 its->link_count);
    nw_bench_finding(host->result->bench, NW_FINDING_WARN, "p2p-slow",
                     nw_comm_rank_text(host->result->bench->comm, rank_of(host, gpu->a), where),
                     "nvidia-smi nvlink -s and -e show links and their errors; ask the vendor",
                     "%s GB/s with its fastest peer, where the median of all GPUs is %s GB/s%s",
                     nw_format_gb_per_s(rate, gpu->bytes_per_s),
                     nw_format_gb_per_s(usual, gpu->usual_bytes_per_s), cause);
}

static bool is_told(const struct nw_slow_peers *slow, int place)
{
    for (size_t i = 0; i < slow->gpu_count; i++)
        if (slow->gpus[i].a == place)
            return true;
    return false;
}

/* Links that are down and yet made nothing slow. That a model has more than its board connects is
 * usual: others of it on the host tell how many should be up. */
static void tell_links(const struct host *host, const struct nw_slow_peers *slow)
{
    int most = 0, links = 0;

    for (int place = 0; place < host->gpu_count; place++) {
        most = most > about(host, place)->link_up_count ? most : about(host, place)->link_up_count;
        links = links > about(host, place)->link_count ? links : about(host, place)->link_count;
    }
    if (links > 0 && most == 0)
        nw_bench_finding(host->result->bench, NW_FINDING_INFO, "nvlink-down", host->name,
                         "cards need a bridge, boards with NVSwitches the fabric manager",
                         "none of the %d NVLinks of each of its GPUs is up", links);
    for (int place = 0; place < host->gpu_count; place++) {
        const struct nw_device_about *its = about(host, place);
        char where[NW_COMM_RANK_TEXT];

        if (its->link_up_count < most && its->link_count >= most && !is_told(slow, place))
            nw_bench_finding(
                host->result->bench, NW_FINDING_WARN, "nvlink-down",
                nw_comm_rank_text(host->result->bench->comm, rank_of(host, place), where),
                "nvidia-smi nvlink -s and -e show links and their errors; ask the vendor",
                "%d of its %d NVLinks are up, others on this host have %d", its->link_up_count,
                its->link_count, most);
    }
}

static void tell_pair(const struct host *host, const char *code, const struct nw_peer_rate *pair,
                      const char *against)
{
    char where[96], rate[32], usual[32];

    snprintf(where, sizeof where, "ranks %d to %d on %.63s", rank_of(host, pair->a),
             rank_of(host, pair->b), host->name);
    nw_bench_finding(host->result->bench, NW_FINDING_WARN, code, where,
                     "look at the path between the two: nodeworth topo, nvidia-smi topo -m",
                     "%s GB/s, where %s %s GB/s", nw_format_gb_per_s(rate, pair->bytes_per_s),
                     against, nw_format_gb_per_s(usual, pair->usual_bytes_per_s));
}

static nw_rc tell_slow(const struct host *host)
{
    const size_t count = (size_t)host->gpu_count;
    double *rates = calloc(count * count, sizeof *rates);
    struct nw_slow_peers slow;
    nw_rc rc;

    if (rates == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the pairs of %zu GPUs", count);
    for (size_t i = 0; i < count * count; i++)
        rates[i] = host->result->direct[at(host, (int)(i / count), (int)(i % count))];
    rc = nw_peers_judge(rates, count,
                        is_switched(host) ? NW_SLOW_PEER_SWITCHED_REL : NW_SLOW_PEER_REL, &slow);
    free(rates);
    NW_TRY(rc);
    for (size_t i = 0; i < slow.gpu_count; i++)
        tell_gpu(host, &slow.gpus[i]);
    tell_links(host, &slow);
    for (size_t i = 0; i < slow.pair_count; i++)
        tell_pair(host, "p2p-slow", &slow.pairs[i], "the median of all pairs is");
    for (size_t i = 0; i < slow.asymmetric_count; i++)
        tell_pair(host, "p2p-asymmetric", &slow.asymmetric[i], "the other way it is");
    return NW_OK;
}

_Static_assert(NW_SURVEY_MAX <= NW_PATHS_MAX, "all pairs of a host are judged");

/* Rates against the paths that join the two; of pairs without NVLink. */
static void tell_paths(const struct host *host)
{
    const size_t count = (size_t)host->gpu_count;
    double rates[NW_PATHS_MAX * NW_PATHS_MAX], ceilings[NW_PATHS_MAX * NW_PATHS_MAX];
    nw_nearness nearness[NW_PATHS_MAX * NW_PATHS_MAX];
    char own[32], other[32];

    for (size_t i = 0; i < count * count; i++) {
        const int a = (int)(i / count), b = (int)(i % count);
        const bool nvlink = nvlink_ceiling(host->result, rank_of(host, a), rank_of(host, b)) != 0;

        rates[i] = nvlink ? NAN : host->result->direct[at(host, a, b)];
        ceilings[i] = nw_p2p_ceiling(host->result, rank_of(host, a), rank_of(host, b), true,
                                     &about(host, a)->pcie);
        nearness[i] = nw_survey_nearness(host->survey, host->number, a, b);
    }
    const struct nw_paths_verdict verdict = nw_paths_judge(rates, ceilings, nearness, count);

    if (verdict.inverted)
        nw_bench_finding(host->result->bench, NW_FINDING_WARN, "p2p-inverted", host->name,
                         "look for ACS redirect in the switches (\"nodeworth check\" as root, or "
                         "lspci -vvv) and switch it off; a virtual machine needs it",
                         "GPUs at one PCIe switch reach each other at %s GB/s, GPUs across at %s: "
                         "ACS sends what passes through the switch up to the CPU and back",
                         nw_format_gb_per_s(own, verdict.switch_bytes_per_s),
                         nw_format_gb_per_s(other, verdict.apart_bytes_per_s));
    if (verdict.root_limited)
        nw_bench_finding(host->result->bench, NW_FINDING_INFO, "p2p-root-limited", host->name,
                         "compare with other machines of this CPU: it is a limit of the platform, "
                         "not a fault",
                         "GPUs across reach each other at %s GB/s, %.0f %% of their PCIe links: "
                         "the CPU's root complex may be the limit",
                         nw_format_gb_per_s(other, verdict.apart_bytes_per_s),
                         100 * verdict.apart_share);
}

nw_rc nw_p2p_tell(const struct nw_p2p_result *result, const struct nw_survey *survey)
{
    const struct nw_comm *comm = result->bench->comm;

    for (int number = 0; number < comm->host_count; number++) {
        struct host host = {
            .result = result, .survey = survey, .number = number, .name = comm->host_names[number]};

        while (host.gpu_count < NW_SURVEY_MAX && rank_of(&host, host.gpu_count) >= 0)
            host.gpu_count++;
        tell_hidden(&host);
        tell_off(&host);
        NW_TRY(tell_slow(&host));
        tell_paths(&host);
    }
    return NW_OK;
}
