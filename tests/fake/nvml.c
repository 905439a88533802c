/* libnvidia-ml.so.1: what a pretended machine's GPUs say of themselves, from its text file. A GPU
 * is under load while the CUDA double of the same process has work for it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake/clock.h" /* FK_EXPORT */
#include "tests/fake/machine.h"

/* The program refuses libraries that have it, without an opt-in (base/library.h). */
FK_EXPORT const int nw_simulated_marker = 1;

/* Numbers and layouts of the public API. */
enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    FIELD_NVLINK_MBPS_COMMON = 90,
    FIELD_NVLINK_GET_SPEED = 164,
    VALUE_UINT = 1,
    CLOCK_MEM = 2,
    PEER_SWITCH = 2,
};
struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct field {
    unsigned id, scope;
    long long timestamp, latency_us;
    unsigned type;
    int rc;
    union {
        double d;
        unsigned ui;
        unsigned long long ull;
    } value;
};
struct fabric {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};
typedef const struct fk_gpu *device_t;

static int users;

static int number(device_t device)
{
    return (int)(device - fk_machine()->gpus);
}

static void *cuda_symbol(const char *name)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = cuda ? dlsym(cuda, name) : NULL;
    if (cuda)
        dlclose(cuda);
    return symbol;
}

static bool loaded(device_t device)
{
    void *symbol = cuda_symbol("fk_gpu_is_busy");
    int (*busy)(int);
    memcpy(&busy, &symbol, sizeof busy);
    return symbol && busy(number(device));
}

#define LOADED(device, under_load, idle) (loaded(device) ? (device)->under_load : (device)->idle)

static int text_out(char *to, unsigned length, const char *text)
{
    if (strlen(text) >= length)
        return NVML_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_OK;
}

FK_EXPORT int nvmlInit_v2(void)
{
    fk_machine();
    users++;
    return NVML_OK;
}

FK_EXPORT int nvmlShutdown(void)
{
    return users > 0 ? (users--, NVML_OK) : NVML_UNINITIALIZED;
}

FK_EXPORT const char *nvmlErrorString(int code)
{
    static const char *const texts[] = {"Success",
                                        "Uninitialized",
                                        "Invalid Argument",
                                        "Not Supported",
                                        "Insufficient Permissions",
                                        "Already Initialized",
                                        "Not Found",
                                        "Insufficient Size"};
    return code >= 0 && (size_t)code < sizeof texts / sizeof *texts ? texts[code] : "Unknown Error";
}

FK_EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    return text_out(text, length, fk_machine()->driver);
}

FK_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = fk_machine()->cuda_version;
    return NVML_OK;
}

/* All GPUs: NVML does not know of CUDA_VISIBLE_DEVICES. */
FK_EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)fk_machine()->gpu_count;
    return users ? NVML_OK : NVML_UNINITIALIZED;
}

FK_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device)
{
    if (!users)
        return NVML_UNINITIALIZED;
    if (index >= (unsigned)fk_machine()->gpu_count)
        return NVML_INVALID;
    *device = &fk_machine()->gpus[index];
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, device_t *device)
{
    const struct fk_machine *machine = fk_machine();
    unsigned domain, bus;
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2)
        return NVML_INVALID;
    for (int i = 0; i < machine->gpu_count; i++)
        if (domain == 0xf00d && (unsigned)machine->gpus[i].bus == bus) {
            *device = &machine->gpus[i];
            return NVML_OK;
        }
    return NVML_NOT_FOUND;
}

FK_EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device)
{
    int nvmlDeviceGetUUID(device_t, char *, unsigned);
    const struct fk_machine *machine = fk_machine();
    char text[96];
    for (int i = 0; i < machine->gpu_count; i++)
        if (nvmlDeviceGetUUID(&machine->gpus[i], text, sizeof text) == NVML_OK &&
            strcmp(text, uuid) == 0) {
            *device = &machine->gpus[i];
            return NVML_OK;
        }
    return NVML_NOT_FOUND;
}

