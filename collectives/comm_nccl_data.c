/* Buffers in a GPU's memory, and the test patterns there: the GPU fills and compares by itself,
 * from tables that the oracle makes. */
#include <string.h>

#include "collectives/comm_nccl.h"

/* A copy or kernel over one buffer; the slowest bus is PCIe Gen1 x1 with 0.2 GB/s. */
#define STEP_TIMEOUT_NS(bytes) (10e9 + 5.0 * (double)(bytes))

static struct nccl_gpu *gpu_of(struct nw_comm *base)
{
    return ((struct nccl_comm *)base)->gpu;
}

nw_rc nw_nccl_free_bytes(struct nw_comm *base, uint64_t *bytes_out)
{
    struct nccl_gpu *gpu = gpu_of(base);

    return gpu->dev->ops->free_bytes(gpu->dev, bytes_out);
}

static void keep_failure(struct nccl_gpu *gpu, nw_rc rc)
{
    if (rc != NW_OK && gpu->failed.rc == NW_OK)
        gpu->failed = *nw_last_error();
}

static nw_rc copy(struct nccl_gpu *gpu, void *to, const void *from, uint64_t bytes)
{
    NW_TRY(gpu->dev->ops->copy(gpu->stream, to, from, bytes));
    return gpu->dev->ops->wait(gpu->stream, STEP_TIMEOUT_NS(bytes));
}

void nw_nccl_put(struct nw_comm *base, void *to, const void *from_host, uint64_t bytes)
{
    keep_failure(gpu_of(base), copy(gpu_of(base), to, from_host, bytes));
}

void nw_nccl_get(struct nw_comm *base, void *to_host, const void *from, uint64_t bytes)
{
    keep_failure(gpu_of(base), copy(gpu_of(base), to_host, from, bytes));
}

static struct nw_pattern pattern_on(const struct nccl_gpu *gpu, const struct nw_call *call)
{
    return (struct nw_pattern){.table = gpu->device->table.elements,
                               .element_bytes = (int32_t)nw_dtype_bytes(call->dtype)};
}

/* The staged table to the device; waiting before the next one is made keeps the two apart. */
static nw_rc upload(struct nccl_gpu *gpu)
{
    return gpu->dev->ops->copy(gpu->stream, gpu->device, gpu->pinned, sizeof *gpu->pinned);
}

static nw_rc fill(struct nw_comm *comm, const struct nw_call *call, uint64_t round)
{
    struct nccl_gpu *gpu = gpu_of(comm);
    const struct nw_dev_ops *ops = gpu->dev->ops;
    const struct nw_pattern pattern = pattern_on(gpu, call);
    const uint64_t count = call->shape.count, bytes = count * (uint64_t)pattern.element_bytes;
    const int chunks = nw_oracle_fill_chunks(call, comm->rank, comm->rank_count);
    unsigned char poison;
    const uint64_t poison_bytes = nw_oracle_poison(call, comm->rank, &poison);

    if (poison_bytes > 0)
        NW_TRY(ops->set(gpu->stream, call->recv, poison, poison_bytes));
    for (int chunk = 0; chunk < chunks; chunk++) {
        nw_oracle_fill_table(call, comm->rank, comm->rank_count, round, chunk, &gpu->pinned->table);
        NW_TRY(upload(gpu));
        NW_TRY(
            ops->fill(gpu->stream, (char *)call->send + (uint64_t)chunk * bytes, count, &pattern));
        NW_TRY(ops->wait(gpu->stream, STEP_TIMEOUT_NS(bytes)));
    }
    return ops->wait(gpu->stream, STEP_TIMEOUT_NS(poison_bytes));
}

void nw_nccl_fill(struct nw_comm *comm, const struct nw_call *call, uint64_t round)
{
    keep_failure(gpu_of(comm), fill(comm, call, round));
}

/* One chunk; the verdict is then in gpu->pinned. */
static nw_rc verify(struct nccl_gpu *gpu, const struct nw_call *call, int chunk)
{
    const struct nw_dev_ops *ops = gpu->dev->ops;
    const struct nw_pattern pattern = pattern_on(gpu, call);
    const uint64_t count = call->shape.count, bytes = count * (uint64_t)pattern.element_bytes;

    gpu->pinned->verdict = (struct nw_verdict)NW_VERDICT_CLEAN;
    NW_TRY(upload(gpu));
    NW_TRY(ops->verify(gpu->stream, (const char *)call->recv + (uint64_t)chunk * bytes, count,
                       &pattern, &gpu->device->verdict));
    NW_TRY(ops->copy(gpu->stream, &gpu->pinned->verdict, &gpu->device->verdict,
                     sizeof gpu->pinned->verdict));
    return ops->wait(gpu->stream, STEP_TIMEOUT_NS(bytes));
}

uint64_t nw_nccl_check(struct nw_comm *comm, const struct nw_call *call, uint64_t round,
                       struct nw_wrong *first_out)
{
    struct nccl_gpu *gpu = gpu_of(comm);
    const struct nw_verdict *verdict = &gpu->pinned->verdict;
    const struct nw_oracle_table *table = &gpu->pinned->table;
    const int chunks = nw_oracle_check_chunks(call, comm->rank, comm->rank_count);
    uint64_t wrong = 0;

    for (int chunk = 0; chunk < chunks; chunk++) {
        nw_oracle_check_table(call, comm->rank, comm->rank_count, round, chunk,
                              &gpu->pinned->table);
        const nw_rc rc = verify(gpu, call, chunk);

        keep_failure(gpu, rc);
        if (rc != NW_OK)
            return wrong;
        if (verdict->wrong_count > 0 && wrong == 0)
            *first_out = (struct nw_wrong){
                .index = (uint64_t)chunk * call->shape.count + verdict->first_index,
                .expected = nw_dtype_value(call->dtype, &verdict->expected_bits, 0),
                .found = nw_dtype_value(call->dtype, &verdict->found_bits, 0),
                .from_rank = table->from_rank};
        wrong += verdict->wrong_count;
    }
    return wrong;
}
