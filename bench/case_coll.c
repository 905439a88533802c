/* A collective over all ranks, size by size. Where its curve falls with size, the large sizes are
 * measured once more, in pieces of the best size: would that help? If not, then in fewer pieces, of
 * the largest size that is still good. The library's own estimate is kept beside each time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/curve.h"
#include "bench/work_coll.h"

/* A size whose time and the library's estimate disagree, of each collective; rank 0. */
struct surprise {
    double ratio; /* time over estimate; 0: none */
    double time_ns, expected_ns;
    uint64_t bytes;
};

#define SURPRISE_FACTOR    2.0        /* more, either way, is said */
#define SURPRISE_BYTES_MIN (1u << 20) /* below, NCCL's model of latencies counts, a rough one */

struct sweep {
    struct nw_bench *bench;
    struct surprise *surprises; /* by nw_coll.id */
    const struct nw_variant *variant;
    const uint64_t *sizes;
    size_t count;
    struct nw_curve curves[2]; /* out of place, in place; rank 0 */
};

static const char *const place_titles[] = {"out of place", "in place"};

static void title_of(const struct nw_variant *variant, uint64_t bytes, bool in_place,
                     uint64_t piece_bytes, char title[128])
{
    char size[32], piece[32], pieces[64] = "";

    if (piece_bytes > 0)
        snprintf(pieces, sizeof pieces, " in pieces of %s", nw_format_bytes(piece, piece_bytes));
    snprintf(title, 128, "%s %s %s%s", variant->coll->name, nw_format_bytes(size, bytes),
             place_titles[in_place], pieces);
}

static void add_to_curve(struct sweep *sweep, const struct nw_record *record)
{
    if (record->piece_bytes == sweep->bench->plan->piece_bytes || record->piece_bytes == 0)
        nw_curve_add(&sweep->curves[record->in_place], record);
}

/* The estimate of the call as it was just measured. */
static nw_rc ask_expected(struct nw_comm *comm, const struct nw_coll_work *work,
                          struct nw_record *record)
{
    const struct nw_call call = nw_coll_work_call(work);
    char text[sizeof nw_last_error()->text];
    nw_rc rc;

    if (comm->ops->expect == NULL || record->piece_bytes > 0)
        return NW_OK;
    rc = comm->ops->expect(comm, &call, &record->expected_ns);
    if (rc == NW_ENOTSUP) {
        nw_clear_error();
        return NW_OK;
    }
    if (rc == NW_OK)
        return NW_OK;
    snprintf(text, sizeof text, "%s", nw_last_error()->text);
    return nw_fail(rc, "rank %d on %s: asking for the library's estimate: %s", comm->rank,
                   comm->host_names[comm->host_index], text);
}

static double disagreement(double ratio)
{
    return ratio > 0 ? fabs(log(ratio)) : 0;
}

static void note_surprise(struct sweep *sweep, const struct nw_record *record)
{
    struct surprise *worst = &sweep->surprises[sweep->variant->coll->id];
    const double ratio = record->time_ns.median / record->expected_ns;

    if (record->bytes < SURPRISE_BYTES_MIN || !(disagreement(ratio) > log(SURPRISE_FACTOR)) ||
        disagreement(ratio) <= disagreement(worst->ratio))
        return;
    *worst = (struct surprise){.ratio = ratio,
                               .time_ns = record->time_ns.median,
                               .expected_ns = record->expected_ns,
                               .bytes = record->bytes};
}

static void tell_surprise(struct nw_bench *bench, const char *collective,
                          const struct surprise *worst)
{
    char size[32], time[32], expected[32];

    if (!(worst->ratio > 0))
        return;
    nw_bench_finding(bench, NW_FINDING_INFO, "nccl-expected", collective,
                     worst->ratio > 1 ? "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING shows "
                                        "what NCCL thinks of this machine's links"
                                      : NULL,
                     "at %s a call takes %s, %.3g times NCCL's own estimate of %s "
                     "(ncclGroupSimulateEnd)",
                     nw_format_bytes(size, worst->bytes), nw_format_ns(time, worst->time_ns),
                     worst->ratio, nw_format_ns(expected, worst->expected_ns));
}

static nw_rc measure_unit(struct sweep *sweep, const struct nw_coll_work *work, const char *title,
                          struct nw_record *record)
{
    struct nw_bench *bench = sweep->bench;
    const struct nw_measure how = nw_bench_how(bench, work->bytes, title);
    const int ranks = bench->comm->rank_count;
    const double bus_factor = ranks > 1 ? work->call.coll->bus_factor(ranks) : NAN;
    struct nw_measured measured;
    nw_rc rc;

