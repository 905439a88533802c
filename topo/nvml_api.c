#include "topo/nvml_api.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "topo/nvml_calls.h"
#include "topo/pci_address.h"

#define API(member)                                                                                \
    (offsetof(struct nw_nvml, api) + offsetof(__typeof__(((struct nw_nvml *)0)->api), member))
static const struct nw_library_symbol nvml_symbols[] = {
#define X(member, symbol, older, required, arguments) {API(member), symbol, older, required},
    NVML_MAP(X)
#undef X
        {API(error_text), "nvmlErrorString", NULL, true},
};

static nw_rc nvml_fail(const struct nw_nvml *nvml, nw_rc rc, nvml_return code, const char *what)
{
    const char *text = nvml->api.error_text(code);
    return nw_fail_lib(rc, "nvml", code, "%s: %s (%d)", what, text ? text : "no text", code);
}

static nw_rc nvml_start(struct nw_nvml *nvml)
{
    nvml_return code = nvml->api.init();
    if (code == NVML_DRIVER_NOT_LOADED)
        return nw_fail_lib(NW_ENODEV, "nvml", code,
                           "libnvidia-ml.so.1 is here, but the kernel has no NVIDIA driver loaded");
    if (code == NVML_VERSION_MISMATCH)
        return nw_fail_lib(NW_ENODEV, "nvml", code,
                           "libnvidia-ml.so.1 and the kernel's NVIDIA module are of different "
                           "versions; reboot, or reload the module");
    if (code != NVML_OK)
        return nvml_fail(nvml, NW_ENODEV, code, "cannot start NVML");
    nvml->started = true;

    unsigned int count = 0;
    code = nvml->api.count(&count);
    if (code != NVML_OK)
        return nvml_fail(nvml, NW_ENODEV, code, "NVML cannot count the GPUs");
    nvml->count = (int)count;
    if (nvml->api.driver_version(nvml->driver_version, sizeof nvml->driver_version) != NVML_OK)
        nvml->driver_version[0] = '\0';
    if (!nvml->api.cuda_version || nvml->api.cuda_version(&nvml->cuda_version) != NVML_OK)
        nvml->cuda_version = -1;
    return NW_OK;
}

nw_rc nw_nvml_open(struct nw_nvml **nvml_out)
{
    struct nw_nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return nw_fail(NW_ENOMEM, "no memory for the NVML table");
    nw_rc rc = NW_OK;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        rc = nw_library_missing("libnvidia-ml.so.1", "NVIDIA driver", dlerror());
        goto out;
    }
    NW_TRY_GOTO(nw_library_symbols(nvml->library, "libnvidia-ml.so.1", nvml_symbols,
                                   sizeof nvml_symbols / sizeof *nvml_symbols, nvml),
                out);
    nvml->simulated = dlsym(nvml->library, NW_SIMULATED_MARKER) != NULL;
    if (nvml->simulated)
        NW_TRY_GOTO(nw_library_simulated_allowed(nw_library_path((void *)nvml->api.init)), out);
    NW_TRY_GOTO(nvml_start(nvml), out);
    *nvml_out = nvml;
    return NW_OK;
out:
    nw_nvml_close(nvml);
    return rc;
}

void nw_nvml_close(struct nw_nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->started)
        nvml->api.shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    free(nvml);
}

int nw_nvml_count(const struct nw_nvml *nvml)
{
    return nvml->count;
}

const char *nw_nvml_driver_version(const struct nw_nvml *nvml)
{
    return nvml->driver_version;
}

int nw_nvml_cuda_version(const struct nw_nvml *nvml)
{
    return nvml->cuda_version;
}

bool nw_nvml_simulated(const struct nw_nvml *nvml)
{
    return nvml->simulated;
}

nw_rc nw_nvml_find(struct nw_nvml *nvml, const char *pci, int *index_out)
{
    char normal[16];
    NW_TRY(nw_pci_normalise(pci, normal));
    nvml_device device;
    unsigned int index;
    nvml_return code = nvml->api.by_pci(normal, &device);
    if (code == NVML_NOT_FOUND)
        return nw_fail_lib(NW_ENODEV, "nvml", code, "the driver knows no GPU at %s", normal);
    if (code == NVML_OK)
        code = nvml->api.index(device, &index);
    if (code != NVML_OK)
        return nvml_fail(nvml, NW_ELIB, code, normal);
    *index_out = (int)index;
    return NW_OK;
}

