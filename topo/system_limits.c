/* Limits of this process, memory settings of the kernel, frequency governor, clock. Sources:
 * proc(5), Linux Documentation/admin-guide (hugetlbpage, transhuge, numa_balancing, cpufreq),
 * adjtimex(2). */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/units.h"
#include "topo/system_parts.h"

/* "Max locked memory         8388608              8388608              bytes": the soft one. */
static nw_rc read_rlimit(struct nw_system *system, const char *text, const char *title,
                         nw_fact_id id)
{
    const char *line = strstr(text, title);
    unsigned long long value;

    if (line == NULL)
        return NW_OK;
    line += strlen(title);
    line += strspn(line, " ");
    if (strncmp(line, "unlimited", 9) == 0)
        return nw_system_number(system, id, 18446744073709551615.0, "/proc/self/limits");
    if (sscanf(line, "%20llu", &value) != 1)
        return NW_OK;
    return nw_system_number(system, id, (double)value, "/proc/self/limits");
}

/* "CapEff:\t000001ffffffffff": bit 14 of capability.h is CAP_IPC_LOCK, which the limit of locked
 * memory does not bind. */
static nw_rc read_capability(struct nw_system *system)
{
    char text[4096], value[64];
    unsigned long long bits;

    nw_system_text(text, sizeof text, "%s/proc/self/status", system->root);
    if (!nw_system_field(text, "CapEff", value, sizeof value) ||
        sscanf(value, "%20llx", &bits) != 1)
        return NW_OK;
    return nw_system_number(system, NW_FACT_MEMLOCK_EXEMPT, (bits >> 14) & 1, "/proc/self/status");
}

static nw_rc read_rlimits(struct nw_system *system)
{
    char text[4096];

    NW_TRY(read_capability(system));
    nw_system_text(text, sizeof text, "%s/proc/self/limits", system->root);
    NW_TRY(read_rlimit(system, text, "Max locked memory", NW_FACT_MEMLOCK));
    return read_rlimit(system, text, "Max open files", NW_FACT_OPEN_FILES);
}

static nw_rc read_shared_memory(struct nw_system *system)
{
    char path[PATH_MAX];
    struct statvfs status;

    snprintf(path, sizeof path, "%s/dev/shm", system->root);
    if (statvfs(path, &status) != 0)
        return NW_OK;
    NW_TRY(nw_system_number(system, NW_FACT_SHM, (double)status.f_blocks * (double)status.f_frsize,
                            "/dev/shm"));
    return nw_system_number(system, NW_FACT_SHM_FREE,
                            (double)status.f_bavail * (double)status.f_frsize, "/dev/shm");
}

static nw_rc read_huge_pages(struct nw_system *system)
{
    char text[4096], value[64], unit[3];
    unsigned long long number;

    nw_system_text(text, sizeof text, "%s/proc/meminfo", system->root);
    if (nw_system_field(text, "HugePages_Total", value, sizeof value) &&
        sscanf(value, "%20llu", &number) == 1)
        NW_TRY(nw_system_number(system, NW_FACT_HUGEPAGES, (double)number, "/proc/meminfo"));
    if (nw_system_field(text, "Hugepagesize", value, sizeof value) &&
        sscanf(value, "%20llu %2s", &number, unit) == 2 && strcmp(unit, "kB") == 0)
        NW_TRY(nw_system_number(system, NW_FACT_HUGEPAGE_SIZE, (double)number * 1024,
                                "/proc/meminfo"));
    return NW_OK;
}

static nw_rc read_memory_settings(struct nw_system *system)
{
    char text[128], *from, *to;
    uint64_t number;

    /* "always [madvise] never" */
    nw_system_text(text, sizeof text, "%s/sys/kernel/mm/transparent_hugepage/enabled",
                   system->root);
    from = strchr(text, '[');
    to = from != NULL ? strchr(from, ']') : NULL;
    if (to != NULL) {
        *to = '\0';
        NW_TRY(nw_system_say(system, NW_FACT_THP, from + 1, "transparent_hugepage/enabled"));
    }
    /* 2: memory tiering, which moves pages as well */
    if (nw_system_text(text, sizeof text, "%s/proc/sys/kernel/numa_balancing", system->root) &&
        nw_parse_u64(text, 0, 3, &number) == NW_OK)
        return nw_system_number(system, NW_FACT_NUMA_BALANCING, number != 0,
                                "/proc/sys/kernel/numa_balancing");
    return NW_OK;
}

/* "performance", or "powersave on 3 of 64, else performance". */
static nw_rc read_governor(struct nw_system *system)
{
    char names[2][32] = {"", ""}, text[32], path[PATH_MAX], entry[64], told[128];
    struct nw_system_folder folder;
    int counts[2] = {0, 0};

    snprintf(path, sizeof path, "%s/sys/devices/system/cpu", system->root);
    nw_system_open_folder(&folder, path);
    while (nw_system_next(&folder, entry, sizeof entry)) {
        size_t which;

        if (strncmp(entry, "cpu", 3) != 0 || entry[3] < '0' || entry[3] > '9' ||
            !nw_system_text(text, sizeof text, "%s/%s/cpufreq/scaling_governor", path, entry))
            continue;
        which = names[0][0] != '\0' && strcmp(names[0], text) != 0;
        if (counts[which]++ == 0)
            snprintf(names[which], sizeof names[which], "%s", text);
    }
    nw_system_close_folder(&folder);
    const size_t fewer = counts[1] > 0 && counts[1] <= counts[0];

    if (counts[1] == 0)
        return nw_system_say(system, NW_FACT_CPU_GOVERNOR, names[0], "cpufreq/scaling_governor");
    snprintf(told, sizeof told, "%s on %d of %d, else %s", names[fewer], counts[fewer],
             counts[0] + counts[1], names[1 - fewer]);
    return nw_system_say(system, NW_FACT_CPU_GOVERNOR, told, "cpufreq/scaling_governor");
}

bool nw_system_clock_of(int state, const struct timex *clock, double *error_s_out)
{
    const bool disciplined = state != TIME_ERROR && (clock->status & STA_UNSYNC) == 0;

    *error_s_out = disciplined && clock->esterror >= 0 ? (double)clock->esterror * 1e-6 : NAN;
    return disciplined;
}

/* Of the live machine: reading needs no right. */
static nw_rc read_clock(struct nw_system *system)
{
    static const char *const daemons[] = {"chronyd", "ntpd",    "systemd-timesyn", "ptp4l",
                                          "phc2sys", "ntpd-rs", "openntpd"};
    char source[48] = "adjtimex";
    struct timex clock = {0};
    double error_s;
    int state;

    if (system->root[0] != '\0')
        return NW_OK;
    state = adjtimex(&clock);
    if (state < 0)
        return NW_OK;
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; i++)
        if (nw_processes_have(&system->processes, daemons[i])) {
            snprintf(source, sizeof source, "adjtimex; %s runs", daemons[i]);
            break;
        }
    NW_TRY(nw_system_number(system, NW_FACT_CLOCK_SYNC, nw_system_clock_of(state, &clock, &error_s),
                            source));
    return nw_system_number(system, NW_FACT_CLOCK_ERROR, error_s, source);
}

nw_rc nw_system_read_limits(struct nw_system *system)
{
    NW_TRY(read_rlimits(system));
    NW_TRY(read_shared_memory(system));
    NW_TRY(read_huge_pages(system));
    NW_TRY(read_memory_settings(system));
    NW_TRY(read_governor(system));
    return read_clock(system);
}
