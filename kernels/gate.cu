// The spin gate: work queued behind it starts when the host says so, with all launches already
// made, so that a timed window holds no launch. One thread of one block; gives up after
// `timeout_ns`.
//
// Floor: none to speak of. Between the host's store and the kernel's end lies one read over the bus
// (about 1 us on PCIe), which no timed window contains: the first mark is set after the gate.
#include "kernels/device.cuh"
#include "kernels/kernels.h"

extern "C" __global__ void nw_kernel_gate(struct nw_gate_state *state, uint32_t ticket,
                                          uint64_t timeout_ns)
{
    volatile struct nw_gate_state *s = state;
    const uint64_t start = nw_device_clock_ns();
    s->reached = ticket;
    // Tickets count up; the difference survives the wrap of 32 bits.
    while ((int32_t)(s->open - ticket) < 0) {
        if (nw_device_clock_ns() - start > timeout_ns) {
            s->timed_out = ticket;
            break;
        }
    }
    __threadfence_system();
}
