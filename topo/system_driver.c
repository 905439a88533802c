/* Kernel, NVIDIA's driver and the modules of GPUDirect; versions of libraries by their files. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/system_parts.h"

int nw_system_kernel(const char *release)
{
    unsigned major, minor;

    return sscanf(release, "%3u.%3u", &major, &minor) == 2 ? (int)(major * 100 + minor) : 0;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 …",
 * "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build …" */
static const char *find_version(const char *text)
{
    const char *at = strstr(text, "Kernel Module");

    while (at != NULL && *at != '\0' && *at != '\n') {
        if (isdigit((unsigned char)*at) && isspace((unsigned char)at[-1]) &&
            strspn(at, "0123456789.") >= 5 && strchr(at, '.') != NULL)
            return at;
        at++;
    }
    return NULL;
}

/* Open modules can hand out GPU memory as a dma-buf, which NICs register from Linux 5.12 on
 * (NVIDIA's documentation of GPUDirect RDMA). Whether NIC driver and CUDA do it is not said here.
 */
static nw_rc say_dma_buf(struct nw_system *system, bool open, const char *release)
{
    const int kernel = nw_system_kernel(release);
    char source[48];

    if (!open)
        return nw_system_number(system, NW_FACT_DMABUF, 0, "proprietary kernel module");
    if (kernel == 0)
        return NW_OK;
    snprintf(source, sizeof source, "open kernel module, Linux %d.%d", kernel / 100, kernel % 100);
    return nw_system_number(system, NW_FACT_DMABUF, kernel >= 512, source);
}

static nw_rc read_driver_version(struct nw_system *system, const char *release)
{
    char text[512], version[32];
    const char *at;
    bool open;

    if (!nw_system_text(text, sizeof text, "%s/proc/driver/nvidia/version", system->root))
        return NW_OK;
    at = find_version(text);
    if (at == NULL)
        return NW_OK;
    open = strstr(text, "Open Kernel Module") != NULL;
    snprintf(version, sizeof version, "%.*s", (int)strspn(at, "0123456789."), at);
    NW_TRY(nw_system_say(system, NW_FACT_DRIVER, version, "/proc/driver/nvidia/version"));
    NW_TRY(nw_system_say(system, NW_FACT_DRIVER_KIND, open ? "open" : "proprietary",
                         "/proc/driver/nvidia/version"));
    return say_dma_buf(system, open, release);
}

/* The list of modules, or their folders where it is not shown. 1, 0; -1: neither is there. */
static int is_loaded(const struct nw_system *system, const char *list, const char *name)
{
    const size_t length = strlen(name);

    if (list == NULL) {
        if (!nw_system_exists("%s/sys/module", system->root))
            return -1;
        return nw_system_exists("%s/sys/module/%s", system->root, name);
    }
    for (const char *line = list; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return 1;
    }
    return 0;
}

static nw_rc read_modules(struct nw_system *system)
{
    static const struct {
        nw_fact_id id;
        const char *names[2]; /* one of them */
    } rows[] = {
        {NW_FACT_PEERMEM, {"nvidia_peermem", "nv_peer_mem"}}, /* the latter: before R470 */
        {NW_FACT_GDRCOPY, {"gdrdrv", NULL}},
    };
    enum { MAX_LIST = 256 << 10 };
    char *list = malloc(MAX_LIST);
    nw_rc rc = list != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for the list of modules");

    const bool shown =
        list != NULL && nw_system_text(list, MAX_LIST, "%s/proc/modules", system->root);

    for (size_t i = 0; i < sizeof rows / sizeof *rows && rc == NW_OK; i++) {
        int loaded = -1;

        for (size_t n = 0; n < 2 && rows[i].names[n] != NULL && loaded <= 0; n++)
            loaded = is_loaded(system, shown ? list : NULL, rows[i].names[n]);
        if (loaded >= 0)
            rc = nw_system_number(system, rows[i].id, loaded,
                                  shown ? "/proc/modules" : "/sys/module");
    }
    free(list);
    return rc;
}

