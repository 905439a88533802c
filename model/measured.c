#include "model/measured.h"

#include <math.h>
#include <string.h>

#include "results/gemm_rate.h"

/* A copy's time is that of its bytes: memory from here on (its launch is 2 us, 64 MiB at 4 TB/s are
 * 17), and the host link. */
#define MEMORY_BYTES (64u << 20)
#define LINK_BYTES   (1u << 20)

/* ---- the runs that count ------------------------------------------------------------------- */

/* The GPU of a run, as its context names it; NULL: unknown. */
static const char *gpu_of(const struct nw_run *run)
{
    const struct nw_context *context = &run->context;

    if (context->gpu_model[0] != '\0')
        return context->gpu_model;
    for (int h = 0; context->hosts != NULL && h < context->host_count; h++)
        if (context->hosts[h].gpu_model[0] != '\0')
            return context->hosts[h].gpu_model;
    return NULL;
}

const char *nw_measured_gpu(const struct nw_results *results)
{
    for (size_t r = 0; results != NULL && r < results->run_count; r++)
        if (gpu_of(&results->runs[r]) != NULL)
            return gpu_of(&results->runs[r]);
    return NULL;
}

/* Made on that GPU, or it does not say on which. */
static bool is_on(const struct nw_run *run, const char *gpu)
{
    const char *own = gpu_of(run);

    return own == NULL || gpu == NULL || strcmp(own, gpu) == 0;
}

/* ---- copies -------------------------------------------------------------------------------- */

static bool is_good_copy(const struct nw_record *record, const char *case_name, uint64_t least)
{
    return strcmp(record->case_name, case_name) == 0 && strcmp(record->collective, "copy") == 0 &&
           record->rc == NW_OK && record->wrong_elements <= 0 && record->peer_a >= 0 &&
           record->bytes >= least && record->time_ns.median > 0 && record->algbw_bytes_per_s > 0;
}

/* More GPUs at once say more of a step, where all copy; then the larger size; then, of ways to do
 * the same, the faster. */
static bool says_more(const struct nw_record *a, const struct nw_record *b)
{
    if (a->rank_count != b->rank_count)
        return a->rank_count > b->rank_count;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes;
    return a->algbw_bytes_per_s > b->algbw_bytes_per_s;
}

/* The record that says most of one GPU of the run. */
static const struct nw_record *copy_of(const struct nw_run *run, const char *case_name,
                                       uint64_t least, int rank)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (record->peer_a == rank && is_good_copy(record, case_name, least) &&
            (best == NULL || says_more(record, best)))
            best = record;
    }
    return best;
}

static void take_slower(struct nw_figure *figure, const struct nw_run *run,
                        const struct nw_record *record, double factor)
{
    const struct nw_stats *time = &record->time_ns;
    const double value = factor * record->algbw_bytes_per_s;
    const bool has_interval = time->low > 0 && time->high >= time->low;

    if (figure->known && figure->value <= value)
        return;
    figure->known = true;
    figure->simulated = run->context.simulated || record->simulated;
    figure->value = value;
    figure->low = has_interval ? value * time->median / time->high : value;
    figure->high = has_interval ? value * time->median / time->low : value;
}

/* Of all GPUs of a run the slowest. */
static void take_copies(const struct nw_run *run, const char *case_name, uint64_t least,
                        double factor, struct nw_figure *figure)
{
    int count = 0;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (!is_good_copy(record, case_name, least) ||
            copy_of(run, case_name, least, record->peer_a) != record)
            continue;
        take_slower(figure, run, record, factor);
        count++;
    }
    figure->gpu_count = count > figure->gpu_count ? count : figure->gpu_count;
}

/* ---- overlap ------------------------------------------------------------------------------- */

static bool is_overlap(const struct nw_record *record)
{
    return strcmp(record->case_name, "overlap") == 0 && record->rc == NW_OK &&
           record->wrong_elements <= 0 && record->rank_count > 1 && isfinite(record->hidden_share);
}

/* Of the largest group: the middle between the collective that loses least and the one that loses
 * most. */
static void take_overlap(const struct nw_run *run, struct nw_figure *figure)
{
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (!is_overlap(record) || record->rank_count < figure->gpu_count)
            continue;
        const double loss = fmin(fmax(1 - record->hidden_share, 0), 1);
        const bool first = record->rank_count > figure->gpu_count;

        figure->known = true;
        figure->simulated = run->context.simulated || record->simulated;
        figure->gpu_count = record->rank_count;
        figure->low = first ? loss : fmin(figure->low, loss);
        figure->high = first ? loss : fmax(figure->high, loss);
        figure->value = (figure->low + figure->high) / 2;
    }
}

/* ---- products ------------------------------------------------------------------------------ */

static void take_products(const struct nw_run *run, const char *dtype, struct nw_measured *measured,
                          double *largest)
{
    struct nw_gemm_measured shapes[NW_GEMM_POINTS_MAX];
    const size_t count = nw_gemm_shapes_of(&run, 1, dtype, shapes, NW_GEMM_POINTS_MAX);

    for (size_t i = 0; i < count; i++) {
        const struct nw_gemm_measured *shape = &shapes[i];
        const double m = (double)shape->m, n = (double)shape->n, k = (double)shape->k;
        size_t at = 0;

        while (at < measured->product_count &&
               (measured->products[at].m != m || measured->products[at].n != n ||
                measured->products[at].k != k))
            at++;
        if (at == NW_GEMM_POINTS_MAX || (at < measured->product_count &&
                                         measured->products[at].flops_per_s < shape->flop_per_s))
            continue;
        measured->products[at] = (struct nw_gemm_point){.batch = 1,
                                                        .m = m,
                                                        .n = n,
                                                        .k = k,
                                                        .flops_per_s = shape->flop_per_s,
                                                        .low = shape->low,
                                                        .high = shape->high};
        measured->product_count += at == measured->product_count;
        measured->products_simulated |= shape->simulated;
        if (m * n * k >= *largest) {
            *largest = m * n * k;
            measured->sm_clock_hz = shape->sm_clock_hz;
            measured->power_w = shape->power_w;
        }
    }
}

void nw_measured_of(const struct nw_results *results, const char *dtype,
                    struct nw_measured *measured_out)
{
    const char *gpu = nw_measured_gpu(results);
    double largest = 0;

    *measured_out = (struct nw_measured){.sm_clock_hz = NAN, .power_w = NAN};
    for (size_t r = 0; results != NULL && r < results->run_count; r++) {
        const struct nw_run *run = &results->runs[r];

        if (!is_on(run, gpu))
            continue;
        /* a copied byte is read and written */
        take_copies(run, "d2d", MEMORY_BYTES, 2, &measured_out->memory);
        take_copies(run, "h2d", LINK_BYTES, 1, &measured_out->to_device);
        take_copies(run, "d2h", LINK_BYTES, 1, &measured_out->to_host);
        take_overlap(run, &measured_out->overlap_loss);
        if (dtype != NULL)
            take_products(run, dtype, measured_out, &largest);
    }
}

bool nw_measured_is_simulated(const struct nw_measured *measured)
{
    return measured->products_simulated || measured->memory.simulated ||
           measured->to_device.simulated || measured->to_host.simulated ||
           measured->overlap_loss.simulated ||
           (measured->topology_simulated &&
            (measured->links_by_topology || measured->nics_by_topology));
}
