/* The circumstances of a run: who takes part, on what, under which environment. */
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/units.h"
#include "bench/agree.h"
#include "bench/binding.h"
#include "bench/case.h"
#include "topo/system.h"

extern char **environ;

#define SMALL_FILE_BYTES (1u << 20)
#define TOPOLOGY_BYTES   (1u << 20)    /* of one host, as JSON text; 8 doubled GPUs take 30 KB */
#define VALUE_MAX        256           /* of an environment variable */
#define SOURCE_DATE_MAX  253402300799u /* the last second with a year of four digits */

static const char *const env_allowed[] = {"NCCL_", "OMPI_MCA_", "UCX_", "CUDA_VISIBLE_DEVICES",
                                          NULL};
/* Set by mpirun for itself, no tuning (and orte_precondition_transports is a key). */
static const char *const env_internal[] = {"OMPI_MCA_orte",          "OMPI_MCA_ess",
                                           "OMPI_MCA_pmix",          "OMPI_MCA_initial_wdir",
                                           "OMPI_MCA_shmem_RUNTIME", "OMPI_MCA_mpi_oversubscribe",
                                           "OMPI_MCA_plm_rsh_agent", NULL};
static const char *const env_secret[] = {"KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", NULL};

static bool begins_with_any(const char *text, const char *const *prefixes)
{
    for (; *prefixes != NULL; prefixes++)
        if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

static bool looks_secret(const char *name)
{
    for (const char *const *word = env_secret; *word != NULL; word++)
        if (strcasestr(name, *word) != NULL)
            return true;
    return false;
}

bool nw_env_is_recorded(const char *name)
{
    return begins_with_any(name, env_allowed) && !begins_with_any(name, env_internal) &&
           !looks_secret(name);
}

nw_rc nw_bench_environment(json_t **object_out)
{
    json_t *object = json_object();

    if (object == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the environment");
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        const char *equals = strchr(*variable, '=');
        char name[128], value[VALUE_MAX];
        nw_rc rc;

        if (equals == NULL || (size_t)(equals - *variable) >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - *variable), *variable);
        if (!nw_env_is_recorded(name))
            continue;
        snprintf(value, sizeof value, "%s", equals + 1);
        rc = nw_json_set_text(object, name, value);
        if (rc != NW_OK) {
            json_decref(object);
            return rc;
        }
    }
    *object_out = object;
    return NW_OK;
}

