#include "cli/env_read.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "base/json.h"
#include "base/library.h"
#include "base/units.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "topo/system.h"
#include "topo/topo.h"

#define SMALL_FILE_BYTES (1u << 20)

/* "/home/ann/lib:/home/ann/lib64" without who it is: "~/lib:~/lib64". */
static void hide_home(const char *text, char *shown, size_t size)
{
    const char *home = getenv("HOME");
    const size_t length = home != NULL && strcmp(home, "/") != 0 ? strlen(home) : 0;
    size_t used = 0;

    while (*text != '\0' && used + 1 < size) {
        if (length > 1 && strncmp(text, home, length) == 0 &&
            strchr("/:", text[length]) != NULL) { /* or its end */
            shown[used++] = '~';
            text += length;
        } else {
            shown[used++] = *text++;
        }
    }
    shown[used] = '\0';
}

static nw_rc section(json_t *host, const char *name, json_t **rows_out)
{
    *rows_out = json_object();
    return nw_json_set_new(host, name, *rows_out);
}

/* ---- the program -------------------------------------------------------------------------------
 */

static nw_rc read_program(json_t *host)
{
    static const struct {
        const char *key, *text;
    } built[] = {
#define BUILT(key, text) {key, text},
#include "built.inc" /* cli/CMakeLists.txt */
#undef BUILT
    };
    json_t *rows;

    NW_TRY(section(host, "nodeworth", &rows));
    NW_TRY(nw_json_set_text(rows, "version", nw_version));
    NW_TRY(nw_json_set_text(rows, "date", nw_version_date[0] != '\0' ? nw_version_date : NULL));
    for (size_t i = 0; i < sizeof built / sizeof built[0]; i++)
        NW_TRY(nw_json_set_text(rows, built[i].key, built[i].text));
    return NW_OK;
}

/* ---- the system --------------------------------------------------------------------------------
 */

/* PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" of os-release(5). */
static nw_rc read_distribution(json_t *rows)
{
    static const char key[] = "PRETTY_NAME=";
    char *text, *at;
    size_t length;
    nw_rc rc = NW_OK;

    if (nw_file_read("/etc/os-release", SMALL_FILE_BYTES, &text, &length) != NW_OK) {
        nw_clear_error();
        return NW_OK;
    }
    at = strstr(text, key);
    if (at != NULL && (at == text || at[-1] == '\n')) {
        at += strlen(key);
        at += *at == '"';
        at[strcspn(at, "\"\n")] = '\0';
        rc = nw_json_set_text(rows, "distribution", at);
    }
    free(text);
    return rc;
}

static nw_rc set_limit(json_t *rows, const char *key, int resource)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) != 0)
        return NW_OK;
    return limit.rlim_cur == RLIM_INFINITY ? nw_json_set_text(rows, key, "no limit")
                                           : nw_json_set_u64(rows, key, limit.rlim_cur);
}

static nw_rc read_system(json_t *host)
{
    struct utsname system;
    json_t *rows;

    NW_TRY(section(host, "system", &rows));
    NW_TRY(read_distribution(rows));
    if (uname(&system) == 0) {
        NW_TRY(nw_json_set_text(rows, "kernel", system.release));
        NW_TRY(nw_json_set_text(rows, "architecture", system.machine));
    }
    NW_TRY(nw_json_set_text(rows, "glibc", gnu_get_libc_version()));
    NW_TRY(section(host, "limits", &rows));
    NW_TRY(set_limit(rows, "memlock_bytes", RLIMIT_MEMLOCK));
    NW_TRY(set_limit(rows, "open_files", RLIMIT_NOFILE));
    NW_TRY(set_limit(rows, "processes", RLIMIT_NPROC));
    return set_limit(rows, "stack_bytes", RLIMIT_STACK);
}

/* ---- the machine -------------------------------------------------------------------------------
 */

/* "8 × NVIDIA H100 80GB HBM3"; several kinds with commas. */
static nw_rc set_devices(json_t *rows, const char *key, const struct nw_topo *topo,
                         nw_node_kind kind)
{
    const int count = nw_topo_count(topo, kind);
    char text[600] = "";

    for (int i = 0; i < count; i++) {
        const struct nw_topo_node *node = nw_topo_nth(topo, kind, i);
        const size_t used = strlen(text);
        int alike = 0, before = 0;

        for (int j = 0; j < count; j++)
            if (strcmp(nw_topo_nth(topo, kind, j)->model, node->model) == 0) {
                alike++;
                before += j < i;
            }
        if (before == 0)
            snprintf(text + used, sizeof text - used, "%s%d × %s", used > 0 ? ", " : "", alike,
                     node->model[0] != '\0' ? node->model : "unknown model");
    }
    return nw_json_set_text(rows, key, count > 0 ? text : "none");
}

