#include "results/gemm_rate.h"

#include <math.h>
#include <string.h>

static bool is_product(const struct nw_record *record, const char *dtype)
{
    return strcmp(record->case_name, "gemm") == 0 && strcmp(record->dtype, dtype) == 0 &&
           record->peer_a >= 0;
}

/* The rank's best; NULL: none that is right. */
static const struct nw_record *best_of(const struct nw_record *records, size_t count,
                                       const char *dtype, int rank)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < count; i++)
        if (is_product(&records[i], dtype) && records[i].peer_a == rank && records[i].rc == NW_OK &&
            records[i].flop_per_s > 0 && (best == NULL || records[i].flop_per_s > best->flop_per_s))
            best = &records[i];
    return best;
}

bool nw_gemm_rate_of(const struct nw_record *records, size_t count, const char *dtype,
                     double *flop_per_s_out, double *low_out, double *high_out)
{
    const struct nw_record *slowest = NULL;
    double flop;

    for (size_t i = 0; i < count; i++) {
        const struct nw_record *best;

        if (!is_product(&records[i], dtype))
            continue;
        best = best_of(records, count, dtype, records[i].peer_a);
        if (best ==
            NULL) /* wrong, or it failed: its rate is not known, and it might be the lowest */
            return false;
        if (slowest == NULL || best->flop_per_s < slowest->flop_per_s)
            slowest = best;
    }
    if (slowest == NULL)
        return false;
    flop = slowest->flop_per_s * slowest->time_ns.median; /* of a call, times 1e9 */
    if (flop_per_s_out != NULL)
        *flop_per_s_out = slowest->flop_per_s;
    if (low_out != NULL)
        *low_out = flop / slowest->time_ns.high;
    if (high_out != NULL)
        *high_out = flop / slowest->time_ns.low;
    return true;
}

/* ---- shape by shape ------------------------------------------------------------------------ */

/* Records of old files have no shape: square. */
static bool shape_of(const struct nw_record *record, struct nw_gemm_measured *shape)
{
    const uint64_t side = (uint64_t)llround(sqrt((double)record->count));

    shape->m = record->m > 0 ? record->m : side;
    shape->n = record->n > 0 ? record->n : side;
    shape->k = record->k > 0 ? record->k : side;
    return shape->m > 0 && shape->n > 0 && shape->k > 0;
}

static bool is_of_shape(const struct nw_record *record, const char *dtype,
                        const struct nw_gemm_measured *shape)
{
    struct nw_gemm_measured own;

    return is_product(record, dtype) && shape_of(record, &own) && own.m == shape->m &&
           own.n == shape->n && own.k == shape->k;
}

/* The better lane of the rank; NULL: none that is right. */
static const struct nw_record *best_of_shape(const struct nw_run *run, const char *dtype,
                                             const struct nw_gemm_measured *shape, int rank)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (record->peer_a == rank && is_of_shape(record, dtype, shape) && record->rc == NW_OK &&
            record->flop_per_s > 0 && (best == NULL || record->flop_per_s > best->flop_per_s))
            best = record;
    }
    return best;
}

/* Fills in the slowest GPU of the run; false: one of them has no good product. */
static bool slowest_of_shape(const struct nw_run *run, const char *dtype,
                             struct nw_gemm_measured *shape)
{
    const struct nw_record *slowest = NULL;
    int last = -1;

    shape->gpu_count = 0;
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i], *best;

        if (!is_of_shape(record, dtype, shape) || record->peer_a == last)
            continue;
        best = best_of_shape(run, dtype, shape, last = record->peer_a);
        if (best == NULL)
            return false;
        shape->gpu_count =
            record->peer_a + 1 > shape->gpu_count ? record->peer_a + 1 : shape->gpu_count;
        if (slowest == NULL || best->flop_per_s < slowest->flop_per_s)
            slowest = best;
    }
    const double flop = slowest->flop_per_s * slowest->time_ns.median;

    shape->flop_per_s = slowest->flop_per_s;
    shape->low = flop / slowest->time_ns.high;
    shape->high = flop / slowest->time_ns.low;
    shape->sm_clock_hz = slowest->during.sm_clock_hz;
    shape->power_w = slowest->during.power_w;
    shape->simulated = run->context.simulated || slowest->simulated;
    return true;
}

static struct nw_gemm_measured *find_shape(struct nw_gemm_measured *shapes, size_t count,
                                           const struct nw_gemm_measured *like)
{
    for (size_t i = 0; i < count; i++)
        if (shapes[i].m == like->m && shapes[i].n == like->n && shapes[i].k == like->k)
            return &shapes[i];
    return NULL;
}

/* Is this record the first of its shape in the run? */
static bool is_first_of_shape(const struct nw_run *run, size_t at, const char *dtype,
                              const struct nw_gemm_measured *shape)
{
    for (size_t i = 0; i < at; i++)
        if (is_of_shape(&run->records[i], dtype, shape))
            return false;
    return true;
}

size_t nw_gemm_shapes_of(const struct nw_run *const *runs, size_t run_count, const char *dtype,
                         struct nw_gemm_measured *measured_out, size_t room)
{
    size_t count = 0;

    for (size_t r = 0; r < run_count; r++)
        for (size_t i = 0; i < runs[r]->record_count; i++) {
            struct nw_gemm_measured shape;

            if (!is_product(&runs[r]->records[i], dtype) ||
                !shape_of(&runs[r]->records[i], &shape) ||
                !is_first_of_shape(runs[r], i, dtype, &shape) ||
                !slowest_of_shape(runs[r], dtype, &shape))
                continue;
            struct nw_gemm_measured *there = find_shape(measured_out, count, &shape);

            if (there != NULL && shape.flop_per_s < there->flop_per_s)
                *there = shape;
            else if (there == NULL && count < room)
                measured_out[count++] = shape;
        }
    return count;
}
