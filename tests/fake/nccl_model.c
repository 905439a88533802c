/* How long NCCL takes: alpha + bytes on the bus / bus bandwidth, with nccl-tests' factors (its
 * doc/PERFORMANCE.md), from the lane that this process's environment chooses; between hosts the
 * wire's alpha is added and the lower rate counts. */
#include "tests/fake/nccl_comm.h"

double fk_path_us(ncclComm_t comm, fk_coll coll, double bus_bytes, bool crosses)
{
    struct fk_path path = comm->lane->path[coll];
    if (crosses && comm->wire) {
        const struct fk_path wire = comm->wire->path[coll];
        path.alpha_us += wire.alpha_us;
        if (wire.bytes_per_s < path.bytes_per_s)
            path.bytes_per_s = wire.bytes_per_s;
    }
    return path.alpha_us + bus_bytes / path.bytes_per_s * 1e6;
}

double fk_coll_us(ncclComm_t comm, fk_coll coll, size_t count, size_t type_bytes, bool in_place)
{
    const double n = comm->rank_count, bytes = (double)count * (double)type_bytes;
    if (comm->rank_count == 1) { /* NCCL copies, or does nothing */
        const struct fk_gpu *gpu = &fk_machine()->gpus[fk_context_gpu(comm->context)];
        return in_place ? 0 : gpu->d2d.alpha_us + bytes / gpu->d2d.bytes_per_s * 1e6;
    }
    double bus_bytes = bytes;
    if (coll == FK_ALL_REDUCE)
        bus_bytes = 2 * (n - 1) / n * bytes;
    else if (coll != FK_BROADCAST && coll != FK_REDUCE && coll != FK_SENDRECV)
        bus_bytes = (n - 1) * bytes; /* `bytes` is one chunk of n */
    return fk_path_us(comm, coll, bus_bytes, true);
}

double fk_messages_us(ncclComm_t comm, const struct fk_message *messages, int count)
{
    double out = 0, in = 0, self = 0;
    int sends = 0, recvs = 0;
    bool crosses = false;
    for (int i = 0; i < count; i++) {
        const struct fk_message *m = &messages[i];
        if (m->peer == comm->rank) {
            self += m->send ? (double)m->bytes : 0;
            continue;
        }
        crosses |= comm->hosts[m->peer] != comm->hosts[comm->rank];
        *(m->send ? &sends : &recvs) += 1;
        *(m->send ? &out : &in) += (double)m->bytes;
    }
    const struct fk_gpu *gpu = &fk_machine()->gpus[fk_context_gpu(comm->context)];
    if (sends + recvs == 0)
        return gpu->d2d.alpha_us + self / gpu->d2d.bytes_per_s * 1e6;
    const fk_coll coll = sends > 1 && recvs > 1 ? FK_ALLTOALL
                         : recvs > 1            ? FK_GATHER
                         : sends > 1            ? FK_SCATTER
                                                : FK_SENDRECV;
    return fk_path_us(comm, coll, out > in ? out : in, crosses);
}
