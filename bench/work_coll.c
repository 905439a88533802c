#include "bench/work_coll.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE_BYTES 4096u

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

struct cursor { /* how far the pieces have come */
    uint64_t done, send, recv;
};

/* The next piece as a call of its own, with its own place in the buffers. */
static bool next_piece(const struct nw_coll_work *work, uint64_t slot, struct cursor *at,
                       struct nw_call *call_out)
{
    const uint64_t left = work->bytes - at->done;
    struct nw_call call = work->call;

    if (left == 0)
        return false;
    call.shape = nw_coll_shape(call.coll, left < work->piece_bytes ? left : work->piece_bytes,
                               call.dtype, work->comm->rank_count);
    if (call.shape.count == 0)
        return false;
    if (work->send != NULL && work->recv != NULL) /* else only sizes are asked for */
        nw_call_place(&call, work->comm->rank, work->send + slot * work->send_stride + at->send,
                      work->recv + slot * work->recv_stride + at->recv);
    at->done += call.shape.bytes;
    at->send += call.shape.send_bytes;
    at->recv += call.shape.recv_bytes;
    *call_out = call;
    return true;
}

nw_rc nw_coll_work_queue(const struct nw_coll_work *work, uint64_t index)
{
    struct cursor at = {0};
    struct nw_call call;

    while (next_piece(work, index % work->slot_count, &at, &call))
        NW_TRY(work->comm->ops->call(work->comm, &call));
    return NW_OK;
}

static nw_rc queue_pieces(void *user, uint64_t index)
{
    return nw_coll_work_queue(user, index);
}

static nw_rc meet(void *user)
{
    const struct nw_coll_work *work = user;

    return work->comm->ops->meet != NULL ? work->comm->ops->meet(work->comm) : NW_OK;
}

/* What stands behind a gate has been done without one before, the meeting too. */
static nw_rc call_pieces(const struct nw_work *base, uint64_t index)
{
    struct nw_coll_work work = *(const struct nw_coll_work *)base;

    NW_TRY(nw_coll_work_queue(&work, index));
    return base->time != NULL ? meet(&work) : NW_OK;
}

static nw_rc finish_pieces(void *user, double timeout_ns)
{
    const struct nw_coll_work *work = user;

    return nw_comm_finish(work->comm, timeout_ns);
}

static nw_rc time_pieces(const struct nw_work *base, uint64_t index, uint32_t calls, double *ns_out)
{
    struct nw_coll_work work = *(const struct nw_coll_work *)base;
    struct nw_gated gated = nw_bench_gate(work.bench, work.bytes, calls);

    gated.meet = meet;
    gated.queue = queue_pieces;
    gated.finish = finish_pieces;
    gated.user = &work;
    gated.graph = work.comm->graphs;
    return nw_gated_time(&gated, index, calls, ns_out);
}

static void fill_pieces(const struct nw_work *base, uint64_t round)
{
    const struct nw_coll_work *work = (const struct nw_coll_work *)base;
    struct cursor at = {0};
    struct nw_call call;

    while (next_piece(work, 0, &at, &call))
        nw_comm_fill(work->comm, &call, round);
}

static uint64_t check_pieces(const struct nw_work *base, uint64_t round, struct nw_wrong *first_out)
{
    const struct nw_coll_work *work = (const struct nw_coll_work *)base;
    const size_t element_bytes = nw_dtype_bytes(work->call.dtype);
    struct cursor at = {0};
    struct nw_call call;
    uint64_t wrong = 0, before = 0;

    while (next_piece(work, 0, &at, &call)) {
        struct nw_wrong first;
        const uint64_t count = nw_comm_check(work->comm, &call, round, &first);

        if (count > 0 && wrong == 0) {
            *first_out = first;
            first_out->index += before;
        }
        wrong += count;
        before = at.recv / element_bytes;
    }
    return wrong;
}

/* What the pieces add up to: less than asked for, where the last one is too small to share out. */
static uint64_t sum_of_pieces(const struct nw_coll_work *work, uint64_t *count_out)
{
    struct cursor at = {0};
    struct nw_call call;

    for (*count_out = 0; next_piece(work, 0, &at, &call); ++*count_out)
        continue;
    return at.done;
}

/* By the device's clock where the calls are queued on a stream. More pieces than fit behind a gate:
 * by the host's, as so many last long beside a barrier. */
static void set_time(struct nw_coll_work *work, uint64_t piece_count)
{
    if (work->bench->start == NULL || piece_count == 0 || piece_count > NW_GATED_CALLS_MAX)
        return;
    work->work.time = time_pieces;
    work->work.calls_max = (uint32_t)(NW_GATED_CALLS_MAX / piece_count);
}

static void set_slots(struct nw_coll_work *work, const struct nw_bench *bench)
{
    uint64_t send_bytes, recv_bytes, send_slots, recv_slots;

    work->slot_count = 1;
    if (!bench->plan->cold || bench->send == NULL)
        return;
    nw_coll_work_buffers(work, &send_bytes, &recv_bytes);
    work->send_stride = page_up(send_bytes);
    work->recv_stride = page_up(recv_bytes);
    send_slots = send_bytes > 0 ? bench->send_bytes / work->send_stride : UINT64_MAX;
    recv_slots = recv_bytes > 0 ? bench->recv_bytes / work->recv_stride : UINT64_MAX;
    work->slot_count = send_slots < recv_slots ? send_slots : recv_slots;
    if (work->slot_count == 0)
        work->slot_count = 1;
}