/* "MemAvailable:   12345 kB" */
static uint64_t meminfo_available(void)
{
    char *text;
    size_t length;
    const char *line;
    unsigned long long kib = 0;

    if (nw_file_read("/proc/meminfo", SMALL_FILE_BYTES, &text, &length) != NW_OK)
        return 0;
    line = strstr(text, "MemAvailable:");
    if (line == NULL || sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
        kib = 0;
    free(text);
    return (uint64_t)kib * 1024;
}

/* A number in a file of its own; 0: none ("max", no such file). */
static uint64_t number_in(const char *path)
{
    char *text;
    size_t length;
    uint64_t value = 0;

    if (nw_file_read(path, SMALL_FILE_BYTES, &text, &length) != NW_OK)
        return 0;
    text[strcspn(text, " \n")] = '\0';
    if (nw_parse_u64(text, 0, UINT64_MAX, &value) != NW_OK)
        value = 0;
    free(text);
    return value;
}

uint64_t nw_env_available_bytes(void)
{
    const uint64_t available = meminfo_available();
    const uint64_t limit = number_in("/sys/fs/cgroup/memory.max"); /* cgroup v2, in a container */
    const uint64_t used = number_in("/sys/fs/cgroup/memory.current");

    nw_clear_error();
    if (limit > 0 && used < limit && (available == 0 || limit - used < available))
        return limit - used;
    return available;
}

/* The CPU's name where the topology does not tell (virtual machines, Arm boards). */
static void cpu_from_proc(char *cpu, size_t size)
{
    char *text;
    size_t length;
    const char *line;

    if (nw_file_read("/proc/cpuinfo", SMALL_FILE_BYTES * 8, &text, &length) != NW_OK)
        return;
    line = strstr(text, "model name");
    line = line != NULL ? strchr(line, ':') : NULL;
    if (line != NULL) {
        while (*++line == ' ')
            continue;
        snprintf(cpu, size, "%.*s", (int)strcspn(line, "\n"), line);
    }
    free(text);
}

/* What the topology could not see of the GPUs, from the one that this rank works with. */
static void add_device(const struct nw_dev *dev, int rank_count, struct nw_host *host)
{
    if (dev == NULL)
        return;
    if (host->gpu_model[0] == '\0')
        snprintf(host->gpu_model, sizeof host->gpu_model, "%s", dev->name);
    if (host->gpu_count < rank_count) /* one GPU a rank */
        host->gpu_count = rank_count;
}

static void describe_host(const struct nw_comm *comm, const struct nw_topo *topo,
                          struct nw_host *host)
{
    struct utsname system;

    *host = (struct nw_host){.rank_count = comm->local_count, .gpu_count = -1};
    snprintf(host->name, sizeof host->name, "%s", comm->host_names[comm->host_index]);
    if (uname(&system) == 0)
        snprintf(host->kernel, sizeof host->kernel, "%.60s %.60s", system.sysname, system.release);
    if (topo != NULL) {
        const struct nw_topo_node *package = nw_topo_nth(topo, NW_NODE_PACKAGE, 0);
        const struct nw_topo_node *gpu = nw_topo_nth(topo, NW_NODE_GPU, 0);

        host->core_count = topo->core_count;
        host->pu_count = topo->pu_count;
        host->memory_bytes = topo->memory_bytes;
        if (!(topo->gaps & NW_TOPO_NO_IO))
            host->gpu_count = nw_topo_count(topo, NW_NODE_GPU);
        if (package != NULL)
            snprintf(host->cpu, sizeof host->cpu, "%s", package->model);
        if (gpu != NULL)
            snprintf(host->gpu_model, sizeof host->gpu_model, "%s", gpu->model);
    }
    add_device(comm->dev, comm->local_count, host);
    if (host->cpu[0] == '\0')
        cpu_from_proc(host->cpu, sizeof host->cpu);
}

/* What each rank tells all others. */
struct about_rank {
    struct nw_host host; /* of a host's first rank; else empty */
    struct nw_rank_binding binding;
};

static bool is_reproducible(void)
{
    const char *given = getenv("SOURCE_DATE_EPOCH");

    return given != NULL && given[0] != '\0';
}

/* Temperatures, counters, free space: they differ from one run to the next. */
static void drop_passing_facts(json_t *topology)
{
    json_t *facts = json_object_get(topology, "facts");

    for (size_t i = json_array_size(facts); i-- > 0;) {
        const json_t *key = json_object_get(json_array_get(facts, i), "fact");
        const int id = nw_fact_find(json_string_value(key));

        if (id >= 0 && (nw_fact_rows[id].flags & NW_FACT_PASSING) != 0)
            json_array_remove(facts, i);
    }
}

/* The topology as text, cut to nothing when it is larger than what is passed around. */
static char *topology_text(const struct nw_topo *topo)
{
    json_t *json;
    char *text;

    if (topo == NULL || nw_topo_to_json(topo, &json) != NW_OK)
        return NULL;
    if (is_reproducible())
        drop_passing_facts(json);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text != NULL && strlen(text) > TOPOLOGY_BYTES) {
        free(text);
        return NULL;
    }
    return text;
}

static int first_rank_of(const struct nw_comm *comm, int host)
{
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (comm->host_of_rank[rank] == host)
            return rank;
    return -1;
}

/* One host's text from its first rank to all; only rank 0 keeps it. */
static nw_rc share_topology(struct nw_comm *comm, int host, const char *mine,
                            struct nw_context *context)
{
    const int root = first_rank_of(comm, host);
    uint64_t length = comm->rank == root && mine != NULL ? strlen(mine) : 0;
    char *text = NULL;
    json_t *json;
    nw_rc rc;

