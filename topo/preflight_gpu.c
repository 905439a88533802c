/* What a GPU says of itself: memory errors, modes, Xid errors; and whether all are there and of one
 * kind. */
#include <stdlib.h>

#include "base/units.h"
#include "topo/preflight_run.h"

/* NVIDIA, "Dynamic Page Retirement": at 64 retired pages no more can be retired, and a board with
 * 60 and more is returned. https://docs.nvidia.com/deploy/dynamic-page-retirement/ */
#define PAGES_WORN 60
/* The same board's memory differs a little with ECC and what the driver reserves. */
#define MEMORY_REL 0.02

/* --- are all there, and alike ------------------------------------------------------------------
 */

static nw_rc judge_attached(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double attached = nw_topo_number(topo, 0, NW_FACT_GPUS_ATTACHED);
    int nvidia = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        nvidia += nw_topo_is_nvidia(&topo->nodes[i]);
    if ((topo->gaps & NW_TOPO_PARTIAL) != 0 || !(attached > 0) || nvidia == 0)
        return NW_OK;
    if (nvidia < attached)
        return nw_tell(
            run, host, 0, NW_FINDING_FAIL, "gpu-missing",
            "read the kernel's log for \"Xid 79\"; reset or power-cycle the machine; ask "
            "the vendor",
            "the driver counts %.0f GPUs, %d answer", attached, nvidia);
    if (nvidia > attached)
        return nw_tell(run, host, 0, NW_FINDING_INFO, "gpus-not-ours",
                       "if all were rented: read the kernel's log, and look at the container's "
                       "device list",
                       "%d GPUs are on the PCI bus, the driver shows %.0f of them here", nvidia,
                       attached);
    return NW_OK;
}

static nw_rc judge_models(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const struct nw_topo_node *first = NULL;

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;) {
        const struct nw_topo_node *gpu = &topo->nodes[i];
        char most[32], own[32];

        if (!nw_topo_is_nvidia(gpu) || gpu->model[0] == '\0')
            continue;
        if (first == NULL)
            first = gpu;
        if (!nw_is_alike(first, gpu))
            return nw_tell(run, host, 0, NW_FINDING_WARN, "gpus-mixed",
                           "run on GPUs of one model: CUDA_VISIBLE_DEVICES, or another machine",
                           "GPUs of several models: %s and %s; collectives wait for the slowest",
                           first->model, gpu->model);
        if (first->memory_bytes > 0 && gpu->memory_bytes > 0 &&
            fabs((double)gpu->memory_bytes / (double)first->memory_bytes - 1) > MEMORY_REL)
            NW_TRY(nw_tell(run, host, i, NW_FINDING_WARN, "gpu-memory-differs",
                           "ask the vendor which boards these are",
                           "%s of memory, %s of the same model has %s",
                           nw_format_bytes(own, gpu->memory_bytes), first->name,
                           nw_format_bytes(most, first->memory_bytes)));
    }
    return NW_OK;
}

nw_rc nw_preflight_gpu_count(struct nw_preflight_run *run, size_t host)
{
    NW_TRY(judge_attached(run, host));
    return judge_models(run, host);
}

/* --- memory errors -----------------------------------------------------------------------------
 */

/* " (4 rows or pages for errors that could not be corrected)" */
static const char *retired_text(const struct nw_topo *topo, int gpu, char text[96])
{
    const double count = nw_topo_number(topo, gpu, NW_FACT_RETIRED_UNCORRECTED);

    text[0] = '\0';
    if (count > 0)
        snprintf(text, 96, " (%.0f for errors that could not be corrected)", count);
    return text;
}