    NW_TRY(nw_measure(&how, &work->work, &measured));
    rc = nw_measured_report(&measured, 0, bench->comm, bus_factor, record);
    nw_measured_free(&measured);
    NW_TRY(rc);
    NW_TRY(ask_expected(bench->comm, work, record));
    nw_bench_record(bench, record);
    return NW_OK;
}

/* One size at one place. `point_out` (may be NULL): what it reached, on rank 0. */
static nw_rc unit(struct sweep *sweep, uint64_t bytes, bool in_place, uint64_t piece_bytes,
                  struct nw_curve_point *point_out)
{
    struct nw_bench *bench = sweep->bench;
    const struct nw_variant *variant = sweep->variant;
    const struct nw_call call = {.coll = variant->coll,
                                 .dtype = variant->dtype,
                                 .op = variant->op,
                                 .root = variant->root,
                                 .in_place = in_place};
    const struct nw_coll_work work = nw_coll_work_of(bench, bench->comm, &call, bytes, piece_bytes);
    const struct nw_record *kept = NULL;
    struct nw_record record;
    struct nw_unit unit = {.identities = &record, .identity_count = 1};
    char title[128];
    bool go;
    nw_rc rc = NW_OK;

    nw_bench_identity(bench, "coll", &record);
    nw_variant_identity(variant, &record);
    record.bytes = work.bytes;
    record.count =
        nw_coll_shape(variant->coll, work.bytes, variant->dtype, bench->comm->rank_count).count;
    record.in_place = in_place;
    record.piece_bytes = work.piece_bytes < work.bytes ? work.piece_bytes : 0;
    title_of(variant, work.bytes, in_place, record.piece_bytes, title);
    unit.title = title;
    nw_coll_work_buffers(&work, &unit.send_bytes, &unit.recv_bytes);
    NW_TRY(nw_bench_begin(bench, &unit, &go, &kept));
    if (go) {
        rc = measure_unit(sweep, &work, title, &record);
        kept = &record;
        nw_bench_end(bench, &unit);
    }
    if (rc == NW_OK && kept != NULL) {
        add_to_curve(sweep, kept);
        note_surprise(sweep, kept);
        if (point_out != NULL)
            *point_out = nw_curve_point_of(kept);
    }
    nw_record_free(&record);
    return rc;
}

static bool helps(const struct nw_fall *fall, const struct nw_curve_point *in_pieces)
{
    return in_pieces->busbw > (1 + NW_FALL_REL) * fall->last.busbw &&
           in_pieces->low > fall->last.high;
}

static void tell_fall(struct sweep *sweep, bool in_place, const struct nw_fall *fall,
                      uint64_t piece_bytes, const struct nw_curve_point *in_pieces)
{
    char where[96], best[32], best_size[32], last[32], last_size[32];
    char piece[32], pieces[32], remedy[128] = "";
    const bool helped = helps(fall, in_pieces);

    nw_format_bytes(piece, piece_bytes);
    snprintf(where, sizeof where, "%s %s", sweep->variant->coll->name, place_titles[in_place]);
    if (helped)
        snprintf(remedy, sizeof remedy, "move large buffers in pieces (buckets) of %s", piece);
    nw_bench_finding(
        sweep->bench, NW_FINDING_WARN, "curve-falls", where, helped ? remedy : NULL,
        "bus bandwidth falls with size, from %s GB/s at %s to %s GB/s at %s; moved in pieces of %s "
        "it is %s GB/s%s",
        nw_format_gb_per_s(best, fall->best.busbw), nw_format_bytes(best_size, fall->best.bytes),
        nw_format_gb_per_s(last, fall->last.busbw), nw_format_bytes(last_size, fall->last.bytes),
        piece, nw_format_gb_per_s(pieces, in_pieces->busbw), helped ? "" : ", which is no remedy");
}

/* The sizes that have fallen, in such pieces; the largest last: it is the finding's. */
static nw_rc try_pieces(struct sweep *sweep, bool in_place, const struct nw_fall *fall,
                        uint64_t piece_bytes, struct nw_curve_point *in_pieces_out)
{
    for (size_t i = fall->fallen_count; i > 0; i--)
        if (fall->fallen[i - 1] > piece_bytes)
            NW_TRY(unit(sweep, fall->fallen[i - 1], in_place, piece_bytes, in_pieces_out));
    return NW_OK;
}