    NW_TRY(comm->ops->share(comm, &length, sizeof length, root));
    if (length == 0) {
        if (comm->rank == 0) /* without memory for the sentence the run goes on, like the others' */
            (void)nw_findings_add(&context->findings, NW_FINDING_INFO, "no-topology",
                                  comm->host_names[host], NULL,
                                  "the topology of this host could not be read");
        return NW_OK;
    }
    text = calloc(1, length + 1);
    if (nw_agree(comm, text != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for a topology")) !=
        NW_OK) {
        free(text);
        return NW_ENOMEM;
    }
    if (comm->rank == root)
        memcpy(text, mine, length);
    rc = comm->ops->share(comm, text, length, root);
    json = rc == NW_OK && comm->rank == 0 ? json_loads(text, 0, NULL) : NULL;
    if (json != NULL)
        json_array_append_new(context->topology, json);
    free(text);
    return rc;
}

static nw_rc merge_hosts(const struct nw_comm *comm, const struct about_rank *all,
                         struct nw_context *context)
{
    context->hosts = calloc((size_t)comm->host_count, sizeof *context->hosts);
    if (context->hosts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d hosts", comm->host_count);
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (all[rank].host.rank_count > 0)
            context->hosts[comm->host_of_rank[rank]] = all[rank].host;
    return NW_OK;
}

static nw_rc merge_bindings(const struct nw_comm *comm, const struct about_rank *all,
                            struct nw_context *context)
{
    struct nw_rank_binding *bindings = calloc((size_t)comm->rank_count, sizeof *bindings);
    nw_rc rc = NW_OK;

    context->binding = json_array();
    if (bindings == NULL || context->binding == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for the binding of %d ranks", comm->rank_count);
    for (int rank = 0; rank < comm->rank_count && rc == NW_OK; rank++) {
        bindings[rank] = all[rank].binding;
        if (json_array_append_new(context->binding, json_string(all[rank].binding.cpus)) != 0)
            rc = nw_fail(NW_ENOMEM, "no memory for the binding of %d ranks", comm->rank_count);
    }
    if (rc == NW_OK && !comm->ops->simulated)
        rc = nw_binding_judge(bindings, comm, &context->findings);
    free(bindings);
    return rc;
}

static nw_rc merge(const struct nw_comm *comm, const struct about_rank *all,
                   struct nw_context *context)
{
    NW_TRY(merge_hosts(comm, all, context));
    return merge_bindings(comm, all, context);
}

static nw_rc tell_all(struct nw_comm *comm, const struct nw_topo *topo, struct about_rank *all,
                      struct nw_context *context)
{
    struct about_rank mine = {.host = {.gpu_count = -1}};
    char *text = comm->local_rank == 0 ? topology_text(topo) : NULL;
    nw_rc rc;