nw_rc nw_nvml_device(struct nw_nvml *nvml, int index, nvml_device *device_out)
{
    if (index < 0 || index >= nvml->count)
        return nw_fail(NW_ENODEV, "there is no GPU %d: the driver has %d", index, nvml->count);
    nvml_return code = nvml->api.by_index((unsigned int)index, device_out);
    if (code == NVML_NO_PERMISSION)
        return nw_fail_lib(NW_ENODEV, "nvml", code, "gpu %d: this user may not look at it", index);
    if (code != NVML_OK)
        return nvml_fail(nvml, NW_ELIB, code, "cannot open a GPU through NVML");
    return NW_OK;
}

typedef nvml_return (*read_uint)(nvml_device, unsigned int *);

static int read_int(read_uint read, nvml_device device)
{
    unsigned int value;
    return read && read(device, &value) == NVML_OK ? (int)value : -1;
}

/* The driver gives the rate per direction and in units of 10^6 bytes per second. */
static double link_rate(const struct nw_nvml *nvml, nvml_device device, unsigned int link)
{
    struct nvml_field fields[] = {
        {.field_id = NVML_FIELD_NVLINK_GET_SPEED, .scope_id = link, .rc = -1},
        {.field_id = NVML_FIELD_NVLINK_MBPS_COMMON, .rc = -1},
    };
    if (!nvml->api.fields || nvml->api.fields(device, 2, fields) != NVML_OK)
        return NAN;
    for (int i = 0; i < 2; i++)
        if (fields[i].rc == NVML_OK && fields[i].value_type == NVML_VALUE_UINT &&
            fields[i].value.ui > 0)
            return fields[i].value.ui * 1e6;
    return NAN;
}

static nw_nvlink_peer peer_kind(const struct nw_nvml *nvml, nvml_device device, unsigned int link)
{
    unsigned int kind;
    if (!nvml->api.link_peer_kind || nvml->api.link_peer_kind(device, link, &kind) != NVML_OK)
        return NW_NVLINK_PEER_UNKNOWN;
    switch (kind) {
    case NVML_PEER_GPU:
        return NW_NVLINK_PEER_GPU;
    case NVML_PEER_SWITCH:
        return NW_NVLINK_PEER_SWITCH;
    case NVML_PEER_IBMNPU:
        return NW_NVLINK_PEER_CPU;
    default:
        return NW_NVLINK_PEER_UNKNOWN;
    }
}

static void read_links(const struct nw_nvml *nvml, nvml_device device, struct nw_nvml_gpu *gpu)
{
    if (!nvml->api.link_state)
        return;
    for (unsigned int i = 0; i < NW_NVML_MAX_LINKS; i++) {
        unsigned int active;
        const nvml_return code = nvml->api.link_state(device, i, &active);
        gpu->links_known |= code == NVML_OK || code == NVML_NOT_SUPPORTED;
        if (code != NVML_OK)
            continue; /* no such link on this model */
        struct nw_nvml_link *link = &gpu->links[gpu->link_count++];
        *link = (struct nw_nvml_link){
            .index = (int)i, .active = active != 0, .version = -1, .bytes_per_s = NAN};
        if (!link->active)
            continue;
        unsigned int version;
        if (nvml->api.link_version && nvml->api.link_version(device, i, &version) == NVML_OK)
            link->version = (int)version;
        link->peer = peer_kind(nvml, device, i);
        link->bytes_per_s = link_rate(nvml, device, i);
        struct nvml_pci_info pci;
        if (nvml->api.link_peer_pci && nvml->api.link_peer_pci(device, i, &pci) == NVML_OK)
            snprintf(link->peer_pci, sizeof link->peer_pci, "%04x:%02x:%02x.0", pci.domain & 0xffff,
                     pci.bus & 0xff, pci.device & 0x1f);
    }
}