/* Try the remedy on the sizes that have fallen; rank 0 knows which, and whether it helped. */
static nw_rc examine_curve(struct sweep *sweep, bool in_place)
{
    struct nw_bench *bench = sweep->bench;
    struct nw_fall fall = {.fallen_count = 0};
    struct nw_curve_point in_pieces = {.busbw = NAN}, in_fewer = {.busbw = NAN};

    if (bench->dry || bench->plan->piece_bytes > 0)
        return NW_OK;
    if (bench->comm->rank == 0)
        nw_curve_falls(&sweep->curves[in_place], &fall);
    NW_TRY(bench->comm->ops->share(bench->comm, &fall, sizeof fall, 0));
    if (fall.fallen_count == 0)
        return NW_OK;
    NW_TRY(try_pieces(sweep, in_place, &fall, fall.best.bytes, &in_pieces));
    NW_TRY(bench->comm->ops->share(bench->comm, &in_pieces, sizeof in_pieces, 0));
    if (!helps(&fall, &in_pieces) && fall.widest.bytes > fall.best.bytes) {
        NW_TRY(try_pieces(sweep, in_place, &fall, fall.widest.bytes, &in_fewer));
        if (helps(&fall, &in_fewer)) {
            tell_fall(sweep, in_place, &fall, fall.widest.bytes, &in_fewer);
            return NW_OK;
        }
    }
    tell_fall(sweep, in_place, &fall, fall.best.bytes, &in_pieces);
    return NW_OK;
}

static nw_rc sweep_sizes(void *user)
{
    struct sweep *sweep = user;
    const struct nw_plan *plan = sweep->bench->plan;
    const bool in_place_too =
        plan->places & NW_PLACE_IN && !(sweep->variant->coll->flags & NW_COLL_NO_INPLACE);

    for (size_t i = 0; i < sweep->count; i++) {
        if (plan->places & NW_PLACE_OUT)
            NW_TRY(unit(sweep, sweep->sizes[i], false, plan->piece_bytes, NULL));
        if (in_place_too)
            NW_TRY(unit(sweep, sweep->sizes[i], true, plan->piece_bytes, NULL));
    }
    if (plan->places & NW_PLACE_OUT)
        NW_TRY(examine_curve(sweep, false));
    return in_place_too ? examine_curve(sweep, true) : NW_OK;
}

static nw_rc run_variant(struct nw_bench *bench, const struct nw_variant *variant, void *user)
{
    struct sweep sweep = {.bench = bench, .variant = variant, .surprises = user};
    struct nw_curve_point *points = NULL;
    uint64_t *sizes;
    size_t count, left_out;
    nw_rc rc = NW_OK;

    NW_TRY(nw_variant_sizes(bench, variant, bench->comm->rank_count, &sizes, &count, &left_out));
    if (left_out > 0)
        nw_bench_finding(bench, NW_FINDING_INFO, "sizes-left-out", variant->coll->name, NULL,
                         "%zu size%s too small to give each of %d ranks its chunk: left out",
                         left_out, left_out == 1 ? " is" : "s are", bench->comm->rank_count);
    if (count > 0 && nw_variant_supported(bench, variant, sizes[0])) {
        points = calloc(2 * count, sizeof *points);
        sweep.sizes = sizes;
        sweep.count = count;
        if (points == NULL)
            rc = nw_fail(NW_ENOMEM, "no memory for a curve of %zu sizes", count);
        for (int place = 0; place < 2 && points != NULL; place++)
            sweep.curves[place] =
                (struct nw_curve){.points = points + (size_t)place * count, .capacity = count};
        if (rc == NW_OK)
            rc = nw_bench_series(bench, sweep_sizes, &sweep);
    }
    free(points);
    free(sizes);
    return rc;
}

nw_rc nw_case_coll(struct nw_bench *bench)
{
    struct surprise surprises[NW_COLL_COUNT] = {{0}};

    if (bench->comm->rank_count == 1)
        nw_bench_finding(bench, NW_FINDING_WARN, "one-rank", "", "mpirun -np N with N of 2 or more",
                         "only one rank takes part: nothing crosses a wire, there is no bus "
                         "bandwidth");
    NW_TRY(nw_for_each_variant(bench, bench->comm->rank_count, run_variant, surprises));
    for (size_t i = 0; i < bench->plan->coll_count; i++)
        tell_surprise(bench, bench->plan->colls[i]->name, &surprises[bench->plan->colls[i]->id]);
    return NW_OK;
}
