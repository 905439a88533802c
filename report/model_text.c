/* What predictions and decisions share: cells of their tables, the job. */
#include "report/model_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "report/model_text_parts.h"

const char *nw_cell_gib(struct nw_cell *cell, double bytes)
{
    char number[32];

    nw_print_to(cell->text, sizeof cell->text, "%s", nw_format_sig(number, bytes / GIB, 3));
    return cell->text;
}

struct unit {
    double ns;
    const char *name;
};

/* One unit, not two ("4 min 58 s"): the columns stay narrow and comparable. */
static const struct unit *unit_for(double ns)
{
    static const struct unit units[] = {
        {3.6e12, "h"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t u = 0;

    while (u + 1 < sizeof units / sizeof units[0] && ns < 0.9995 * units[u].ns)
        u++;
    return &units[u];
}

const char *nw_cell_part(struct nw_cell *cell, double ns)
{
    const struct unit *unit = unit_for(ns);
    char number[32];

    if (ns == 0)
        return "0";
    nw_print_to(cell->text, sizeof cell->text, "%s %s", nw_format_sig(number, ns / unit->ns, 3),
                unit->name);
    return cell->text;
}

const char *nw_report_step_time(char *to, size_t size, const struct nw_step *step)
{
    const struct unit *unit = unit_for(step->step_ns);
    char middle[32], low[32], high[32];

    nw_print_to(to, size, "%s %s [%s, %s]", nw_format_sig(middle, step->step_ns / unit->ns, 3),
                unit->name, nw_format_sig(low, step->low_ns / unit->ns, 3),
                nw_format_sig(high, step->high_ns / unit->ns, 3));
    return to;
}

const char *nw_cell_interval(struct nw_cell *cell, const struct nw_step *step)
{
    return nw_report_step_time(cell->text, sizeof cell->text, step);
}

const char *nw_cell_bounds(struct nw_cell *cell, const struct nw_step *step)
{
    struct nw_cell none, full;

    nw_print_to(cell->text, sizeof cell->text, "%.20s … %.20s",
                nw_cell_part(&none, step->no_overlap_ns),
                nw_cell_part(&full, step->full_overlap_ns));
    return cell->text;
}

const char *nw_cell_count(struct nw_cell *cell, double value)
{
    char text[32];

    nw_print_to(cell->text, sizeof cell->text, "%s", nw_format_count(text, value));
    return cell->text;
}

const char *nw_cell_percent(struct nw_cell *cell, double share)
{
    if (!isfinite(share))
        return "–";
    snprintf(cell->text, sizeof cell->text, "%.0f %%", 100 * share);
    return cell->text;
}

const char *nw_cell_nodes(struct nw_cell *cell, int node_count)
{
    snprintf(cell->text, sizeof cell->text, "%d", node_count);
    return cell->text;
}

const char *nw_cell_room(struct nw_cell *cell, const struct nw_model *model,
                         const struct nw_step *step)
{
    const double left = ((double)model->platform.memory_bytes - step->memory.total_bytes) / GIB;
    char text[32];

    if (step->fits < 0)
        return "unknown";
    if (fabs(left) < 1)
        snprintf(text, sizeof text, "%.2f", fabs(left));
    else
        nw_format_sig(text, fabs(left), 3);
    snprintf(cell->text, sizeof cell->text,
             step->fits == 1 ? nw_tr("%s free") : nw_tr("NO, %s over"), text);
    return cell->text;
}

/* The weakest link of how the communication was come by. */
const char *nw_cell_how(unsigned how)
{
    if ((how & (NW_COST_DATASHEET | NW_COST_WIRE)) != 0)
        return "datasheet";
    if ((how & NW_COST_GIVEN) != 0)
        return "given";
    if ((how & (NW_COST_RANKS | NW_COST_NODES)) != 0)
        return "extrapolated";
    if ((how & NW_COST_DERIVED) != 0)
        return "derived";
    return (how & NW_COST_SIZE) != 0 ? nw_tr("extrapolated") : nw_tr("measured");
}

const char *nw_cell_come_by(const struct nw_step *step)
{
    return step->rank_count < 2 ? "–" : nw_cell_how(step->how);
}

/* ---- head ---------------------------------------------------------------------------------- */

static void print_rate(FILE *stream, const struct nw_platform *platform)
{
    const struct nw_rate *rate = &platform->rate;
    const bool roofline = platform->hbm_bytes_per_s > 0; /* model/compute.c */
    char got[32], base[32], memory[32];

    nw_format_sig(got, rate->flops_per_s / 1e12, 3);
    nw_format_sig(base, rate->base_flops_per_s / 1e12, 3);
    if (rate->source == NW_RATE_STATED) {
        nw_print(stream, "computes at %s TFLOP/s per GPU in a training step (given)\n", got);
        return;
    }
    if (roofline)
        nw_print(stream, "computes operator by operator: matrix products at up to %s TFLOP/s",
                 base);
    else
        nw_print(stream, "computes at %s TFLOP/s per GPU: %.0f %% (assumed) of %s", got,
                 100 * rate->flops_per_s / rate->base_flops_per_s, base);
    nw_print(stream, " (%s%s)",
             rate->source == NW_RATE_CATALOGUE ? nw_tr("datasheet")
             : rate->measured                  ? nw_tr("measured, the slowest GPU")
                                               : nw_tr("given"),
             rate->simulated ? ", SIMULATED" : "");
    if (roofline && !platform->measured.memory.known)
        nw_print(stream, ", memory %s GB/s", nw_format_gb_per_s(memory, platform->hbm_bytes_per_s));
    fputc('\n', stream);
}

/* "3049 [3040, 3061] GB/s". */
static const char *rate_text(char text[96], const struct nw_figure *figure)
{
    char value[32], low[32], high[32];

    nw_print_to(text, 96, "%s [%s, %s] GB/s", nw_format_gb_per_s(value, figure->value),
                nw_format_gb_per_s(low, figure->low), nw_format_gb_per_s(high, figure->high));
    return text;
}

static void print_products(FILE *stream, const struct nw_platform *platform)
{
    const struct nw_measured *measured = &platform->measured;
    char low[32], high[32], clock[32], power[32];

    if (!platform->rate.measured)
        return;
    nw_print(stream, "measured: %zu shape%s of matrix products, the fastest [%s, %s] TFLOP/s",
             measured->product_count, measured->product_count == 1 ? "" : "s",
             nw_format_sig(low, platform->rate.base_low / 1e12, 3),
             nw_format_sig(high, platform->rate.base_high / 1e12, 3));
    if (isfinite(measured->sm_clock_hz))
        nw_print(stream, " at %s MHz", nw_format_sig(clock, measured->sm_clock_hz / 1e6, 4));
    if (isfinite(measured->power_w))
        nw_print(stream, "%s %s W", isfinite(measured->sm_clock_hz) ? "," : " at",
                 nw_format_sig(power, measured->power_w, 3));
    nw_print(stream, "%s\n", measured->products_simulated ? ", SIMULATED" : "");
}

/* What stands in the place of a datasheet's figure or an assumed constant. */
static void print_measured(FILE *stream, const struct nw_platform *platform)
{
    const struct nw_measured *measured = &platform->measured;
    const struct {
        const char *what;
        const struct nw_figure *figure;
    } rates[] = {{"memory", &measured->memory},
                 {"host to GPU", &measured->to_device},
                 {"GPU to host", &measured->to_host}};
    const struct nw_figure *loss = &measured->overlap_loss;
    char text[96];

    print_products(stream, platform);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        if (rates[i].figure->known)
            nw_print(stream, "measured: %s %s, the slowest of %d GPU%s%s\n", rates[i].what,
                     rate_text(text, rates[i].figure), rates[i].figure->gpu_count,
                     rates[i].figure->gpu_count == 1 ? "" : "s",
                     rates[i].figure->simulated ? ", SIMULATED" : "");
    if (loss->known)
        nw_print(stream,
                 "measured: %.0f %% [%.0f, %.0f] of communication behind products shows all the "
                 "same%s\n",
                 100 * loss->value, 100 * loss->low, 100 * loss->high,
                 loss->simulated ? ", SIMULATED" : "");
}

/* Ceilings of a machine that was read; what was measured goes before them. */
static void print_topology(FILE *stream, const struct nw_platform *platform)
{
    const struct nw_measured *measured = &platform->measured;
    const struct nw_fabric *fabric = &platform->fabric;
    char rate[32];

    if (!measured->links_by_topology && !measured->nics_by_topology)
        return;
    nw_print(stream, "by topology%s%s, where not measured:",
             measured->topology_host[0] != '\0' ? " of " : "", measured->topology_host);
    if (measured->links_by_topology)
        nw_print(stream, " %s of %s GB/s one way%s", fabric->link_is_pcie ? "PCIe" : "NVLinks",
                 nw_format_gb_per_s(rate, fabric->link_bytes_per_s),
                 measured->nics_by_topology ? "," : "");
    if (measured->nics_by_topology)
        nw_print(stream, " %d NIC%s of %s GB/s together", fabric->nic_count,
                 fabric->nic_count == 1 ? "" : "s",
                 nw_format_gb_per_s(rate, fabric->wire_bytes_per_s));
    fputs(measured->topology_simulated ? ", SIMULATED\n" : "\n", stream);
}

void nw_report_training(FILE *stream, const struct nw_job *job)
{
    nw_print(stream, "%s: %" PRIu64 " parameters · %s, %s%s%s\n", job->net.name,
             nw_transformer_parameter_count(&job->net), job->precision->name, job->optimizer->title,
             job->gradient_bytes > job->precision->element_bytes ? nw_tr(", fp32 gradients") : "",
             job->recompute == NW_RECOMPUTE_FULL        ? nw_tr(", full recomputation")
             : job->recompute == NW_RECOMPUTE_SELECTIVE ? nw_tr(", attention recomputed")
                                                        : "");
    if (job->net.stated_parameters > 0 && job->sequence == 1)
        nw_print(stream,
                 "step: %" PRIu64 " samples, each counted as a token, at most %" PRIu64
                 " per data-parallel rank at a time\n",
                 job->global_batch, job->micro_batch);
    else
        nw_print(stream,
                 "step: %" PRIu64 " sequences of %" PRIu64 " token%s, at most %" PRIu64
                 " per data-parallel rank at a time\n",
                 job->global_batch, job->sequence, job->sequence == 1 ? "" : "s", job->micro_batch);
}

static bool has_several_lanes(const struct nw_curves *curves)
{
    for (size_t i = 1; i < curves->count; i++)
        if (strcmp(curves->items[i].lane, curves->items[0].lane) != 0)
            return true;
    return false;
}

/* "tp 2 × pp 4 × dp 2", where a model is cut. */
static void print_spread(FILE *stream, const struct nw_model *model)
{
    const struct {
        const char *name;
        int value;
    } degrees[] = {{"tp", model->parallel.tp},
                   {"pp", model->parallel.pp},
                   {"cp", model->parallel.cp},
                   {"ep", model->parallel.ep},
                   {"virtual stages", model->parallel.virtual_stages},
                   {"ranks a copy", model->parallel.shard_count}};
    bool any = false;

    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        if (degrees[i].value <= 1)
            continue;
        nw_print(stream, "%s%s %d", any ? ", " : nw_tr("spread: "), degrees[i].name,
                 degrees[i].value);
        any = true;
    }
    if (any)
        nw_print(stream, "%s; the rest data parallel\n",
                 model->parallel.sequence_parallel ? nw_tr(", sequence parallel") : "");
}

static void print_framework(FILE *stream, const struct nw_model *model)
{
    if (model->profile != NULL) {
        nw_print(stream, "framework: %s (%s)\n", model->profile->name, model->profile->title);
        return;
    }
    nw_print(stream, "framework:");
    for (size_t i = 0; model->strategies[i] != NULL; i++) {
        const struct nw_layout layout =
            nw_model_layout(model, model->node_counts[0], model->strategies[i]);

        nw_print(stream, "%s %s of %s", i > 0 ? "," : "", model->strategies[i]->name,
                 layout.profile->name);
    }
    fputc('\n', stream);
}

nw_rc nw_report_job(FILE *stream, const struct nw_model *model)
{
    const struct nw_platform *platform = &model->platform;
    const struct nw_fabric *fabric = &platform->fabric;
    char text[32];

    const struct nw_layout layout =
        nw_model_layout(model, model->node_counts[0], model->strategies[0]);
    const struct nw_job job = nw_model_job(model, &layout);

    nw_report_training(stream, &job);
    print_framework(stream, model);
    print_spread(stream, model);
    nw_print(stream, "%d GPU%s per node%s%s", fabric->gpus_per_node,
             fabric->gpus_per_node == 1 ? "" : "s", platform->gpu != NULL ? ", " : "",
             platform->gpu != NULL ? platform->gpu->name : "");
    if (platform->memory_bytes > 0)
        nw_print(stream, ", %s each", nw_format_bytes(text, platform->memory_bytes));
    fputc('\n', stream);
    print_rate(stream, platform);
    print_measured(stream, platform);
    print_topology(stream, platform);
    if (has_several_lanes(&model->curves))
        nw_print(stream, "communication as measured over lane %s\n",
                 fabric->lane != NULL ? fabric->lane : nw_curves_lane(&model->curves));
    if (model->curves.count == 0)
        nw_print(stream, "no measured communication was given (--results FILE)\n");
    return NW_OK;
}