static nw_rc set_facts(json_t *rows, const struct nw_topo *topo)
{
    for (int id = 0; id < NW_FACT_COUNT; id++) {
        const struct nw_fact *fact = nw_topo_fact(topo, 0, (nw_fact_id)id);
        char text[224];

        if (fact == NULL || (nw_fact_rows[id].flags & (NW_FACT_SECRET | NW_FACT_PASSING)) != 0 ||
            id == NW_FACT_KERNEL || id == NW_FACT_MEMLOCK || id == NW_FACT_OPEN_FILES)
            continue; /* the last three are said elsewhere */
        NW_TRY(nw_json_set_text(rows, nw_fact_rows[id].key, nw_fact_value_text(fact, text)));
    }
    return NW_OK;
}

static nw_rc add_machine(json_t *host, const struct nw_topo *topo)
{
    const struct nw_topo_node *package = nw_topo_nth(topo, NW_NODE_PACKAGE, 0);
    char memory[32];
    json_t *rows;

    NW_TRY(section(host, "machine", &rows));
    if (package != NULL && package->model[0] != '\0')
        NW_TRY(nw_json_set_text(rows, "cpu", package->model));
    NW_TRY(nw_json_set_int(rows, "cores", topo->core_count));
    NW_TRY(nw_json_set_text(rows, "memory", nw_format_bytes(memory, topo->memory_bytes)));
    if (!(topo->gaps & NW_TOPO_NO_IO)) {
        NW_TRY(set_devices(rows, "gpus", topo, NW_NODE_GPU));
        NW_TRY(set_devices(rows, "nics", topo, NW_NODE_NIC));
    }
    return set_facts(rows, topo);
}

static nw_rc read_machine(json_t *host)
{
    struct nw_topo *topo = NULL;

    if (nw_topo_read_live(&topo) != NW_OK) {
        json_t *rows;

        NW_TRY(section(host, "machine", &rows));
        return nw_json_set_text(rows, "not_read", nw_last_error()->text);
    }
    if (nw_system_read(&(struct nw_system_places){.root = ""}, topo) != NW_OK)
        nw_clear_error();
    const nw_rc rc = add_machine(host, topo);

    nw_topo_free(topo);
    return rc;
}

/* ---- libraries ---------------------------------------------------------------------------------
 */

static void nccl_version(int number, char text[24])
{
    const int base = number < 10000 ? 1000 : 10000; /* NCCL_VERSION_CODE, from 2.9 on and before */

    snprintf(text, 24, "%d.%d.%d", number / base, number % base / 100, number % 100);
}

static void cuda_version(int number, char text[24])
{
    snprintf(text, 24, "CUDA %d.%d", number / 1000, number % 1000 / 10);
}