static nw_rc judge_memory(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const double pages = nw_topo_number(topo, gpu, NW_FACT_RETIRED_PAGES);
    const double errors = nw_topo_number(topo, gpu, NW_FACT_ECC_UNCORRECTED);
    const double ever = nw_topo_number(topo, gpu, NW_FACT_ECC_UNCORRECTED_EVER);
    const char *action = nw_topo_text(topo, gpu, NW_FACT_RECOVERY);
    char text[96];

    if (nw_is_yes(topo, gpu, NW_FACT_REMAP_FAILED))
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "memory-remap-failed",
                       "replace the GPU: NVIDIA takes such boards back",
                       "a faulty row of memory could not be replaced by a spare one"));
    else if (pages >= PAGES_WORN && !nw_is_consumer(&topo->nodes[gpu]))
        NW_TRY(
            nw_tell(run, host, gpu, NW_FINDING_FAIL, "memory-worn",
                    "replace the GPU: NVIDIA takes such boards back",
                    "%.0f memory pages or rows are retired for errors: a board with %d and more is "
                    "worn",
                    pages, PAGES_WORN));
    if (nw_is_yes(topo, gpu, NW_FACT_REMAP_PENDING))
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "memory-remap-pending",
                       "reset the GPU (nvidia-smi -r) or reboot, then look again: what fails after "
                       "that must be replaced",
                       "faulty memory waits for a reset to be replaced by spare rows%s",
                       retired_text(topo, gpu, text)));
    if (errors > 0)
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "ecc-uncorrected",
                       "reset the GPU, test it again, and have it replaced if errors come back",
                       "%.0f memory error%s since the driver was loaded that ECC could not "
                       "correct: a job that meets one dies",
                       errors, errors > 1 ? "s" : ""));
    else if (ever > 0)
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_INFO, "ecc-uncorrected",
                       "watch it: have the GPU replaced if the number rises",
                       "%.0f memory error%s in its lifetime that ECC could not correct, none since "
                       "the driver was loaded",
                       ever, ever > 1 ? "s" : ""));
    if (action != NULL && strcmp(action, "none") != 0)
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "gpu-needs-reset",
                       "do what the driver asks for before any measurement",
                       "the driver asks for this to recover the GPU: %s", action));
    return NW_OK;
}

nw_rc nw_preflight_memory(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        NW_TRY(judge_memory(run, host, i));
    return NW_OK;
}

/* --- modes -------------------------------------------------------------------------------------
 */

static nw_rc judge_modes(struct nw_preflight_run *run, size_t host, int gpu)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    const char *compute = nw_topo_text(topo, gpu, NW_FACT_COMPUTE_MODE);

    if (nw_is_yes(topo, gpu, NW_FACT_MIG)) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_WARN, "mig-on", "nvidia-smi -mig 0, then reset",
                       "MIG is on: the GPU is divided into instances"));
        NW_TRY(
            nw_tell_effect(run, NAN,
                           "instances have no NVLink and no peer access: a job over several GPUs "
                           "goes over host memory"));
    }
    if (compute != NULL && strcasestr(compute, "prohibited") != NULL)
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_FAIL, "compute-prohibited", "nvidia-smi -c 0",
                       "compute mode is %s: no program can use the GPU", compute));
    else if (compute != NULL && strcasestr(compute, "exclusive") != NULL)
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_INFO, "compute-exclusive", "nvidia-smi -c 0",
                       "compute mode is %s: a second process on the GPU fails", compute));
    if (nw_is_no(topo, gpu, NW_FACT_PERSISTENCE)) {
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_INFO, "persistence-off",
                       "nvidia-smi -pm 1, or start nvidia-persistenced",
                       "persistence mode is off"));
        NW_TRY(nw_tell_effect(run, NAN,
                              "the driver is set up anew by each job: seconds at its start, and "
                              "lost settings"));
    }
    if (nw_is_no(topo, gpu, NW_FACT_ECC) && !nw_is_consumer(&topo->nodes[gpu]))
        NW_TRY(nw_tell(run, host, gpu, NW_FINDING_INFO, "ecc-off", "nvidia-smi -e 1, then reset",
                       "ECC is off: memory errors go unseen into the results"));
    return NW_OK;
}

nw_rc nw_preflight_modes(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (int i = -1; (i = nw_next(topo, NW_NODE_GPU, i)) >= 0;)
        NW_TRY(judge_modes(run, host, i));
    return NW_OK;
}

/* --- Xid: the driver's errors in the kernel's log ----------------------------------------------
 */

