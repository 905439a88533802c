/* Private to bench/. What the driver says of a GPU while it works, as a record has it. */
#ifndef NW_BENCH_GPU_WATCH_H
#define NW_BENCH_GPU_WATCH_H

#include "bench/record.h"
#include "topo/nvml_api.h"

/* Now. Everything unknown where `nvml` is NULL or does not answer. */
struct nw_gpu_state nw_gpu_look(struct nw_nvml *nvml, int index);
/* `worst` becomes what was worst of it and `seen`: the lowest clock, the highest power and
 * temperature, every reason to throttle. */
void nw_gpu_state_worsen(struct nw_gpu_state *worst, const struct nw_gpu_state *seen);
/* "heat; SM clock 1200 of 1980 MHz, 88 C, 410 of 700 W", as far as known. */
#define NW_GPU_STATE_TEXT 256
const char *nw_gpu_state_text(const struct nw_gpu_state *state, char text[NW_GPU_STATE_TEXT]);

#endif
