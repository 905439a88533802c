/* NVLink of a GPU, one way: by copies between pairs, else by collectives inside a node, else by the
 * links that the driver counts; and what of the quote the hardware cannot carry at all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"
#include "topo/link.h"

static const struct nw_rate_cause causes[] = {
    {0, 0.3, "NVLink is not used: data goes over PCIe or host memory",
     "nvidia-smi topo -m; NCCL_DEBUG=INFO shows P2P or SHM; NCCL_P2P_DISABLE, container isolation, "
     "the fabric manager's state"},
    {0.3, 1, "some NVLinks are inactive", "nvidia-smi nvlink -s on each GPU"},
    {0.5, 1, "a GPU is throttled or slower than the others",
     "nvidia-smi -q -d PERFORMANCE,CLOCK during the run"},
};
enum { CAUSES = sizeof causes / sizeof causes[0] };

struct nw_nvlink nw_nvlink_know(const struct nw_audit_state *state)
{
    struct nw_nvlink nvlink;

    nw_nvlink_view(state, &nvlink.view);
    nvlink.model = nvlink.view.machine != NULL && nvlink.view.machine->gpu_model[0] != '\0'
                       ? nvlink.view.machine->gpu_model
                       : nw_audit_gpu_model(state);
    char why[320];
    const struct nw_gpu *product =
        nvlink.view.machine != NULL ? nw_machine_product(nvlink.view.machine, why) : NULL;

    nvlink.product = product != NULL ? nw_nvlink_product(product->name, false, &nvlink.name)
                                     : nw_nvlink_product(nvlink.model, true, &nvlink.name);
    nvlink.as_quoted = nvlink.model == NULL && nvlink.view.machine != NULL;
    if (nvlink.as_quoted)
        nvlink.product = nw_nvlink_product(state->quote->gpu_model, false, &nvlink.name);
    nvlink.simulated = nvlink.none = false;
    for (size_t i = 0; i < state->machine_count; i++) {
        const struct nw_machine *machine = &state->machines[i];

        nvlink.simulated =
            nvlink.simulated || (machine->gpu_model[0] != '\0' && machine->simulated);
        nvlink.none = nvlink.none || machine->nvlink == 0;
    }
    return nvlink;
}

void nw_nvlink_name_source(const struct nw_nvlink *nvlink, struct nw_audit_row *row)
{
    const struct nw_machine *machine = nvlink->view.machine;

    if (machine != NULL)
        snprintf(row->source, sizeof row->source, "%.180s%s%s",
                 machine->host[0] != '\0' ? machine->host : machine->source,
                 nvlink->view.gpu[0] != '\0' ? " " : "", nvlink->view.gpu);
    else if (nvlink->model != NULL)
        snprintf(row->source, sizeof row->source, "%s", nvlink->model);
}

/* "18 links × 25 GB/s = 450 GB/s one way, 900 both ways" of the links that are there, else of the
 * product. `text` is "" where neither is known. */
static const char *sum_text(const struct nw_nvlink *nvlink, char text[160])
{
    const struct nw_nvlink_view *view = &nvlink->view;
    const bool seen = view->links > 0 && isfinite(view->link_bytes_per_s);
    const int links = seen ? view->links : nvlink->product.links;
    const double link = (seen ? view->link_bytes_per_s : nvlink->product.link_bytes_per_s) / 1e9;

    text[0] = '\0';
    if (links > 0 && isfinite(link))
        snprintf(text, 160, "%d links \xC3\x97 %.4g GB/s = %.4g GB/s one way, %.4g both ways",
                 links, link, links * link, 2 * links * link);
    return text;
}

/* As found: the links that are up. */
static void show_links(const struct nw_nvlink_view *view, struct nw_audit_row *row)
{
    if (view->links > 0 && isfinite(view->link_bytes_per_s))
        snprintf(row->measured_text, sizeof row->measured_text,
                 "%d links \xC3\x97 %.4g GB/s active", view->links, view->link_bytes_per_s / 1e9);
    else if (view->bytes_per_s > 0)
        snprintf(row->measured_text, sizeof row->measured_text, "links of %.4g GB/s",
                 view->bytes_per_s / 1e9);
    else if (view->machine != NULL)
        snprintf(row->measured_text, sizeof row->measured_text, "no active link");
}