/* NVIDIA, "Xid Errors", https://docs.nvidia.com/deploy/xid-errors/ . Errors that a program makes
 * (13, 31, 43, 45 …) are not the machine's. */
static const struct xid {
    int number;
    nw_severity severity;
    const char *code, *meaning, *remedy;
} xids[] = {
    {48, NW_FINDING_FAIL, "xid-memory", "memory error that ECC could not correct",
     "reset the GPU; have it replaced if it comes again"},
    {61, NW_FINDING_WARN, "xid-gpu", "fault of a microcontroller in the GPU", "reset the GPU"},
    {62, NW_FINDING_WARN, "xid-gpu", "fault of a microcontroller in the GPU", "reset the GPU"},
    {63, NW_FINDING_INFO, "xid-memory", "a page or row of memory was retired", "reset the GPU"},
    {64, NW_FINDING_FAIL, "xid-memory", "a page or row of memory could not be retired",
     "have the GPU replaced"},
    {74, NW_FINDING_WARN, "xid-nvlink", "NVLink error", "nvidia-smi nvlink -e; ask the vendor"},
    {79, NW_FINDING_FAIL, "gpu-lost", "the GPU has fallen off the bus",
     "do not measure on it: power-cycle the machine; look at seat, riser, power and cooling"},
    {92, NW_FINDING_WARN, "xid-memory", "many corrected memory errors", "watch ECC counts"},
    {94, NW_FINDING_WARN, "xid-memory", "memory error, contained to one program",
     "reset the GPU when it is free"},
    {95, NW_FINDING_FAIL, "xid-memory", "memory error, not contained", "reset the GPU"},
    {109, NW_FINDING_WARN, "xid-gpu", "a context switch timed out", "reset the GPU"},
    {119, NW_FINDING_FAIL, "gpu-lost", "the GPU's system processor (GSP) does not answer",
     "do not measure on it: reset the GPU or reboot; update the driver"},
    {120, NW_FINDING_FAIL, "gpu-lost", "error of the GPU's system processor (GSP)",
     "do not measure on it: reset the GPU or reboot; update the driver"},
    {140, NW_FINDING_FAIL, "xid-memory", "memory error that ECC could not correct",
     "reset the GPU"},
};

static const struct xid *find_xid(long number)
{
    for (size_t i = 0; i < sizeof xids / sizeof *xids; i++)
        if (xids[i].number == number)
            return &xids[i];
    return NULL;
}

static nw_rc tell_xid(struct nw_preflight_run *run, size_t host, int node, long number, long times)
{
    const struct xid *xid = find_xid(number);
    const struct nw_topo_node *device = &nw_run_host(run, host)->nodes[node];
    const bool known = node > 0 && device->pci[0] != '\0';

    if (xid == NULL)
        return NW_OK;
    return nw_tell(run, host, node, xid->severity, xid->code, xid->remedy,
                   "the kernel's log has Xid %ld (%s)%s%s, %ld time%s", number, xid->meaning,
                   known ? " at " : "", known ? device->pci : "", times, times == 1 ? "" : "s");
}

/* "79 x2, 63": every number, with how often. */
static nw_rc judge_xids(struct nw_preflight_run *run, size_t host, int node)
{
    const char *text = nw_topo_text(nw_run_host(run, host), node, NW_FACT_XID);

    while (text != NULL && *text != '\0') {
        char *end;
        const long number = strtol(text, &end, 10);
        long times = 1;

        if (end == text)
            break;
        if (strncmp(end, " x", 2) == 0)
            times = strtol(end + 2, &end, 10);
        NW_TRY(tell_xid(run, host, node, number, times));
        text = end + strspn(end, ", ");
    }
    return NW_OK;
}

nw_rc nw_preflight_xid(struct nw_preflight_run *run, size_t host)
{
    const struct nw_topo *topo = nw_run_host(run, host);

    for (size_t i = 0; i < topo->node_count; i++)
        NW_TRY(judge_xids(run, host, (int)i));
    return NW_OK;
}
