#include "tests/fake/machine_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    double factor;
} units[] = {
    {"", 1},         {"ns", 1e-3},    {"us", 1},         {"ms", 1e3},      {"B", 1},
    {"KiB", 1024.0}, {"MiB", 0x1p20}, {"GiB", 0x1p30},   {"MB/s", 1e6},    {"GB/s", 1e9},
    {"TB/s", 1e12},  {"MHz", 1},      {"W", 1},          {"J", 1},         {"C", 1},
    {"bit", 1},      {"%", 1e-2},     {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9},
};

/* "12 us" or "55GB/s" at the front of *text, which moves on. */
static bool read_number(const char **text, double *value_out)
{
    char *end;
    const double number = strtod(*text, &end);
    if (end == *text)
        return false;
    while (*end == ' ')
        end++;
    const size_t length = strcspn(end, " ");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == length && strncmp(units[i].name, end, length) == 0) {
            *value_out = number * units[i].factor;
            *text = end + length + strspn(end + length, " ");
            return true;
        }
    return false;
}

static void refuse(const struct fk_reader *reader, const char *key, const char *value,
                   const char *accepted)
{
    fk_die("%s:%d: %s = %s; accepted: %s", reader->path, reader->line, key, value, accepted);
}

static double one_number(const struct fk_reader *reader, const char *key, const char *value)
{
    const char *rest = value;
    double number;
    if (!read_number(&rest, &number) || *rest)
        refuse(reader, key, value, "a number with its unit, as 80 GiB, 1980 MHz, 3 us");
    return number;
}

static struct fk_path two_numbers(const struct fk_reader *reader, const char *key,
                                  const char *value)
{
    const char *rest = value;
    struct fk_path path;
    if (!read_number(&rest, &path.alpha_us) || !read_number(&rest, &path.bytes_per_s) || *rest ||
        path.alpha_us < 0 || path.bytes_per_s <= 0)
        refuse(reader, key, value, "time and rate, as \"12 us 370 GB/s\"");
    return path;
}

static int cuda_version(const struct fk_reader *reader, const char *key, const char *value)
{
    int major, minor, end = 0;
    if (sscanf(value, "%d.%d%n", &major, &minor, &end) != 2 || value[end])
        refuse(reader, key, value, "a version, as 12.8");
    return major * 1000 + minor * 10;
}

static void machine_key(struct fk_reader *reader, const char *key, const char *value)
{
    struct fk_machine *machine = reader->machine;
    if (strcmp(key, "driver") == 0)
        snprintf(machine->driver, sizeof machine->driver, "%s", value);
    else if (strcmp(key, "cuda") == 0) /* 12.8: 12080 */
        machine->cuda_version = cuda_version(reader, key, value);
    else if (strcmp(key, "gpus") == 0)
        machine->gpu_count = (int)one_number(reader, key, value);
    else if (strcmp(key, "switches") == 0)
        machine->switch_count = (int)one_number(reader, key, value);
    else if (strcmp(key, "peer") == 0)
        machine->peer = one_number(reader, key, value) != 0;
    else if (strcmp(key, "launch") == 0)
        machine->launch_us = one_number(reader, key, value);
    else if (strcmp(key, "shared") == 0)
        machine->shared_bytes_per_s = one_number(reader, key, value);
    else if (strcmp(key, "simulate_factor") == 0)
        machine->simulate_factor = one_number(reader, key, value);
    else
        fk_die("%s:%d: [machine] has no %s; accepted: driver, cuda, gpus, switches, peer, launch, "
               "shared, simulate_factor, include",
               reader->path, reader->line, key);
}

