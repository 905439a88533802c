/* libnvidia-ml.so.1 for tests on machines without a GPU: a machine of two GPUs, written from the
 * public API. GPU 0 has three NVLinks to a switch, one of them down; GPU 1 is a PCIe card at Gen1
 * x8 that is too hot. Of the throttle reasons only the older call is here, as before driver 535.
 *
 *   EMULATE_NVML_INIT=code   what nvmlInit_v2 answers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT const int nw_simulated_marker = 1;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
};
struct memory {
    unsigned long long total, free, used;
};
struct field {
    unsigned int id, scope;
    long long timestamp, latency;
    unsigned int type;
    int rc;
    union {
        double d;
        unsigned int ui;
    } value;
};

static char gpus[2];
static int number(const void *device)
{
    return (int)((const char *)device - gpus);
}

EXPORT int nvmlInit_v2(void)
{
    const char *text = getenv("EMULATE_NVML_INIT");
    return text ? atoi(text) : OK;
}
EXPORT int nvmlShutdown(void)
{
    return OK;
}
EXPORT const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : "an emulated error";
}
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned int length)
{
    snprintf(text, length, "580.65.06");
    return OK;
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return OK;
}
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = 2;
    return OK;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    if (index > 1)
        return INVALID;
    *device = &gpus[index];
    return OK;
}
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, void **device)
{
    if (strcmp(text, "f00d:01:00.0") != 0 && strcmp(text, "f00d:02:00.0") != 0)
        return NOT_FOUND;
    *device = &gpus[text[6] - '1'];
    return OK;
}
EXPORT int nvmlDeviceGetIndex(void *device, unsigned int *index)
{
    *index = (unsigned int)number(device);
    return OK;
}
EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned int length)
{
    snprintf(text, length, "EMULATED GPU %d (no hardware)", number(device));
    return OK;
}
EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned int length)
{
    snprintf(text, length, "GPU-454d554c-4154-4544-2d4e-4f2d475055%02x", (unsigned)number(device));
    return OK;
}
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    *pci = (struct pci){.domain = 0xf00d, .bus = (unsigned)number(device) + 1};
    snprintf(pci->bus_id, sizeof pci->bus_id, "0000F00D:%02X:00.0", pci->bus);
    return OK;
}
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    (void)device;
    *memory = (struct memory){.total = 1ull << 30, .free = 1ull << 29, .used = 1ull << 29};
    return OK;
}
EXPORT int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    *major = number(device) == 0 ? 9 : 8;
    *minor = number(device) == 0 ? 0 : 9;
    return OK;
}
EXPORT int nvmlDeviceGetMigMode(void *device, unsigned int *now, unsigned int *pending)
{
    *now = *pending = 0;
    return number(device) == 0 ? OK : NOT_SUPPORTED;
}

#define PER_GPU(name, first, second)                                                               \
    EXPORT int name(void *device, unsigned int *value)                                             \
    {                                                                                              \
        *value = number(device) == 0 ? (first) : (second);                                         \
        return OK;                                                                                 \
    }
PER_GPU(nvmlDeviceGetCurrPcieLinkGeneration, 5, 1)
PER_GPU(nvmlDeviceGetCurrPcieLinkWidth, 16, 8)
PER_GPU(nvmlDeviceGetMaxPcieLinkGeneration, 5, 4)
PER_GPU(nvmlDeviceGetMaxPcieLinkWidth, 16, 16)
PER_GPU(nvmlDeviceGetPowerUsage, 450250, 449900)
PER_GPU(nvmlDeviceGetEnforcedPowerLimit, 700000, 450000)

EXPORT int nvmlDeviceGetClockInfo(void *device, unsigned int type, unsigned int *mhz)
{
    *mhz = type == 1 ? (number(device) == 0 ? 1980 : 1005) : 2619;
    return OK;
}
EXPORT int nvmlDeviceGetMaxClockInfo(void *device, unsigned int type, unsigned int *mhz)
{
    (void)device;
    *mhz = type == 1 ? 1980 : 2619;
    return OK;
}
EXPORT int nvmlDeviceGetTemperature(void *device, unsigned int sensor, unsigned int *celsius)
{
    *celsius = number(device) == 0 ? 61 : 91;
    return sensor == 0 ? OK : INVALID;
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    *reasons = number(device) == 0 ? 0 : 0x24;
    return OK;
}
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
    *mj = 123456789;
    return number(device) == 0 ? OK : NOT_SUPPORTED;
}
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *active)
{
    if (number(device) != 0 || link > 2)
        return link > 17 ? INVALID : NOT_SUPPORTED;
    *active = link != 1;
    return OK;
}
EXPORT int nvmlDeviceGetNvLinkVersion(void *device, unsigned int link, unsigned int *version)
{
    (void)device;
    (void)link;
    *version = 5;
    return OK;
}
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned int link, unsigned int *kind)
{
    (void)device;
    (void)link;
    *kind = 2;
    return OK;
}
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, struct pci *pci)
{
    (void)device;
    *pci = (struct pci){.domain = 0xf00d, .bus = 0x90 + link};
    return OK;
}
EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
    (void)device;
    for (int i = 0; i < count; i++) {
        fields[i].rc = fields[i].id == 164 && fields[i].scope == 2 ? OK : NOT_SUPPORTED;
        if (fields[i].id == 90)
            fields[i].rc = OK;
        fields[i].type = 1;
        fields[i].value.ui = fields[i].id == 90 ? 25000 : 26562;
    }
    return OK;
}
