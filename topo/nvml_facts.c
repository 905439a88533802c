/* Facts of one GPU through NVML: one row each. A call that is missing, not supported by the model
 * or refused means unknown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topo/nvml_calls.h"
#include "topo/topo.h"

struct asking {
    const struct nw_nvml *nvml;
    nvml_device device;
};

typedef nvml_return (*read_uint)(nvml_device, unsigned int *);

static double one(const struct asking *asking, read_uint read, double unit)
{
    unsigned int value;

    return read != NULL && read(asking->device, &value) == NVML_OK ? value * unit : NAN;
}

/* --- numbers --- */

/* X(function, fact, call, unit of the fact per unit of NVML) */
#define ONE_MAP(X)                                                                                 \
    X(power_default, NW_FACT_POWER_DEFAULT, power_default, 1e-3)                                   \
    X(power_limit, NW_FACT_POWER_LIMIT, power_limit, 1e-3)                                         \
    X(power, NW_FACT_POWER, power, 1e-3)                                                           \
    X(persistence, NW_FACT_PERSISTENCE, persistence, 1)                                            \
    X(replays, NW_FACT_REPLAYS, replays, 1)                                                        \
    X(generation, NW_FACT_LINK_GENERATION, pcie_generation, 1)                                     \
    X(max_generation, NW_FACT_LINK_MAX_GENERATION, pcie_max_generation, 1)                         \
    X(own_generation, NW_FACT_DEVICE_MAX_GENERATION, own_max_generation, 1)                        \
    X(memory_numa, NW_FACT_GPU_NUMA_ID, memory_numa, 1)

#define X(function, fact, call, unit)                                                              \
    static double function(const struct asking *asking)                                            \
    {                                                                                              \
        return one(asking, asking->nvml->api.call, unit);                                          \
    }
ONE_MAP(X)
#undef X

static double clock_of(const struct asking *asking, bool most, unsigned int kind)
{
    nvml_return (*read)(nvml_device, unsigned int, unsigned int *) =
        most ? asking->nvml->api.max_clock : asking->nvml->api.clock;
    unsigned int mhz;

    return read != NULL && read(asking->device, kind, &mhz) == NVML_OK ? mhz * 1e6 : NAN;
}

static double sm_clock(const struct asking *asking)
{
    return clock_of(asking, false, NVML_CLOCK_SM);
}

static double sm_clock_max(const struct asking *asking)
{
    return clock_of(asking, true, NVML_CLOCK_SM);
}

static double memory_clock_max(const struct asking *asking)
{
    return clock_of(asking, true, NVML_CLOCK_MEM);
}

static double temperature(const struct asking *asking)
{
    unsigned int celsius;

    return asking->nvml->api.temperature != NULL &&
                   asking->nvml->api.temperature(asking->device, NVML_TEMPERATURE_GPU, &celsius) ==
                       NVML_OK
               ? celsius
               : NAN;
}

static double throttle(const struct asking *asking)
{
    unsigned long long bits;

    return asking->nvml->api.throttle != NULL &&
                   asking->nvml->api.throttle(asking->device, &bits) == NVML_OK
               ? (double)bits
               : NAN;
}

static double ecc(const struct asking *asking)
{
    unsigned int now, pending;

    return asking->nvml->api.ecc_mode != NULL &&
                   asking->nvml->api.ecc_mode(asking->device, &now, &pending) == NVML_OK
               ? now != 0
               : NAN;
}

static double mig(const struct asking *asking)
{
    unsigned int now, pending;

    return asking->nvml->api.mig != NULL &&
                   asking->nvml->api.mig(asking->device, &now, &pending) == NVML_OK
               ? now != 0
               : NAN;
}

static double capability(const struct asking *asking)
{
    int major, minor;

    return asking->nvml->api.capability != NULL &&
                   asking->nvml->api.capability(asking->device, &major, &minor) == NVML_OK
               ? 10 * major + minor
               : NAN;
}

/* nvmlMemoryErrorType_t: 0 corrected, 1 uncorrected; nvmlEccCounterType_t: 0 since the driver was
 * loaded, 1 ever. */
static double ecc_errors(const struct asking *asking, unsigned int type, unsigned int counter)
{
    unsigned long long count;

    return asking->nvml->api.ecc_errors != NULL &&
                   asking->nvml->api.ecc_errors(asking->device, type, counter, &count) == NVML_OK
               ? (double)count
               : NAN;
}

static double ecc_corrected(const struct asking *asking)
{
    return ecc_errors(asking, 0, 0);
}

static double ecc_uncorrected(const struct asking *asking)
{
    return ecc_errors(asking, 1, 0);
}

static double ecc_corrected_ever(const struct asking *asking)
{
    return ecc_errors(asking, 0, 1);
}

static double ecc_uncorrected_ever(const struct asking *asking)
{
    return ecc_errors(asking, 1, 1);
}