/* ---- what the hardware cannot carry ------------------------------------------------------------
 */

/* "350 W limit, no NVLink: this is H100 PCIe". */
static void say_none(const struct nw_nvlink *nvlink, const struct nw_audit_state *state,
                     struct nw_audit_row *row)
{
    char product[64], power[48] = "";
    double watts = NAN;

    for (size_t i = 0; i < state->machine_count; i++) {
        const struct nw_machine *machine = &state->machines[i];
        const double fact = nw_machine_least(machine, NW_FACT_POWER_LIMIT, NULL, NULL);
        const double limit = isfinite(fact) ? fact : machine->power_limit_w;

        if (limit > 0 && !(limit >= watts))
            watts = limit;
    }
    if (isfinite(watts))
        snprintf(power, sizeof power, "%.4g W limit, ", watts);
    if (nvlink->name.word_count > 0)
        nw_audit_reason(
            row, "%sno NVLink: this is %s%s", power, nw_gpu_name_text(&nvlink->name, product),
            nvlink->product.bridge ? ", whose NVLink is an optional bridge between two cards" : "");
    else
        nw_audit_reason(row, "%sno NVLink is active", power);
}

/* Made for export: fewer links than the product they derive from. */
static const struct {
    const char *product, *of;
    int links, of_links;
} cut_down[] = {{"H800", "H100", 8, 18}, {"A800", "A100", 8, 12}};
enum { CUT_DOWN = sizeof cut_down / sizeof cut_down[0] };

static bool is_product(const struct nw_nvlink *nvlink, const char *product)
{
    for (int i = 0; i < nvlink->name.word_count; i++)
        if (strcmp(nvlink->name.words[i], product) == 0)
            return true;
    return false;
}

static nw_rc short_of_links(const struct nw_nvlink *nvlink, struct nw_audit_row *row)
{
    const int links = nvlink->view.links;
    char text[240], product[64];

    snprintf(text, sizeof text, "some NVLinks are inactive");
    if (links > 0 && nvlink->product.links > links)
        snprintf(text, sizeof text, "some NVLinks are inactive: %d of %d of %s are active", links,
                 nvlink->product.links, nw_gpu_name_text(&nvlink->name, product));
    for (size_t i = 0; i < CUT_DOWN && nvlink->view.inactive == 0; i++)
        if (links == cut_down[i].links && is_product(nvlink, cut_down[i].of))
            snprintf(text, sizeof text,
                     "%d of %d NVLinks are active, and none is said to be down: as many as %s has",
                     links, nvlink->product.links, cut_down[i].product);
    return nw_rate_short_by_hardware(row,
                                     "nvidia-smi nvlink -s on each GPU; the fabric manager's "
                                     "state; a GPU or baseboard to replace",
                                     text);
}

static nw_rc short_of_product(const struct nw_nvlink *nvlink, struct nw_audit_row *row)
{
    char text[240];

    snprintf(text, sizeof text, "the GPU's NVLink is slower than quoted");
    for (size_t i = 0; i < CUT_DOWN; i++)
        if (is_product(nvlink, cut_down[i].product))
            snprintf(text, sizeof text,
                     "%s's NVLink is cut down: %d links where %s has %d; it is slower than quoted",
                     cut_down[i].product, nvlink->product.links, cut_down[i].of,
                     cut_down[i].of_links);
    if (nvlink->product.bridge)
        snprintf(text, sizeof text,
                 "the GPU's NVLink is slower than quoted: a bridge between two cards, not the "
                 "links of an SXM module");
    return nw_rate_short_by_hardware(row, "compare with the product page of the GPU that is there",
                                     text);
}

/* "8 links × 25 GB/s = 200 GB/s one way, 400 both ways; no NVSwitch: …" */
static void say_sum(const struct nw_nvlink *nvlink, struct nw_audit_row *row)
{
    const struct nw_nvlink_view *view = &nvlink->view;
    char sum[160], pair[120] = "";

    sum_text(nvlink, sum);
    if (view->switched == 0 && view->peers > 1 && view->pair_links > 0 &&
        isfinite(view->link_bytes_per_s))
        snprintf(pair, sizeof pair, "; no NVSwitch: %d links, %.4g GB/s one way, between two GPUs",
                 view->pair_links, view->pair_links * view->link_bytes_per_s / 1e9);
    if (sum[0] != '\0')
        nw_audit_reason(row, "%s%s", sum, pair);
}