    if (comm->local_rank == 0)
        describe_host(comm, topo, &mine.host);
    nw_binding_read(&mine.binding);
    rc = comm->ops->exchange(comm, &mine, sizeof mine, all);
    for (int host = 0; host < comm->host_count && rc == NW_OK; host++)
        rc = share_topology(comm, host, text, context);
    free(text);
    return rc;
}

/* Now, or what SOURCE_DATE_EPOCH says (reproducible-builds.org): then two runs with equal results
 * write equal files. */
static nw_rc tell_start(char started[32])
{
    const char *given = getenv("SOURCE_DATE_EPOCH");
    uint64_t seconds;
    time_t instant;
    struct tm utc;

    if (!is_reproducible()) {
        nw_wall_clock_iso8601(started);
        return NW_OK;
    }
    if (nw_parse_u64(given, 0, SOURCE_DATE_MAX, &seconds) != NW_OK)
        return nw_fail(NW_EUSAGE,
                       "SOURCE_DATE_EPOCH=%.40s; accepted: whole seconds since 1970, up to %llu",
                       given, (unsigned long long)SOURCE_DATE_MAX);
    instant = (time_t)seconds;
    if (gmtime_r(&instant, &utc) == NULL || strftime(started, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        started[0] = '\0';
    return NW_OK;
}

/* Each rank's, in rank order. */
static nw_rc list_gpus(const struct nw_comm *comm, json_t **array_out)
{
    json_t *array = json_array();

    for (int rank = 0; array != NULL && rank < comm->rank_count; rank++) {
        const struct nw_comm_gpu *gpu = &comm->gpus[rank];
        json_t *entry = json_object();
        nw_rc rc = json_array_append_new(array, entry) == 0 ? NW_OK : NW_ENOMEM;

        if (rc == NW_OK && gpu->index >= 0)
            rc = nw_json_set_int(entry, "index", gpu->index);
        if (rc == NW_OK)
            rc = nw_json_set_text(entry, "model", gpu->model);
        if (rc == NW_OK)
            rc = nw_json_set_text(entry, "uuid", gpu->uuid);
        if (rc == NW_OK)
            rc = nw_json_set_text(entry, "pci", gpu->pci);
        if (rc == NW_OK)
            rc = nw_json_set_text(entry, "driver", gpu->driver);
        if (rc == NW_OK)
            rc = nw_json_set_text(entry, "library", gpu->library);
        if (rc != NW_OK) {
            json_decref(array);
            array = NULL;
        }
    }
    if (array == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the GPUs of %d ranks", comm->rank_count);
    *array_out = array;
    return NW_OK;
}

static nw_rc fill_own(const struct nw_plan *plan, const struct nw_comm *comm, const char *version,
                      struct nw_context *context)
{
    snprintf(context->tool, sizeof context->tool, "nodeworth");
    snprintf(context->tool_version, sizeof context->tool_version, "%s",
             version != NULL ? version : "");
    NW_TRY(tell_start(context->started));
    snprintf(context->backend, sizeof context->backend, "%s", comm->ops->name);
    snprintf(context->library, sizeof context->library, "%s", comm->library);
    context->rank_count = comm->rank_count;
    context->host_count = comm->host_count;
    context->simulated = comm->ops->simulated || comm->simulated;
    if (comm->dev != NULL)
        snprintf(context->gpu_model, sizeof context->gpu_model, "%s", comm->dev->name);
    if (comm->gpus != NULL)
        NW_TRY(list_gpus(comm, &context->gpus));
    context->topology = json_array();
    if (context->topology == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the context");
    NW_TRY(nw_plan_to_json(plan, &context->plan));
    return nw_bench_environment(&context->environment);
}

/* Each host's first rank; NULL: not that, or unreadable (the run goes on; a finding says so).
 * Pretended hosts are threads of one process, and libudev, below hwloc, is not for several threads
 * at once: they take turns. */
static nw_rc read_topology(struct nw_comm *comm, struct nw_topo **topo_out)
{
    const int turns = comm->ops->simulated ? comm->host_count : 1;

    *topo_out = NULL;
    for (int turn = 0; turn < turns; turn++) {
        const bool mine = !comm->ops->simulated || comm->host_index == turn;

        if (mine && comm->local_rank == 0 && nw_topo_read_live(topo_out) != NW_OK) {
            *topo_out = NULL;
            nw_clear_error();
        }
        /* Versions, modules, mounts, schedulers, for the audit; unread, they stay unknown. */
        if (*topo_out != NULL && !comm->ops->simulated &&
            nw_system_read(&(struct nw_system_places){.root = ""}, *topo_out) != NW_OK)
            nw_clear_error();
        if (turns > 1)
            NW_TRY(comm->ops->barrier(comm));
    }
    return NW_OK;
}

nw_rc nw_bench_describe(const struct nw_plan *plan, struct nw_comm *comm, const char *version,
                        struct nw_context *context_out)
{
    struct nw_context context;
    struct nw_topo *topo = NULL;
    struct about_rank *all = calloc((size_t)comm->rank_count, sizeof *all);
    nw_rc rc = all != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d ranks", comm->rank_count);

    nw_context_init(&context);
    if (rc == NW_OK)
        rc = fill_own(plan, comm, version, &context);
    rc = nw_agree(comm, rc);
    if (rc == NW_OK) {
        rc = read_topology(comm, &topo);
        if (rc == NW_OK)
            rc = tell_all(comm, topo, all, &context);
        nw_topo_free(topo);
    }
    if (rc == NW_OK) {
        if (comm->rank == 0)
            rc = merge(comm, all, &context);
        rc = nw_agree(comm, rc);
    }
    free(all);
    if (rc != NW_OK) {
        nw_context_free(&context);
        return rc;
    }
    *context_out = context;
    return NW_OK;
}