/* Ampere and later remap rows, older ones retire pages (nvmlPageRetirementCause_t: 0 several errors
 * of one bit, 1 one of two bits). */
enum remap { REMAP_CORRECTED, REMAP_UNCORRECTED, REMAP_PENDING, REMAP_FAILED };

static double remapped(const struct asking *asking, enum remap which)
{
    unsigned int values[4];

    return asking->nvml->api.remapped != NULL &&
                   asking->nvml->api.remapped(asking->device, &values[0], &values[1], &values[2],
                                              &values[3]) == NVML_OK
               ? values[which]
               : NAN;
}

static double retired(const struct asking *asking, unsigned int cause)
{
    unsigned int count =
        0; /* of the list's places; the count is given also when they are too few */
    nvml_return code;

    if (asking->nvml->api.retired == NULL)
        return NAN;
    code = asking->nvml->api.retired(asking->device, cause, &count, NULL);
    return code == NVML_OK || code == NVML_INSUFFICIENT_SIZE ? count : NAN;
}

/* NAN and a number: the number. */
static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double retired_pages(const struct asking *asking)
{
    return sum(sum(remapped(asking, REMAP_CORRECTED), remapped(asking, REMAP_UNCORRECTED)),
               sum(retired(asking, 0), retired(asking, 1)));
}

static double retired_uncorrected(const struct asking *asking)
{
    return sum(remapped(asking, REMAP_UNCORRECTED), retired(asking, 1));
}

static double remap_pending(const struct asking *asking)
{
    const double pending =
        sum(remapped(asking, REMAP_PENDING), one(asking, asking->nvml->api.retirement_pending, 1));

    return isnan(pending) ? NAN : pending != 0;
}

static double remap_failed(const struct asking *asking)
{
    const double failed = remapped(asking, REMAP_FAILED);

    return isnan(failed) ? NAN : failed != 0;
}

static double bar1(const struct asking *asking)
{
    struct nvml_bar1 bar;

    return asking->nvml->api.bar1 != NULL &&
                   asking->nvml->api.bar1(asking->device, &bar) == NVML_OK && bar.total > 0
               ? (double)bar.total
               : NAN;
}

static double memory_used(const struct asking *asking)
{
    struct nvml_memory memory;

    return asking->nvml->api.memory != NULL &&
                   asking->nvml->api.memory(asking->device, &memory) == NVML_OK
               ? (double)memory.used
               : NAN;
}

static double link_errors(const struct asking *asking)
{
    double errors = NAN;

    if (asking->nvml->api.link_errors == NULL || asking->nvml->api.link_state == NULL)
        return NAN;
    for (unsigned int link = 0; link < NW_NVML_MAX_LINKS; link++) {
        unsigned int active;

        if (asking->nvml->api.link_state(asking->device, link, &active) != NVML_OK || !active)
            continue;
        for (unsigned int counter = 0; counter < NVML_LINK_ERROR_COUNTERS; counter++) {
            unsigned long long count;

            if (asking->nvml->api.link_errors(asking->device, link, counter, &count) == NVML_OK)
                errors = sum(errors, (double)count);
        }
    }
    return errors;
}

static const struct {
    nw_fact_id fact;
    double (*read)(const struct asking *asking);
} numbers[] = {
#define X(function, fact, call, unit) {fact, function},
    ONE_MAP(X)
#undef X
        {NW_FACT_SM_CLOCK, sm_clock},
    {NW_FACT_SM_CLOCK_MAX, sm_clock_max},
    {NW_FACT_MEMORY_CLOCK_MAX, memory_clock_max},
    {NW_FACT_TEMPERATURE, temperature},
    {NW_FACT_THROTTLE, throttle},
    {NW_FACT_ECC, ecc},
    {NW_FACT_ECC_CORRECTED, ecc_corrected},
    {NW_FACT_ECC_UNCORRECTED, ecc_uncorrected},
    {NW_FACT_ECC_CORRECTED_EVER, ecc_corrected_ever},
    {NW_FACT_ECC_UNCORRECTED_EVER, ecc_uncorrected_ever},
    {NW_FACT_RETIRED_PAGES, retired_pages},
    {NW_FACT_RETIRED_UNCORRECTED, retired_uncorrected},
    {NW_FACT_REMAP_PENDING, remap_pending},
    {NW_FACT_REMAP_FAILED, remap_failed},
    {NW_FACT_MIG, mig},
    {NW_FACT_CAPABILITY, capability},
    {NW_FACT_BAR1, bar1},
    {NW_FACT_MEMORY_USED, memory_used},
    {NW_FACT_NVLINK_ERRORS, link_errors},
};

/* --- texts --- */

static const char *choice(const char *const *words, size_t count, double index)
{
    return index >= 0 && index < (double)count ? words[(size_t)index] : NULL;
}

