#include "kernels/kernels.h"

#include <time.h>

#include "base/clock.h"

/* The host opens the gate within microseconds or after milliseconds: spin for the first, then sleep
 * between looks, so that a waiting thread does not take a core from the one it waits for. */
#define SPIN_NS 50000

void nw_gate_host(struct nw_gate_state *state, uint32_t ticket, uint64_t timeout_ns)
{
    const uint64_t start = nw_now_ns();
    __atomic_store_n(&state->reached, ticket, __ATOMIC_RELEASE);
    while ((int32_t)(__atomic_load_n(&state->open, __ATOMIC_ACQUIRE) - ticket) < 0) {
        const uint64_t waited = nw_now_ns() - start;
        if (waited > timeout_ns) {
            __atomic_store_n(&state->timed_out, ticket, __ATOMIC_RELEASE);
            return;
        }
        if (waited > SPIN_NS)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}