/* X(key, member, unit of the member per unit of the file) */
#define GPU_NUMBERS(X)                                                                             \
    X("memory", memory_bytes)                                                                      \
    X("reserved", reserved_bytes)                                                                  \
    X("l2", l2_bytes)                                                                              \
    X("capability", capability)                                                                    \
    X("sms", sm_count)                                                                             \
    X("shared_memory", shared_optin_bytes)                                                         \
    X("clock", clock_mhz)                                                                          \
    X("max_clock", max_clock_mhz)                                                                  \
    X("idle_clock", idle_clock_mhz)                                                                \
    X("memory_clock", memory_clock_mhz)                                                            \
    X("memory_bus", memory_bus_bits)                                                               \
    X("power", power_w)                                                                            \
    X("idle_power", idle_power_w)                                                                  \
    X("power_limit", power_limit_w)                                                                \
    X("energy", energy_j)                                                                          \
    X("temperature", temperature_c)                                                                \
    X("idle_temperature", idle_temperature_c)                                                      \
    X("pcie_generation", pcie_generation)                                                          \
    X("pcie_idle_generation", pcie_idle_generation)                                                \
    X("pcie_max_generation", pcie_max_generation)                                                  \
    X("pcie_width", pcie_width)                                                                    \
    X("pcie_max_width", pcie_max_width)                                                            \
    X("power_default", power_default_w)                                                            \
    X("bar1", bar1_bytes)                                                                          \
    X("ecc", ecc)                                                                                  \
    X("persistence", persistence)                                                                  \
    X("replays", replays)                                                                          \
    X("link_errors", link_errors)                                                                  \
    X("retired", retired)                                                                          \
    X("remap_pending", remap_pending)                                                              \
    X("fabric", fabric)                                                                            \
    X("answer_ms", answer_ms)                                                                      \
    X("mig", mig)                                                                                  \
    X("links", links)                                                                              \
    X("link_version", link_version)                                                                \
    X("link_mb_per_s", link_mb_per_s)                                                              \
    X("share", share)                                                                              \
    X("memory_efficiency", memory_efficiency)                                                      \
    X("tensor", tensor_flops)                                                                      \
    X("cublas", cublas_factor)                                                                     \
    X("kernel", kernel_us)
#define GPU_PATHS(X)                                                                               \
    X("h2d", h2d)                                                                                  \
    X("d2h", d2h) X("pageable", pageable) X("d2d", d2d) X("p2p", p2p) X("staged", staged)

/* "idle power_cap heat": NVML's bits by name. */
static uint64_t throttle_bits(const struct fk_reader *reader, const char *key, const char *value)
{
    static const struct {
        const char *name;
        uint64_t bit;
    } reasons[] = {{"none", 0},        {"idle", 0x1},           {"setting", 0x2},
                   {"power_cap", 0x4}, {"hardware", 0x8},       {"sync_boost", 0x10},
                   {"heat", 0x20},     {"hardware_heat", 0x40}, {"power_brake", 0x80}};
    uint64_t bits = 0;
    while (*value) {
        const size_t length = strcspn(value, " ");
        size_t i = 0;
        while (i < sizeof reasons / sizeof *reasons &&
               (strlen(reasons[i].name) != length || strncmp(reasons[i].name, value, length)))
            i++;
        if (i == sizeof reasons / sizeof *reasons)
            refuse(reader, key, value,
                   "none, or of idle setting power_cap hardware sync_boost heat hardware_heat "
                   "power_brake");
        bits |= reasons[i].bit;
        value += length + strspn(value + length, " ");
    }
    return bits;
}

static void gpu_key_of(struct fk_reader *reader, struct fk_gpu *gpu, const char *key,
                       const char *value)
{
    if (strcmp(key, "name") == 0) {
        snprintf(gpu->name, sizeof gpu->name, "%s", value);
        return;
    }
    if (strcmp(key, "throttle") == 0) {
        gpu->throttle = throttle_bits(reader, key, value);
        return;
    }
    if (strcmp(key, "link_down") == 0) {
        const double link = one_number(reader, key, value);
        if (link < 0 || link >= FK_MAX_LINKS)
            refuse(reader, key, value, "0 to 17");
        gpu->link_up[(int)link] = false;
        return;
    }
#define X(name, member)                                                                            \
    if (strcmp(key, name) == 0) {                                                                  \
        gpu->member = (__typeof__(gpu->member))one_number(reader, key, value);                     \
        return;                                                                                    \
    }
    GPU_NUMBERS(X)
#undef X
#define X(name, member)                                                                            \
    if (strcmp(key, name) == 0) {                                                                  \
        gpu->member = two_numbers(reader, key, value);                                             \
        return;                                                                                    \
    }
    GPU_PATHS(X)
#undef X
    fk_die("%s:%d: [gpu] has no %s; accepted: name, throttle, link_down"
#define X(name, member) ", " name
           GPU_NUMBERS(X) GPU_PATHS(X)
#undef X
               ,
           reader->path, reader->line, key);
}