static nw_rc short_without(const struct nw_nvlink *nvlink, const struct nw_audit_state *state,
                           struct nw_audit_row *row)
{
    say_none(nvlink, state, row);
    if (nvlink->product.bridge)
        return nw_rate_short_by_hardware(row, "ask for SXM modules where NVLink matters",
                                         "these are PCIe cards without an NVLink bridge");
    if (nvlink->product.bytes_per_s == 0)
        return nw_rate_short_by_hardware(row, "ask for SXM modules where NVLink matters",
                                         "this GPU has no NVLink");
    return nw_rate_short_by_hardware(row, "nvidia-smi nvlink -s; the fabric manager's state",
                                     "no NVLink is active on a GPU");
}

static nw_rc judge_ceiling(const struct nw_audit_state *state, const struct nw_nvlink *nvlink,
                           struct nw_audit_row *row)
{
    const bool both_ways = fabs(row->quoted / 2 / row->ceiling - 1) < 0.03;
    const bool measured = isfinite(row->measured);
    char sum[160];
    nw_rc rc;

    nw_nvlink_name_source(nvlink, row);
    row->simulated = row->simulated || nvlink->simulated;
    if (!measured && row->measured_text[0] == '\0')
        show_links(&nvlink->view, row);
    if (row->ceiling == 0)
        return short_without(nvlink, state, row);
    if (both_ways)
        rc = nw_rate_short_by_hardware(
            row, "in the quote file: nvlink_is = bidirectional, if the vendor confirms it",
            "the figure counts both directions: one way it is half");
    else if (isfinite(nvlink->view.bytes_per_s) && !nvlink->product.bridge &&
             nvlink->view.bytes_per_s < NW_SAME_RATE * nvlink->product.bytes_per_s)
        rc = short_of_links(nvlink, row);
    else
        rc = short_of_product(nvlink, row);
    sum_text(nvlink, sum);
    if (both_ways)
        nw_audit_reason(row,
                        "%s%s%.4g GB/s one way would be %.4g both ways; product pages print both "
                        "directions added",
                        sum, sum[0] != '\0' ? "; " : "", row->quoted / 1e9, 2 * row->quoted / 1e9);
    else if (!measured)
        say_sum(nvlink, row);
    return rc;
}

/* ---- no measurement ----------------------------------------------------------------------------
 */

static void say_unmeasured(const struct nw_audit_state *state, struct nw_audit_row *row,
                           bool bridge)
{
    char ceiling[32];
    bool any_gpu = nw_audit_gpu_model(state) != NULL;

    snprintf(row->how, sizeof row->how, "%s",
             bridge ? "bridges join pairs of cards: run all_reduce_perf on the two GPUs of a "
                      "bridge up to 8G and audit its log"
                    : "run all_reduce_perf of nccl-tests on all GPUs of one node, -b 8 -e "
                      "8G -f 2, and audit its log");
    for (size_t i = 0; i < state->machine_count; i++)
        any_gpu = any_gpu || state->machines[i].gpu_count != 0;
    if (nw_wire_has_unknown_hosts(state))
        nw_audit_reason(row, "the log does not tell how many nodes it ran on; %s", row->how);
    else if (!any_gpu && state->machine_count > 0)
        nw_audit_reason(row, "no GPU here; on the GPU node: %s", row->how);
    else if (row->ceiling > 0)
        nw_audit_reason(row, "the GPU's links carry at most %s GB/s; %s",
                        nw_format_gb_per_s(ceiling, row->ceiling), row->how);
    else
        nw_audit_reason(row, "no run on the GPUs of one node; %s", row->how);
}

/* The driver counts links that carry what is quoted: the claim about the links is met; what they
 * reach under load is another matter, and is said. */
