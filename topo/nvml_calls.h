/* Private to topo/. NVML's calls as this program declares them: types, numbers and layouts of the
 * public API (nvml.h of the CUDA toolkit), as far as they are used. nvml_api.c opens the library,
 * nvml_facts.c asks for the facts of a GPU. A call that is not required may be NULL: an older
 * library has not got it.
 */
#ifndef NW_TOPO_NVML_CALLS_H
#define NW_TOPO_NVML_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/nvml_api.h"

/* The public API's types and numbers, as far as we use them. */
typedef int nvml_return;
struct nvmlDevice_st;

struct nvml_pci_info { /* nvmlPciInfo_t, layout of nvmlDeviceGetPciInfo_v3 */
    char bus_id_legacy[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct nvml_memory { /* nvmlMemory_t */
    unsigned long long total, free, used;
};
struct nvml_field { /* nvmlFieldValue_t */
    unsigned int field_id, scope_id;
    long long timestamp, latency_us;
    unsigned int value_type;
    nvml_return rc;
    union {
        double d;
        int si;
        unsigned int ui;
        unsigned long ul;
        unsigned long long ull;
        long long sll;
        unsigned short us;
    } value;
};
_Static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct nvml_field) == 40, "nvmlFieldValue_t");

struct nvml_bar1 { /* nvmlBAR1Memory_t */
    unsigned long long total, free, used;
};
struct nvml_fabric { /* nvmlGpuFabricInfo_t */
    unsigned char cluster[16];
    nvml_return status;
    unsigned int clique;
    unsigned char state;
};
_Static_assert(sizeof(struct nvml_fabric) == 28, "nvmlGpuFabricInfo_t");

enum {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_VERSION_MISMATCH = 18,

    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_TEMPERATURE_GPU = 0,
    NVML_PEER_GPU = 0,
    NVML_PEER_IBMNPU = 1,
    NVML_PEER_SWITCH = 2,
    NVML_VALUE_UINT = 1,
    NVML_LINK_ERROR_COUNTERS = 4, /* replays, recoveries, CRC errors of flits and of data */
    NVML_FIELD_NVLINK_MBPS_COMMON = 90,
    NVML_FIELD_NVLINK_GET_SPEED = 164, /* scope: the link */
};

typedef struct nvmlDevice_st *nvml_device;