struct nw_coll_work nw_coll_work_of(const struct nw_bench *bench, struct nw_comm *comm,
                                    const struct nw_call *call, uint64_t bytes,
                                    uint64_t piece_bytes)
{
    struct nw_coll_work work = {
        .work = {.call = call_pieces,
                 .fill = fill_pieces,
                 .check = check_pieces,
                 .result_stays = !call->in_place},
        .bench = bench,
        .comm = comm,
        .call = *call,
        .bytes = bytes,
        .piece_bytes = piece_bytes == 0 || piece_bytes > bytes ? bytes : piece_bytes,
        .send = bench->send,
        .recv = bench->recv,
        .slot_count = 1,
    };
    uint64_t piece_count;

    work.bytes = sum_of_pieces(&work, &piece_count);
    set_time(&work, piece_count);
    set_slots(&work, bench);
    return work;
}

void nw_coll_work_buffers(const struct nw_coll_work *work, uint64_t *send_bytes_out,
                          uint64_t *recv_bytes_out)
{
    const struct nw_shape shape =
        nw_coll_shape(work->call.coll, work->bytes, work->call.dtype, work->comm->rank_count);
    const bool in_place = work->call.in_place;

    *send_bytes_out = in_place && shape.send_bytes <= shape.recv_bytes ? 0 : shape.send_bytes;
    *recv_bytes_out = in_place && shape.recv_bytes < shape.send_bytes ? 0 : shape.recv_bytes;
}

struct nw_call nw_coll_work_call(const struct nw_coll_work *work)
{
    struct cursor at = {0};
    struct nw_call call = work->call;

    (void)next_piece(work, 0, &at, &call);
    return call;
}

/* nw_variant.root where there is none; a call ignores it. */
#define NO_ROOT 0

nw_rc nw_for_each_variant(struct nw_bench *bench, int rank_count,
                          nw_rc (*run)(struct nw_bench *bench, const struct nw_variant *variant,
                                       void *user),
                          void *user)
{
    const struct nw_plan *plan = bench->plan;

    if (plan->root >= rank_count)
        return nw_fail(NW_EUSAGE,
                       "option -r (--root): %d is no rank; accepted: -1 (every rank in "
                       "turn), 0 to %d",
                       plan->root, rank_count - 1);
    for (size_t coll = 0; coll < plan->coll_count; coll++) {
        const unsigned flags = plan->colls[coll]->flags;
        const size_t op_count = flags & NW_COLL_REDUCES ? plan->op_count : 1;
        const bool every_root = flags & NW_COLL_ROOTED && plan->root < 0;
        const int first_root = flags & NW_COLL_ROOTED && plan->root > 0 ? plan->root : NO_ROOT;
        const int root_count = every_root ? rank_count : 1;

        for (size_t dtype = 0; dtype < plan->dtype_count; dtype++) {
            for (size_t op = 0; op < op_count; op++) {
                for (int root = first_root; root < first_root + root_count; root++) {
                    const struct nw_variant variant = {.coll = plan->colls[coll],
                                                       .dtype = plan->dtypes[dtype],
                                                       .op = plan->ops[op],
                                                       .root = root};

                    NW_TRY(run(bench, &variant, user));
                }
            }
        }
    }
    return NW_OK;
}

void nw_variant_identity(const struct nw_variant *variant, struct nw_record *record)
{
    const unsigned flags = variant->coll->flags;

    snprintf(record->collective, sizeof record->collective, "%s", variant->coll->name);
    snprintf(record->dtype, sizeof record->dtype, "%s", nw_dtype_name(variant->dtype));
    snprintf(record->op, sizeof record->op, "%s",
             flags & NW_COLL_REDUCES ? nw_redop_name(variant->op) : "none");
    record->root = flags & NW_COLL_ROOTED ? variant->root : -1;
}

nw_rc nw_variant_sizes(const struct nw_bench *bench, const struct nw_variant *variant,
                       int rank_count, uint64_t **sizes_out, size_t *count_out,
                       size_t *left_out_out)
{
    uint64_t *sizes = calloc(bench->size_count, sizeof *sizes);
    size_t count = 0, left_out = 0;

    if (sizes == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu sizes", bench->size_count);
    for (size_t i = 0; i < bench->size_count; i++) {
        const struct nw_shape shape =
            nw_coll_shape(variant->coll, bench->sizes[i], variant->dtype, rank_count);

        if (shape.count == 0)
            left_out++;
        else if (count == 0 || sizes[count - 1] != shape.bytes)
            sizes[count++] = shape.bytes;
    }
    nw_plan_order(bench->plan, sizes, count);
    *sizes_out = sizes;
    *count_out = count;
    *left_out_out = left_out;
    return NW_OK;
}

bool nw_variant_supported(struct nw_bench *bench, const struct nw_variant *variant, uint64_t bytes)
{
    struct nw_call call = {
        .coll = variant->coll, .dtype = variant->dtype, .op = variant->op, .root = variant->root};

    call.shape = nw_coll_shape(call.coll, bytes, call.dtype, bench->comm->rank_count);
    if (bench->comm->ops->supports(bench->comm, &call))
        return true;
    nw_bench_finding(bench, NW_FINDING_INFO, "not-supported", variant->coll->name, NULL,
                     "%s of %s (%s) is not measured: %s", variant->coll->name,
                     nw_dtype_name(variant->dtype), nw_redop_name(variant->op),
                     nw_last_error()->text);
    return false;
}