FK_EXPORT int nvmlDeviceGetIndex(device_t device, unsigned *index)
{
    *index = (unsigned)number(device);
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetName(device_t device, char *text, unsigned length)
{
    char name[96];
    snprintf(name, sizeof name, "SIMULATED %s", device->name);
    return text_out(text, length, name);
}

FK_EXPORT int nvmlDeviceGetUUID(device_t device, char *text, unsigned length)
{
    unsigned char u[16];
    char uuid[48] = "GPU-";
    size_t at = 4;
    fk_gpu_uuid(fk_machine(), number(device), u);
    for (int i = 0; i < 16; i++)
        at += (size_t)sprintf(uuid + at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              u[i]);
    return text_out(text, length, uuid);
}

static void fill_pci(struct pci_info *pci, int bus, unsigned device_id)
{
    *pci = (struct pci_info){
        .domain = 0xf00d, .bus = (unsigned)bus, .device_id = device_id << 16 | 0x10de};
    snprintf(pci->legacy, sizeof pci->legacy, "F00D:%02X:00.0", (unsigned)bus & 0xff);
    snprintf(pci->bus_id, sizeof pci->bus_id, "0000F00D:%02X:00.0", (unsigned)bus & 0xff);
}

FK_EXPORT int nvmlDeviceGetPciInfo_v3(device_t device, struct pci_info *pci)
{
    fill_pci(pci, device->bus, 0xf00d);
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetMemoryInfo(device_t device, unsigned long long memory[3])
{
    memory[0] = device->memory_bytes;
    memory[1] = device->memory_bytes - device->reserved_bytes;
    memory[2] = device->reserved_bytes;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetCudaComputeCapability(device_t device, int *major, int *minor)
{
    *major = device->capability / 10;
    *minor = device->capability % 10;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetMigMode(device_t device, unsigned *now, unsigned *pending)
{
    if (device->mig < 0)
        return NVML_NOT_SUPPORTED;
    *now = *pending = (unsigned)device->mig;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(device_t device, unsigned *value)
{
    *value = (unsigned)LOADED(device, pcie_generation, pcie_idle_generation);
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(device_t device, unsigned *value)
{
    *value = (unsigned)device->pcie_width;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(device_t device, unsigned *value)
{
    *value = (unsigned)device->pcie_max_generation;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetMaxPcieLinkWidth(device_t device, unsigned *value)
{
    *value = (unsigned)device->pcie_max_width;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetClockInfo(device_t device, unsigned kind, unsigned *mhz)
{
    *mhz = (unsigned)(kind == CLOCK_MEM ? device->memory_clock_mhz
                                        : LOADED(device, clock_mhz, idle_clock_mhz));
    return kind <= 3 ? NVML_OK : NVML_INVALID;
}

FK_EXPORT int nvmlDeviceGetMaxClockInfo(device_t device, unsigned kind, unsigned *mhz)
{
    *mhz = (unsigned)(kind == CLOCK_MEM ? device->memory_clock_mhz : device->max_clock_mhz);
    return kind <= 3 ? NVML_OK : NVML_INVALID;
}

FK_EXPORT int nvmlDeviceGetCurrentClocksEventReasons(device_t device, unsigned long long *reasons)
{
    *reasons = loaded(device) ? device->throttle : 1; /* idle */
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(device_t device,
                                                        unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

FK_EXPORT int nvmlDeviceGetPowerUsage(device_t device, unsigned *milliwatt)
{
    *milliwatt = (unsigned)(LOADED(device, power_w, idle_power_w) * 1e3);
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetEnforcedPowerLimit(device_t device, unsigned *milliwatt)
{
    *milliwatt = (unsigned)(device->power_limit_w * 1e3);
    return NVML_OK;
}

/* As if the GPU had been under load since the process began. */
FK_EXPORT int nvmlDeviceGetTotalEnergyConsumption(device_t device, unsigned long long *millijoule)
{
    void *symbol = cuda_symbol("fk_now");
    uint64_t (*now)(void);
    memcpy(&now, &symbol, sizeof now);
    const double seconds = symbol ? (double)now() * 1e-9 : 0;
    *millijoule = (unsigned long long)((device->energy_j + seconds * device->power_w) * 1e3);
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetTemperature(device_t device, unsigned sensor, unsigned *celsius)
{
    *celsius = (unsigned)LOADED(device, temperature_c, idle_temperature_c);
    return sensor == 0 ? NVML_OK : NVML_INVALID;
}

/* NVLink: every link ends at a switch, dealt out in turn; without switches at the next GPU. */

FK_EXPORT int nvmlDeviceGetNvLinkState(device_t device, unsigned link, unsigned *active)
{
    if (link == 0 && device->answer_ms > 0)
        nanosleep(&(struct timespec){device->answer_ms / 1000, device->answer_ms % 1000 * 1000000},
                  NULL);
    if (link >= (unsigned)device->links)
        return device->links ? NVML_INVALID : NVML_NOT_SUPPORTED;
    *active = device->link_up[link];
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetNvLinkVersion(device_t device, unsigned link, unsigned *version)
{
    *version = (unsigned)device->link_version;
    return link < (unsigned)device->links && device->link_up[link] ? NVML_OK : NVML_INVALID;
}

FK_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(device_t device, unsigned link, unsigned *kind)
{
    *kind = fk_machine()->switch_count ? PEER_SWITCH : 0;
    return link < (unsigned)device->links && device->link_up[link] ? NVML_OK : NVML_INVALID;
}

FK_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(device_t device, unsigned link,
                                                  struct pci_info *pci)
{
    const struct fk_machine *machine = fk_machine();
    if (link >= (unsigned)device->links || !device->link_up[link])
        return NVML_INVALID;
    if (machine->switch_count)
        fill_pci(pci, 0xa0 + (int)link % machine->switch_count, 0xf00e);
    else
        fill_pci(pci, machine->gpus[(number(device) + 1) % machine->gpu_count].bus, 0xf00d);
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetFieldValues(device_t device, int count, struct field *fields)
{
    for (int i = 0; i < count; i++) {
        struct field *f = &fields[i];
        const bool link = f->id == FIELD_NVLINK_GET_SPEED && f->scope < (unsigned)device->links &&
                          device->link_up[f->scope];
        const bool common = f->id == FIELD_NVLINK_MBPS_COMMON && device->links > 0;
        f->rc = link || common ? NVML_OK : NVML_NOT_SUPPORTED;
        f->type = VALUE_UINT;
        f->value.ull = 0;
        if (link || common)
            f->value.ui = (unsigned)device->link_mb_per_s;
    }
    return NVML_OK;
}

/* Capability 0 to 4: read, write, NVLink, atomics, property. 0: in order; 3: not by this chipset.
 */
FK_EXPORT int nvmlDeviceGetP2PStatus(device_t a, device_t b, unsigned capability, int *status)
{
    const bool can = a != b && (capability == 2 ? a->links > 0 : fk_machine()->peer);
    *status = can ? 0 : 3;
    return capability <= 4 ? NVML_OK : NVML_INVALID;
}

/* 20: one PCIe switch, 30: one root complex, 50: the sockets' link. Four GPUs at each socket. */
FK_EXPORT int nvmlDeviceGetTopologyCommonAncestor(device_t a, device_t b, unsigned *level)
{
    *level = a->share && a->share == b->share ? 20 : number(a) / 4 == number(b) / 4 ? 30 : 50;
    return NVML_OK;
}

/* What a GPU is and how it is set up. */

FK_EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(device_t device, unsigned *milliwatt)
{
    *milliwatt = (unsigned)(device->power_default_w * 1e3);
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetVbiosVersion(device_t device, char *text, unsigned length)
{
    (void)device;
    return text_out(text, length, "F0.0D.00.00.01");
}

/* The same on every host, but for its last digits, as UUIDs. */
FK_EXPORT int nvmlDeviceGetSerial(device_t device, char *text, unsigned length)
{
    unsigned char u[16];
    char serial[32];
    if (device->ecc < 0) /* GeForce cards have none */
        return NVML_NOT_SUPPORTED;
    fk_gpu_uuid(fk_machine(), number(device), u);
    snprintf(serial, sizeof serial, "165%03u%03u%04u", u[0], u[1], u[2] * 16u + number(device));
    return text_out(text, length, serial);
}

FK_EXPORT int nvmlDeviceGetPersistenceMode(device_t device, unsigned *mode)
{
    *mode = (unsigned)device->persistence;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetComputeMode(device_t device, unsigned *mode)
{
    (void)device;
    *mode = 0; /* default */
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetVirtualizationMode(device_t device, unsigned *mode)
{
    (void)device;
    *mode = 0; /* none */
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetBAR1MemoryInfo(device_t device, unsigned long long memory[3])
{
    if (device->bar1_bytes == 0)
        return NVML_NOT_SUPPORTED;
    memory[0] = device->bar1_bytes;
    memory[1] = device->bar1_bytes - (1 << 20);
    memory[2] = 1 << 20;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetPcieReplayCounter(device_t device, unsigned *count)
{
    *count = (unsigned)device->replays;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetGpuMaxPcieLinkGeneration(device_t device, unsigned *value)
{
    *value = (unsigned)device->pcie_max_generation;
    return NVML_OK;
}

/* Memory errors: ECC, and rows remapped since Ampere, pages retired before. */

FK_EXPORT int nvmlDeviceGetEccMode(device_t device, unsigned *now, unsigned *pending)
{
    if (device->ecc < 0)
        return NVML_NOT_SUPPORTED;
    *now = *pending = (unsigned)device->ecc;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetTotalEccErrors(device_t device, unsigned type, unsigned counter,
                                          unsigned long long *count)
{
    if (device->ecc <= 0)
        return NVML_NOT_SUPPORTED;
    *count = type == 0 && counter == 1 ? (unsigned long long)device->retired : 0;
    return type <= 1 && counter <= 1 ? NVML_OK : NVML_INVALID;
}

FK_EXPORT int nvmlDeviceGetRemappedRows(device_t device, unsigned *corrected, unsigned *uncorrected,
                                        unsigned *pending, unsigned *failed)
{
    if (device->ecc < 0 || device->capability < 80)
        return NVML_NOT_SUPPORTED;
    *corrected = 0;
    *uncorrected = (unsigned)device->retired;
    *pending = (unsigned)device->remap_pending;
    *failed = 0;
    return NVML_OK;
}

FK_EXPORT int nvmlDeviceGetRetiredPages(device_t device, unsigned cause, unsigned *count,
                                        unsigned long long *addresses)
{
    const unsigned retired = cause == 1 ? (unsigned)device->retired : 0, room = *count;
    if (device->ecc < 0 || device->capability >= 80)
        return NVML_NOT_SUPPORTED;
    *count = retired;
    if (room < retired)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < retired; i++)
        addresses[i] = i << 16;
    return cause <= 1 ? NVML_OK : NVML_INVALID;
}

/* Counters 0 to 3: replays, recoveries, CRC errors of flits and of data. */
FK_EXPORT int nvmlDeviceGetNvLinkErrorCounter(device_t device, unsigned link, unsigned counter,
                                              unsigned long long *count)
{
    if (link >= (unsigned)device->links || counter > 3)
        return NVML_INVALID;
    *count = link == 0 && counter == 0 ? (unsigned long long)device->link_errors : 0;
    return NVML_OK;
}

/* Registration with the fabric manager: GPUs behind NVSwitches since Hopper. */
FK_EXPORT int nvmlDeviceGetGpuFabricInfo(device_t device, struct fabric *fabric)
{
    if (device->fabric == 0)
        return NVML_NOT_SUPPORTED;
    *fabric = (struct fabric){.state = (unsigned char)device->fabric};
    return NVML_OK;
}