nw_rc nw_nvml_gpu(struct nw_nvml *nvml, int index, struct nw_nvml_gpu *gpu_out)
{
    nvml_device device;
    NW_TRY(nw_nvml_device(nvml, index, &device));
    struct nw_nvml_gpu gpu = {.capability = -1, .mig_enabled = -1};
    nvml_return code = nvml->api.name(device, gpu.name, sizeof gpu.name);
    if (code != NVML_OK)
        return nvml_fail(nvml, NW_ELIB, code, "cannot read a GPU's name through NVML");
    if (nvml->api.uuid(device, gpu.uuid, sizeof gpu.uuid) != NVML_OK)
        gpu.uuid[0] = '\0';
    struct nvml_pci_info pci;
    code = nvml->api.pci(device, &pci);
    if (code != NVML_OK)
        return nvml_fail(nvml, NW_ELIB, code, "cannot read a GPU's PCI address through NVML");
    /* A GPU is function 0 of its device. */
    snprintf(gpu.pci, sizeof gpu.pci, "%04x:%02x:%02x.0", pci.domain & 0xffff, pci.bus & 0xff,
             pci.device & 0x1f);

    struct nvml_memory memory;
    if (nvml->api.memory && nvml->api.memory(device, &memory) == NVML_OK)
        gpu.memory_bytes = memory.total;
    int major, minor;
    if (nvml->api.capability && nvml->api.capability(device, &major, &minor) == NVML_OK)
        gpu.capability = 10 * major + minor;
    unsigned int now, pending;
    if (nvml->api.mig && nvml->api.mig(device, &now, &pending) == NVML_OK)
        gpu.mig_enabled = now != 0;
    gpu.pcie_generation = read_int(nvml->api.pcie_generation, device);
    gpu.pcie_width = read_int(nvml->api.pcie_width, device);
    gpu.pcie_max_generation = read_int(nvml->api.pcie_max_generation, device);
    gpu.pcie_max_width = read_int(nvml->api.pcie_max_width, device);
    read_links(nvml, device, &gpu);
    *gpu_out = gpu;
    return NW_OK;
}

static double read_scaled(read_uint read, nvml_device device, double unit)
{
    unsigned int value;
    return read && read(device, &value) == NVML_OK ? value * unit : NAN;
}

static double read_kind(nvml_return (*read)(nvml_device, unsigned int, unsigned int *),
                        nvml_device device, unsigned int kind, double unit)
{
    unsigned int value;
    return read && read(device, kind, &value) == NVML_OK ? value * unit : NAN;
}

nw_rc nw_nvml_sample(struct nw_nvml *nvml, int index, struct nw_nvml_sample *sample_out)
{
    nvml_device device;
    NW_TRY(nw_nvml_device(nvml, index, &device));
    /* NVML's units: MHz, mW, mJ, °C. */
    struct nw_nvml_sample sample = {
        .sm_clock_hz = read_kind(nvml->api.clock, device, NVML_CLOCK_SM, 1e6),
        .memory_clock_hz = read_kind(nvml->api.clock, device, NVML_CLOCK_MEM, 1e6),
        .sm_max_clock_hz = read_kind(nvml->api.max_clock, device, NVML_CLOCK_SM, 1e6),
        .memory_max_clock_hz = read_kind(nvml->api.max_clock, device, NVML_CLOCK_MEM, 1e6),
        .power_w = read_scaled(nvml->api.power, device, 1e-3),
        .power_limit_w = read_scaled(nvml->api.power_limit, device, 1e-3),
        .temperature_c = read_kind(nvml->api.temperature, device, NVML_TEMPERATURE_GPU, 1),
        .energy_j = NAN,
    };
    unsigned long long value;
    if (nvml->api.energy && nvml->api.energy(device, &value) == NVML_OK)
        sample.energy_j = (double)value * 1e-3;
    if (nvml->api.throttle && nvml->api.throttle(device, &value) == NVML_OK) {
        sample.throttle_known = true;
        sample.throttle = value;
    }
    *sample_out = sample;
    return NW_OK;
}

const char *nw_throttle_text(char text[160], uint64_t throttle)
{
    static const struct {
        uint64_t bit;
        const char *text;
    } reasons[] = {
#define X(name, bit, words) {bit, words},
        NW_THROTTLE_MAP(X)
#undef X
    };
    size_t length = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (throttle & reasons[i].bit)
            length += (size_t)snprintf(text + length, 160 - length, "%s%s", length ? ", " : "",
                                       reasons[i].text);
    if (length == 0)
        snprintf(text, 160, "none");
    return text;
}