/* In nvidia-smi's words. */
static const char *compute_mode(const struct asking *asking)
{
    static const char *const words[] = {"Default", "Exclusive_Thread", "Prohibited",
                                        "Exclusive_Process"};

    return choice(words, sizeof words / sizeof *words,
                  one(asking, asking->nvml->api.compute_mode, 1));
}

static const char *virtualization(const struct asking *asking)
{
    static const char *const words[] = {"none", "pass-through", "vgpu", "host vgpu", "host vsga"};

    return choice(words, sizeof words / sizeof *words,
                  one(asking, asking->nvml->api.virtualization, 1));
}

static bool fabric_of(const struct asking *asking, struct nvml_fabric *fabric)
{
    return asking->nvml->api.fabric != NULL &&
           asking->nvml->api.fabric(asking->device, fabric) == NVML_OK;
}

/* nvmlGpuFabricState_t; 0: this GPU has no fabric. */
static const char *fabric_state(const struct asking *asking)
{
    static const char *const words[] = {NULL, "not started", "in progress", "completed"};
    struct nvml_fabric fabric;

    return fabric_of(asking, &fabric) ? choice(words, sizeof words / sizeof *words, fabric.state)
                                      : NULL;
}

/* Valid once the registration is completed. */
static const char *fabric_status(const struct asking *asking)
{
    enum { COMPLETED = 3 };
    struct nvml_fabric fabric;

    if (!fabric_of(asking, &fabric) || fabric.state != COMPLETED)
        return NULL;
    return fabric.status == NVML_OK ? "success" : asking->nvml->api.error_text(fabric.status);
}

static const struct {
    nw_fact_id fact;
    const char *(*read)(const struct asking *asking);
} words[] = {{NW_FACT_COMPUTE_MODE, compute_mode},
             {NW_FACT_GPU_VIRTUAL, virtualization},
             {NW_FACT_FABRIC_STATE, fabric_state},
             {NW_FACT_FABRIC_STATUS, fabric_status}};

static nw_rc set_names(const struct asking *asking, struct nw_topo *topo, int node)
{
    const struct {
        nw_fact_id fact;
        nvml_return (*read)(nvml_device, char *, unsigned int);
    } names[] = {{NW_FACT_UUID, asking->nvml->api.uuid},
                 {NW_FACT_SERIAL, asking->nvml->api.serial},
                 {NW_FACT_VBIOS, asking->nvml->api.vbios}};
    char text[96];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        /* a GeForce card has the serial number 0 */
        if (names[i].read != NULL && names[i].read(asking->device, text, sizeof text) == NVML_OK &&
            strcmp(text, "0") != 0)
            NW_TRY(nw_topo_set_text(topo, node, names[i].fact, text, "nvml"));
    return NW_OK;
}

nw_rc nw_nvml_facts(struct nw_nvml *nvml, int index, struct nw_topo *topo, int node)
{
    struct asking asking = {.nvml = nvml};

    NW_TRY(nw_nvml_device(nvml, index, &asking.device));
    NW_TRY(set_names(&asking, topo, node));
    NW_TRY(nw_topo_set_number(topo, node, NW_FACT_GPU_INDEX, index, "nvml"));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        NW_TRY(nw_topo_set_number(topo, node, numbers[i].fact, numbers[i].read(&asking), "nvml"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        NW_TRY(nw_topo_set_text(topo, node, words[i].fact, words[i].read(&asking), "nvml"));
    return NW_OK;
}

/* --- pairs --- */

int nw_nvml_path(struct nw_nvml *nvml, int a, int b)
{
    /* nvmlGpuTopologyLevel_t; 0 is one board: nvidia-smi shows PIX for it */
    static const struct {
        unsigned int level;
        nw_class class_id;
    } levels[] = {{0, NW_CLASS_PIX},  {10, NW_CLASS_PIX},  {20, NW_CLASS_PXB},
                  {30, NW_CLASS_PHB}, {40, NW_CLASS_NODE}, {50, NW_CLASS_SYS}};
    nvml_device x, y;
    unsigned int level;

    if (nvml->api.ancestor == NULL || nw_nvml_device(nvml, a, &x) != NW_OK ||
        nw_nvml_device(nvml, b, &y) != NW_OK || nvml->api.ancestor(x, y, &level) != NVML_OK)
        return -1;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (levels[i].level == level)
            return levels[i].class_id;
    return -1;
}

int nw_nvml_reaches(struct nw_nvml *nvml, int a, int b)
{
    enum { CAPABILITY_READ = 0, STATUS_OK = 0 }; /* nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t */
    nvml_device x, y;
    unsigned int status;

    if (nvml->api.peer_status == NULL || nw_nvml_device(nvml, a, &x) != NW_OK ||
        nw_nvml_device(nvml, b, &y) != NW_OK ||
        nvml->api.peer_status(x, y, CAPABILITY_READ, &status) != NVML_OK)
        return -1;
    return status == STATUS_OK;
}