static void lane_key(struct fk_reader *reader, const char *key, const char *value)
{
    struct fk_lane *lane = reader->lane;
    if (strcmp(key, "when") == 0) {
        if (lane->when_count == FK_MAX_CONDITIONS || !strchr(value, '=') ||
            strlen(value) >= sizeof lane->when[0])
            refuse(reader, key, value, "up to 6 lines of NAME=VALUE|VALUE or NAME!=VALUE");
        snprintf(lane->when[lane->when_count++], sizeof lane->when[0], "%s", value);
        return;
    }
    if (strcmp(key, "refuse") == 0) {
        snprintf(lane->refuse, sizeof lane->refuse, "%s", value);
        return;
    }
    bool known = false;
    for (int i = 0; i < FK_COLL_COUNT; i++)
        if (strcmp(key, "all") == 0 || strcmp(key, fk_coll_names[i]) == 0) {
            lane->path[i] = two_numbers(reader, key, value);
            known = true;
        }
    if (!known)
        fk_die("%s:%d: a lane has no %s; accepted: when, refuse, all, and the collectives' names",
               reader->path, reader->line, key);
}

void fk_read_key(struct fk_reader *reader, const char *key, const char *value)
{
    if (reader->section == FK_SECTION_MACHINE)
        machine_key(reader, key, value);
    else if (reader->section == FK_SECTION_LANE)
        lane_key(reader, key, value);
    else
        for (int i = reader->first_gpu; i <= reader->last_gpu; i++)
            gpu_key_of(reader, &reader->machine->gpus[i], key, value);
}

static void check_lanes(const struct fk_lane *lanes, int count, const char *kind, const char *path)
{
    if (count == 0 || lanes[count - 1].when_count > 0)
        fk_die("%s: the last [%s] must have no \"when\": what is taken otherwise", path, kind);
    for (int i = 0; i < count; i++)
        for (int c = 0; c < FK_COLL_COUNT; c++)
            if (lanes[i].path[c].bytes_per_s <= 0)
                fk_die("%s: [%s %s] has no rate for %s", path, kind, lanes[i].name,
                       fk_coll_names[c]);
}

void fk_check_machine(struct fk_machine *machine, const char *path)
{
    if (machine->gpu_count < 1 || machine->gpu_count > FK_MAX_GPUS)
        fk_die("%s: gpus = %d; accepted: 1 to %d", path, machine->gpu_count, FK_MAX_GPUS);
    if (machine->simulate_factor <= 0)
        machine->simulate_factor = 1;
    for (int i = 0; i < machine->gpu_count; i++) {
        struct fk_gpu *gpu = &machine->gpus[i];
        gpu->bus = 0x11 + 0x10 * (i / 4) + i % 4;
        if (gpu->cublas_factor <= 0)
            gpu->cublas_factor = 1;
        if (gpu->power_default_w <= 0)
            gpu->power_default_w = gpu->power_limit_w;
        const struct fk_path *paths[] = {&gpu->h2d, &gpu->d2h, &gpu->pageable,
                                         &gpu->d2d, &gpu->p2p, &gpu->staged};
        bool whole = gpu->name[0] && gpu->memory_bytes && gpu->sm_count > 0 &&
                     gpu->memory_clock_mhz > 0 && gpu->memory_bus_bits > 0 && gpu->clock_mhz > 0 &&
                     gpu->max_clock_mhz > 0 && gpu->tensor_flops > 0 &&
                     gpu->memory_efficiency > 0 && gpu->links <= FK_MAX_LINKS;
        for (size_t k = 0; k < sizeof paths / sizeof *paths; k++)
            whole &= paths[k]->bytes_per_s > 0;
        if (!whole)
            fk_die("%s: gpu %d lacks one of name, memory, sms, clock, max_clock, memory_clock, "
                   "memory_bus, memory_efficiency, tensor, h2d, d2h, pageable, d2d, p2p, staged",
                   path, i);
    }
    check_lanes(machine->lanes, machine->lane_count, "lane", path);
    check_lanes(machine->wires, machine->wire_count, "wire", path);
}