/* X(member, symbol, older symbol or NULL, required, arguments) */
#define NVML_MAP(X)                                                                                \
    X(init, "nvmlInit_v2", NULL, true, (void))                                                     \
    X(shutdown, "nvmlShutdown", NULL, true, (void))                                                \
    X(driver_version, "nvmlSystemGetDriverVersion", NULL, true, (char *, unsigned int))            \
    X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion", false,  \
      (int *))                                                                                     \
    X(count, "nvmlDeviceGetCount_v2", NULL, true, (unsigned int *))                                \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", NULL, true, (unsigned int, nvml_device *))        \
    X(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", NULL, true, (const char *, nvml_device *))       \
    X(index, "nvmlDeviceGetIndex", NULL, true, (nvml_device, unsigned int *))                      \
    X(name, "nvmlDeviceGetName", NULL, true, (nvml_device, char *, unsigned int))                  \
    X(uuid, "nvmlDeviceGetUUID", NULL, true, (nvml_device, char *, unsigned int))                  \
    X(pci, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", true,                             \
      (nvml_device, struct nvml_pci_info *))                                                       \
    X(memory, "nvmlDeviceGetMemoryInfo", NULL, false, (nvml_device, struct nvml_memory *))         \
    X(capability, "nvmlDeviceGetCudaComputeCapability", NULL, false, (nvml_device, int *, int *))  \
    X(mig, "nvmlDeviceGetMigMode", NULL, false, (nvml_device, unsigned int *, unsigned int *))     \
    X(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", NULL, false,                         \
      (nvml_device, unsigned int *))                                                               \
    X(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", NULL, false, (nvml_device, unsigned int *))    \
    X(pcie_max_generation, "nvmlDeviceGetMaxPcieLinkGeneration", NULL, false,                      \
      (nvml_device, unsigned int *))                                                               \
    X(pcie_max_width, "nvmlDeviceGetMaxPcieLinkWidth", NULL, false, (nvml_device, unsigned int *)) \
    X(clock, "nvmlDeviceGetClockInfo", NULL, false, (nvml_device, unsigned int, unsigned int *))   \
    X(max_clock, "nvmlDeviceGetMaxClockInfo", NULL, false,                                         \
      (nvml_device, unsigned int, unsigned int *))                                                 \
    X(throttle, "nvmlDeviceGetCurrentClocksEventReasons",                                          \
      "nvmlDeviceGetCurrentClocksThrottleReasons", false, (nvml_device, unsigned long long *))     \
    X(power, "nvmlDeviceGetPowerUsage", NULL, false, (nvml_device, unsigned int *))                \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", NULL, false, (nvml_device, unsigned int *))  \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", NULL, false,                                  \
      (nvml_device, unsigned long long *))                                                         \
    X(temperature, "nvmlDeviceGetTemperature", NULL, false,                                        \
      (nvml_device, unsigned int, unsigned int *))                                                 \
    X(link_state, "nvmlDeviceGetNvLinkState", NULL, false,                                         \
      (nvml_device, unsigned int, unsigned int *))                                                 \
    X(link_version, "nvmlDeviceGetNvLinkVersion", NULL, false,                                     \
      (nvml_device, unsigned int, unsigned int *))                                                 \
    X(link_peer_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", NULL, false,                           \
      (nvml_device, unsigned int, struct nvml_pci_info *))                                         \
    X(link_peer_kind, "nvmlDeviceGetNvLinkRemoteDeviceType", NULL, false,                          \
      (nvml_device, unsigned int, unsigned int *))                                                 \
    X(fields, "nvmlDeviceGetFieldValues", NULL, false, (nvml_device, int, struct nvml_field *))    \
    X(link_errors, "nvmlDeviceGetNvLinkErrorCounter", NULL, false,                                 \
      (nvml_device, unsigned int, unsigned int, unsigned long long *))                             \
    X(power_default, "nvmlDeviceGetPowerManagementDefaultLimit", NULL, false,                      \
      (nvml_device, unsigned int *))                                                               \
    X(ecc_mode, "nvmlDeviceGetEccMode", NULL, false,                                               \
      (nvml_device, unsigned int *, unsigned int *))                                               \
    X(ecc_errors, "nvmlDeviceGetTotalEccErrors", NULL, false,                                      \
      (nvml_device, unsigned int, unsigned int, unsigned long long *))                             \
    X(remapped, "nvmlDeviceGetRemappedRows", NULL, false,                                          \
      (nvml_device, unsigned int *, unsigned int *, unsigned int *, unsigned int *))               \
    X(retired, "nvmlDeviceGetRetiredPages", NULL, false,                                           \
      (nvml_device, unsigned int, unsigned int *, unsigned long long *))                           \
    X(retirement_pending, "nvmlDeviceGetRetiredPagesPendingStatus", NULL, false,                   \
      (nvml_device, unsigned int *))                                                               \
    X(persistence, "nvmlDeviceGetPersistenceMode", NULL, false, (nvml_device, unsigned int *))     \
    X(compute_mode, "nvmlDeviceGetComputeMode", NULL, false, (nvml_device, unsigned int *))        \
    X(vbios, "nvmlDeviceGetVbiosVersion", NULL, false, (nvml_device, char *, unsigned int))        \
    X(serial, "nvmlDeviceGetSerial", NULL, false, (nvml_device, char *, unsigned int))             \
    X(bar1, "nvmlDeviceGetBAR1MemoryInfo", NULL, false, (nvml_device, struct nvml_bar1 *))         \
    X(replays, "nvmlDeviceGetPcieReplayCounter", NULL, false, (nvml_device, unsigned int *))       \
    X(own_max_generation, "nvmlDeviceGetGpuMaxPcieLinkGeneration", NULL, false,                    \
      (nvml_device, unsigned int *))                                                               \
    X(fabric, "nvmlDeviceGetGpuFabricInfo", NULL, false, (nvml_device, struct nvml_fabric *))      \
    X(memory_numa, "nvmlDeviceGetNumaNodeId", NULL, false, (nvml_device, unsigned int *))          \
    X(virtualization, "nvmlDeviceGetVirtualizationMode", NULL, false,                              \
      (nvml_device, unsigned int *))                                                               \
    X(ancestor, "nvmlDeviceGetTopologyCommonAncestor", NULL, false,                                \
      (nvml_device, nvml_device, unsigned int *))                                                  \
    X(peer_status, "nvmlDeviceGetP2PStatus", NULL, false,                                          \
      (nvml_device, nvml_device, unsigned int, unsigned int *))

struct nw_nvml {
    struct {
#define X(member, symbol, older, required, arguments) nvml_return(*member) arguments;
        NVML_MAP(X)
#undef X
        const char *(*error_text)(nvml_return);
    } api;
    void *library;
    int count;
    int cuda_version;
    bool simulated, started;
    char driver_version[80];
};

nw_rc nw_nvml_device(struct nw_nvml *nvml, int index, nvml_device *device_out);

#endif