/* Opened at run time by this program. */
static const struct opened {
    const char *name;     /* row */
    const char *variable; /* that names another file; NULL */
    const char *files[3]; /* the first that is there */
    const char *version;  /* a function that writes one number; NULL */
    void (*text)(int number, char text[24]);
} opened[] = {
    {"CUDA driver", NULL, {"libcuda.so.1"}, "cuDriverGetVersion", cuda_version},
    {"NVML", NULL, {"libnvidia-ml.so.1"}, NULL, NULL},
    {"NCCL", "NW_NCCL_LIBRARY", {"libnccl.so.2"}, "ncclGetVersion", nccl_version},
    {"cuBLAS",
     "NW_CUBLAS_LIBRARY",
     {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
     NULL,
     NULL},
    {"libibverbs", NULL, {"libibverbs.so.1"}, NULL, NULL},
    {"librdmacm", NULL, {"librdmacm.so.1"}, NULL, NULL},
};

static nw_rc add_library(json_t *rows, const char *name, const char *path, const char *version)
{
    char shown[PATH_MAX];
    char *real = realpath(path, NULL); /* its name has the version, more often than not */
    json_t *row = json_object();

    hide_home(real != NULL ? real : path, shown, sizeof shown);
    free(real);
    NW_TRY(nw_json_set_new(rows, name, row));
    NW_TRY(nw_json_set_text(row, "version", version));
    return nw_json_set_text(row, "path", shown);
}

/* NULL: none of them can be opened; dlerror() is of the first. */
static void *open_first(const struct opened *row, char error[256])
{
    const char *given = row->variable != NULL ? getenv(row->variable) : NULL;
    const size_t most = sizeof row->files / sizeof row->files[0];
    void *library = NULL;

    error[0] = '\0';
    for (size_t i = 0; i < most && library == NULL; i++) {
        const char *file = given != NULL && given[0] != '\0' ? given : row->files[i];

        if (file == NULL || (i > 0 && file == given))
            break;
        library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
        if (library == NULL && error[0] == '\0')
            snprintf(error, 256, "%s", dlerror());
    }
    return library;
}

static nw_rc add_opened(json_t *rows, const struct opened *row)
{
    int (*version)(int *) = NULL;
    struct link_map *map = NULL;
    char text[24] = "", error[256];
    void *library = open_first(row, error), *symbol;
    int number = 0;

    if (library == NULL) /* there and broken is news */
        return nw_json_set_text(rows, row->name,
                                strstr(error, "No such file") != NULL ? "not found" : error);
    symbol = row->version != NULL ? dlsym(library, row->version) : NULL;
    memcpy(&version, &symbol, sizeof version);
    if (dlsym(library, NW_SIMULATED_MARKER) != NULL)
        snprintf(text, sizeof text, "SIMULATED");
    else if (version != NULL && version(&number) == 0 && number > 0)
        row->text(number, text);
    /* Not closed: CUDA's libraries do not take that well. */
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NW_OK;
    return add_library(rows, row->name, map->l_name, text[0] != '\0' ? text : NULL);
}

/* The ones that the program is linked with, among all that are loaded. */
static int add_linked(struct dl_phdr_info *info, size_t size, void *rows)
{
    static const char *const names[] = {
        "libmpi.so",       "libmpich.so", "libhwloc.so", "libjansson",
        "libsmartcols.so", "libinih.so",  "libxml2.so",  NULL};
    const char *slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size;
    for (const char *const *name = names; slash != NULL && *name != NULL; name++)
        if (strncmp(slash + 1, *name, strlen(*name)) == 0)
            return add_library(rows, slash + 1, info->dlpi_name, NULL) != NW_OK;
    return 0;
}

static nw_rc read_libraries(json_t *host)
{
    json_t *rows;

    NW_TRY(section(host, "libraries", &rows));
    if (dl_iterate_phdr(add_linked, rows) != 0)
        return nw_last_error()->rc;
    for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++)
        NW_TRY(add_opened(rows, &opened[i]));
    return NW_OK;
}

/* ---- the environment ---------------------------------------------------------------------------
 */

/* "https://user:password@host", and texts that begin as keys of well-known services do. */
static bool holds_secret(const char *value)
{
    static const char *const beginnings[] = {"hf_",         "sk-",    "ghp_",      "gho_",
                                             "github_pat_", "glpat-", "AKIA",      "ASIA",
                                             "xox",         "eyJ",    "-----BEGIN"};
    const char *address = strstr(value, "://");

    if (address != NULL && strchr(address, '@') != NULL)
        return true;
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strstr(value, beginnings[i]) != NULL)
            return true;
    return false;
}

/* Beside what a record keeps (NCCL_*, OMPI_MCA_*, UCX_*, CUDA_VISIBLE_DEVICES). */
static nw_rc read_environment(json_t *host)
{
    static const char *const further[] = {"LD_LIBRARY_PATH",
                                          "LD_PRELOAD",
                                          "LANG",
                                          "LC_ALL",
                                          "OMP_NUM_THREADS",
                                          "NW_NCCL_LIBRARY",
                                          "NW_CUBLAS_LIBRARY",
                                          "NW_ALLOW_SIMULATED"};
    json_t *rows, *value;
    const char *name;

    NW_TRY(nw_bench_environment(&rows));
    NW_TRY(nw_json_set_new(host, "environment", rows));
    for (size_t i = 0; i < sizeof further / sizeof further[0]; i++)
        NW_TRY(nw_json_set_text(rows, further[i], getenv(further[i])));
    json_object_foreach(rows, name, value)
    {
        char shown[1024];

        hide_home(json_string_value(value), shown, sizeof shown);
        if (json_string_set(value,
                            holds_secret(shown) ? "(hidden: it may hold a secret)" : shown) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the environment");
    }
    return NW_OK;
}

nw_rc nw_env_read(json_t **host_out)
{
    json_t *host = json_object();
    nw_rc rc = read_program(host);

    if (rc == NW_OK)
        rc = read_system(host);
    if (rc == NW_OK)
        rc = read_machine(host);
    if (rc == NW_OK)
        rc = read_libraries(host);
    if (rc == NW_OK)
        rc = read_environment(host);
    if (rc != NW_OK) {
        json_decref(host);
        return rc;
    }
    *host_out = host;
    return NW_OK;
}