nw_rc nw_system_read_driver(struct nw_system *system)
{
    char release[128];

    nw_system_text(release, sizeof release, "%s/proc/sys/kernel/osrelease", system->root);
    NW_TRY(nw_system_say(system, NW_FACT_KERNEL, release, "/proc/sys/kernel/osrelease"));
    NW_TRY(read_driver_version(system, release));
    return read_modules(system);
}

/* --- versions --- */

/* "1.14.44.0" of a folder's libibverbs.so.1 -> libibverbs.so.1.14.44.0. */
static bool version_in(const struct nw_system *system, const char *folder, size_t length,
                       const char *library, char *version, size_t size)
{
    const size_t name_length = strcspn(library, "."); /* "libnccl" of "libnccl.so.2" */
    char link[PATH_MAX], path[PATH_MAX];
    const char *name;

    snprintf(link, sizeof link, "%s%.*s/%s", system->root, (int)length, folder, library);
    if (realpath(link, path) == NULL)
        return false;
    name = strrchr(path, '/') + 1;
    if (strncmp(name, library, name_length) != 0 || strncmp(name + name_length, ".so.", 4) != 0 ||
        strchr(name + name_length + 4, '.') == NULL)
        return false; /* "libnccl.so.2" itself tells no version */
    return snprintf(version, size, "%s", name + name_length + 4) < (int)size;
}

static bool version_of(const struct nw_system *system, const char *library, char *version,
                       size_t size)
{
    static const char *const folders[] = {
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/local/cuda/lib64",
        "/usr/lib",
    };
    const char *path = nw_system_variable(system, "LD_LIBRARY_PATH");

    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");

        if (length > 0 && version_in(system, path, length, library, version, size))
            return true;
        path += length + (path[length] == ':');
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (version_in(system, folders[i], strlen(folders[i]), library, version, size))
            return true;
    return false;
}

/* ofed_info is a script that begins with its own version: "MLNX_OFED_LINUX-5.8-1.1.2.1:",
 * "OFED-internal-24.10-0.7.0:". */
static bool ofed_of_script(const struct nw_system *system, char *version, size_t size)
{
    static const char *const names[] = {"MLNX_OFED_LINUX-", "OFED-internal-", "MLNX_EN-", "DOCA-"};
    char text[4096];

    if (!nw_system_text(text, sizeof text, "%s/usr/bin/ofed_info", system->root))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(text, names[i]);
        const size_t start = at != NULL ? strlen(names[i]) : 0;

        if (at == NULL || !isdigit((unsigned char)at[start]))
            continue;
        snprintf(version, size, "%.*s%.*s", (int)start, at, (int)strspn(at + start, "0123456789.-"),
                 at + start);
        return true;
    }
    return false;
}

static nw_rc read_ofed(struct nw_system *system)
{
    char version[64], text[96];
    unsigned package;

    if (ofed_of_script(system, version, sizeof version))
        return nw_system_say(system, NW_FACT_OFED, version, "/usr/bin/ofed_info");
    /* Only drivers from outside the kernel say a version. */
    if (nw_system_text(version, sizeof version, "%s/sys/module/mlx5_core/version", system->root)) {
        snprintf(text, sizeof text, "mlx5_core %s", version);
        return nw_system_say(system, NW_FACT_OFED, text, "/sys/module/mlx5_core/version");
    }
    if (!version_of(system, "libibverbs.so.1", version, sizeof version))
        return NW_OK;
    /* libibverbs.so.1.14.44.0 is of rdma-core 44 */
    if (sscanf(version, "1.%*u.%9u", &package) == 1)
        snprintf(text, sizeof text, "rdma-core %u", package);
    else
        snprintf(text, sizeof text, "libibverbs %s", version);
    return nw_system_say(system, NW_FACT_OFED, text, "name of libibverbs.so.1's file");
}

nw_rc nw_system_read_versions(struct nw_system *system)
{
    char version[64];

    NW_TRY(read_ofed(system));
    if (version_of(system, "libnccl.so.2", version, sizeof version))
        return nw_system_say(system, NW_FACT_NCCL, version, "name of libnccl.so.2's file");
    return NW_OK;
}
