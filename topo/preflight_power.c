/* Power and clocks: a limit that was lowered, and why a GPU's clocks are low at this moment.
 *
 * The reasons alone say little: a power cap at full power is what the cap is for, and an idle GPU
 * is slow by intent. Reason and power together tell a fault (mlfoundations/open_clip#703). */
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/nvml_api.h"
#include "topo/preflight_run.h"

/* A GPU held by its power cap draws about its limit. */
#define CAPPED_REL 0.85
/* Slowed by the hardware though it draws so little of its limit. */
#define LOW_POWER_REL 0.5
/* A limit this much below the product's is meant. */
#define LOWERED_REL 0.97

static double share_of_limit(const struct nw_topo *topo, int gpu)
{
    return nw_topo_number(topo, gpu, NW_FACT_POWER) /
           nw_topo_number(topo, gpu, NW_FACT_POWER_LIMIT);
}

/* ", SM clock 86 of 1980 MHz, 68 of 700 W, 29 C", as far as known. */
static const char *state_text(const struct nw_topo *topo, int gpu, char text[128])
{
    const double clock = nw_topo_number(topo, gpu, NW_FACT_SM_CLOCK);
    const double most = nw_topo_number(topo, gpu, NW_FACT_SM_CLOCK_MAX);
    const double power = nw_topo_number(topo, gpu, NW_FACT_POWER);
    const double limit = nw_topo_number(topo, gpu, NW_FACT_POWER_LIMIT);
    const double heat = nw_topo_number(topo, gpu, NW_FACT_TEMPERATURE);
    int length = 0;

    text[0] = '\0';
    if (clock > 0 && most > 0)
        length += snprintf(text, 128, ", SM clock %.0f of %.0f MHz", clock / 1e6, most / 1e6);
    if (power > 0 && limit > 0)
        length += snprintf(text + length, 128 - (size_t)length, ", %.0f of %.0f W", power, limit);
    if (!isnan(heat))
        snprintf(text + length, 128 - (size_t)length, ", %.0f C", heat);
    return text;
}

static unsigned reasons(const struct nw_topo *topo, int gpu)
{
    return (unsigned)nw_small(nw_topo_number(topo, gpu, NW_FACT_THROTTLE));
}

static nw_rc effect_of_clock(struct nw_preflight_run *run, const struct nw_topo *topo, int gpu)
{
    const double clock = nw_topo_number(topo, gpu, NW_FACT_SM_CLOCK);
    const double most = nw_topo_number(topo, gpu, NW_FACT_SM_CLOCK_MAX);

    if (!(clock > 0) || !(most > clock))
        return NW_OK;
    return nw_tell_effect(run, NAN, "matrix products run at about %.0f %% of their rate",
                          100 * clock / most);
}

/* The signal that a power supply gives to all GPUs at once. */
static nw_rc judge_brake(struct nw_preflight_run *run, size_t host, bool *told_out)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    int known = 0, braked = 0, first = -1;
    char state[128];

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        const bool brake = (reasons(topo, i) & NW_THROTTLE_POWER_BRAKE) != 0;

        known += nw_topo_fact(topo, i, NW_FACT_THROTTLE) != NULL;
        braked += brake;
        if (brake && first < 0)
            first = i;
    }
    *told_out = braked >= 2 && braked == known;
    if (!*told_out)
        return NW_OK;
    NW_TRY(nw_tell(run, host, 0, NW_FINDING_FAIL, "power-brake-all",
                   "look at the power supplies, their redundancy and the rack's power cap: the "
                   "GPUs are not at fault",
                   "all %d GPUs are slowed by the server's power brake: one common cause (%s%s)",
                   braked, topo->nodes[first].name, state_text(topo, first, state)));
    return effect_of_clock(run, topo, first);
}

static nw_rc judge_reasons(struct nw_preflight_run *run, size_t host, int gpu, bool brake_told)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const unsigned why = reasons(topo, gpu);
    const double share = share_of_limit(topo, gpu);
    char state[128];

    state_text(topo, gpu, state);
    if ((why & (NW_THROTTLE_HEAT | NW_THROTTLE_HARDWARE_HEAT)) != 0) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "gpu-too-hot",
                       "cooling: fans, air flow, inlet temperature, dust; ask the vendor",
                       "slowed down by heat%s", state));
        return effect_of_clock(run, topo, gpu);
    }
    if (brake_told && (why & NW_THROTTLE_POWER_BRAKE) != 0)
        return NW_OK;
    if ((why & NW_THROTTLE_POWER_BRAKE) != 0) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "power-brake",
                       "the GPU's power cables and connector, then the server's power supplies",
                       "slowed by the power brake, and not all GPUs are%s", state));
        return effect_of_clock(run, topo, gpu);
    }
    if ((why & NW_THROTTLE_HARDWARE) != 0) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "hw-slowdown",
                       share < LOW_POWER_REL ? "a fault of board or power supply: ask the vendor"
                                             : "cooling and power supply; ask the vendor",
                       "slowed down by the hardware%s%s",
                       share < LOW_POWER_REL ? " although it draws little power" : "", state));
        return effect_of_clock(run, topo, gpu);
    }
    if ((why & NW_THROTTLE_POWER_CAP) != 0 && share < CAPPED_REL) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "power-cap-low",
                       "the limit of the board or of the server's management controller is lower "
                       "than nvidia-smi's: ask the vendor",
                       "held by a power cap far below its limit%s", state));
        return effect_of_clock(run, topo, gpu);
    }
    return NW_OK;
}

nw_rc nw_preflight_throttle(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    bool brake_told;

    NW_TRY(judge_brake(run, host, &brake_told));
    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        NW_TRY(judge_reasons(run, host, i, brake_told));
    return NW_OK;
}

/* The highest limit among GPUs of the same model on this host. */
static double best_limit(const struct nw_topo *topo, int gpu)
{
    double best = NAN;

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        if (nw_is_alike(&topo->nodes[i], &topo->nodes[gpu]))
            best = fmax(best, nw_topo_number(topo, i, NW_FACT_POWER_LIMIT));
    return best;
}

static nw_rc judge_limit(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double limit = nw_topo_number(topo, gpu, NW_FACT_POWER_LIMIT);
    const double usual = nw_topo_number(topo, gpu, NW_FACT_POWER_DEFAULT);
    const double siblings = best_limit(topo, gpu);

    if (limit < LOWERED_REL * siblings) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "power-limit-one",
                       "nvidia-smi -pl, and if that is refused the server's management controller; "
                       "else ask the vendor",
                       "limited to %.0f W, others of its model here have %.0f W", limit, siblings));
        return nw_tell_effect(run, NAN, "under load its clock falls, and all others wait for it");
    }
    if (limit < LOWERED_REL * usual) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "power-limit-lowered",
                       "nvidia-smi -pl, or ask the vendor why the machine is not run at the power "
                       "that the product has",
                       "limited to %.0f W of the product's %.0f W", limit, usual));
        return nw_tell_effect(run, NAN, "matrix products run slower under sustained load");
    }
    return NW_OK;
}

nw_rc nw_preflight_power(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        NW_TRY(judge_limit(run, host, i));
    return NW_OK;
}