static void meet_by_links(const struct nw_nvlink *nvlink, struct nw_audit_row *row)
{
    char sum[sizeof row->reason];

    row->verdict = NW_AUDIT_MET;
    row->simulated = row->simulated || nvlink->view.machine->simulated;
    row->reading_count = 0;
    nw_nvlink_name_source(nvlink, row);
    show_links(&nvlink->view, row);
    row->reason[0] = '\0';
    say_sum(nvlink, row);
    memcpy(sum, row->reason, sizeof sum);
    nw_audit_reason(row,
                    "%.240s%sby the active links; no large copy was measured: mpirun nodeworth "
                    "bench --cases p2p",
                    sum, sum[0] != '\0' ? "; " : "");
}

/* A matrix alone: it counts links, their rate is that of the GPU's generation. */
static void say_as_quoted(const struct nw_nvlink *nvlink, struct nw_audit_row *row)
{
    char sum[160], product[64];

    snprintf(row->how, sizeof row->how,
             "on the node: nodeworth topo --save FILE, or nvidia-smi -q; here: --topo FILE");
    nw_audit_reason(row, "if the GPUs are the quoted %s: %s; no source names them; %s",
                    nw_gpu_name_text(&nvlink->name, product), sum_text(nvlink, sum), row->how);
}

/* ---- collectives -------------------------------------------------------------------------------
 */

/* Bridges join pairs: only a run of two GPUs can be one, and it need not be. */
static size_t keep_pairs(struct nw_wire_evidence *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (list[i].rank_count != 2)
            continue;
        if (list[i].verdict == NW_AUDIT_SHORT) {
            list[i].verdict = NW_AUDIT_NOT_MEASURED;
            snprintf(list[i].reason, sizeof list[i].reason,
                     "bridges join pairs of cards, and these two need not be one; choose them by "
                     "nvidia-smi topo -m (NV#)");
        }
        list[kept++] = list[i];
    }
    return kept;
}

static nw_rc judge_collectives(const struct nw_audit_state *state, const struct nw_nvlink *nvlink,
                               struct nw_audit_row *row)
{
    const struct nw_wire_target target = {.gpu = true,
                                          .reduces = nvlink->product.reduces,
                                          .quoted = row->quoted,
                                          .ceiling = row->ceiling};
    struct nw_wire_evidence *list;
    size_t count;
    nw_rc rc = NW_OK;

    NW_TRY(nw_wire_gather(state, &target, &list, &count));
    if (nvlink->product.bridge)
        count = keep_pairs(list, count);
    const struct nw_wire_evidence *evidence = nw_wire_decide(list, count, state->findings);

    if (evidence == NULL)
        say_unmeasured(state, row, nvlink->product.bridge);
    else
        nw_rate_fill(row, evidence);
    if (row->verdict == NW_AUDIT_SHORT)
        rc = nw_rate_add_causes(row, causes, CAUSES, evidence);
    free(list);
    return rc;
}

/* ---- the claims --------------------------------------------------------------------------------
 */

nw_rc nw_judge_nvlink(const struct nw_audit_state *state, struct nw_audit_row *row)
{
    const struct nw_nvlink nvlink = nw_nvlink_know(state);
    const struct nw_nvlink_view *view = &nvlink.view;
    bool by_pairs;

    nw_nvlink_name_source(&nvlink, row);
    row->ceiling = isfinite(view->bytes_per_s) ? view->bytes_per_s : nvlink.product.bytes_per_s;
    if (row->ceiling == 0)
        return judge_ceiling(state, &nvlink, row);
    NW_TRY(nw_judge_nvlink_by_pairs(state, nvlink.product.bytes_per_s, row, &by_pairs));
    if (by_pairs && row->ceiling == 0)
        return judge_ceiling(state, &nvlink, row);
    if (by_pairs && row->verdict == NW_AUDIT_SHORT)
        NW_TRY(nw_rate_add_causes_of_share(
            row, causes, CAUSES, row->measured / (nw_nvlink_copy_efficiency().low * row->quoted)));
    if (!by_pairs)
        NW_TRY(judge_collectives(state, &nvlink, row));
    if (row->ceiling < NW_SAME_RATE * row->quoted)
        return judge_ceiling(state, &nvlink, row);
    if (row->verdict == NW_AUDIT_NOT_MEASURED && isnan(row->measured) && view->machine != NULL &&
        view->bytes_per_s >= NW_SAME_RATE * row->quoted) {
        if (nvlink.as_quoted)
            say_as_quoted(&nvlink, row);
        else
            meet_by_links(&nvlink, row);
    }
    return NW_OK;
}
