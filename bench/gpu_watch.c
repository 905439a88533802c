#include "bench/gpu_watch.h"

#include <math.h>
#include <stdio.h>

static const struct nw_gpu_state unknown = {NAN, NAN, NAN, NAN, NAN, -1};

struct nw_gpu_state nw_gpu_look(struct nw_nvml *nvml, int index)
{
    struct nw_nvml_sample sample;

    if (nvml == NULL)
        return unknown;
    if (nw_nvml_sample(nvml, index, &sample) != NW_OK) {
        nw_clear_error();
        return unknown;
    }
    return (struct nw_gpu_state){
        .sm_clock_hz = sample.sm_clock_hz,
        .sm_max_clock_hz = sample.sm_max_clock_hz,
        .power_w = sample.power_w,
        .power_limit_w = sample.power_limit_w,
        .temperature_c = sample.temperature_c,
        .throttle = sample.throttle_known ? (int64_t)sample.throttle : -1,
    };
}

void nw_gpu_state_worsen(struct nw_gpu_state *worst, const struct nw_gpu_state *seen)
{
    /* fmin and fmax take the number where one of the two is NAN. */
    worst->sm_clock_hz = fmin(worst->sm_clock_hz, seen->sm_clock_hz);
    worst->sm_max_clock_hz = fmax(worst->sm_max_clock_hz, seen->sm_max_clock_hz);
    worst->power_w = fmax(worst->power_w, seen->power_w);
    worst->power_limit_w = fmin(worst->power_limit_w, seen->power_limit_w);
    worst->temperature_c = fmax(worst->temperature_c, seen->temperature_c);
    if (seen->throttle >= 0)
        worst->throttle = worst->throttle < 0 ? seen->throttle : worst->throttle | seen->throttle;
}

/* "%s%s %.0f of %.0f UNIT", what is unknown left out. */
static size_t add_pair(char *text, size_t at, const char *title, double value, double of,
                       const char *unit)
{
    const char *separator = at > 0 ? ", " : "";

    if (!isfinite(value) || at >= NW_GPU_STATE_TEXT)
        return at;
    if (isfinite(of))
        return at + (size_t)snprintf(text + at, NW_GPU_STATE_TEXT - at, "%s%s%.0f of %.0f %s",
                                     separator, title, value, of, unit);
    return at + (size_t)snprintf(text + at, NW_GPU_STATE_TEXT - at, "%s%s%.0f %s", separator, title,
                                 value, unit);
}

const char *nw_gpu_state_text(const struct nw_gpu_state *state, char text[NW_GPU_STATE_TEXT])
{
    char reasons[160];
    size_t at = 0;

    text[0] = '\0';
    if (state->throttle > 0)
        at = (size_t)snprintf(text, NW_GPU_STATE_TEXT, "%s",
                              nw_throttle_text(reasons, (uint64_t)state->throttle));
    at = add_pair(text, at, "SM clock ", state->sm_clock_hz * 1e-6, state->sm_max_clock_hz * 1e-6,
                  "MHz");
    at = add_pair(text, at, "", state->temperature_c, NAN, "C");
    add_pair(text, at, "", state->power_w, state->power_limit_w, "W");
    return text;
}
