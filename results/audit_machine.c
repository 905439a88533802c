#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/audit_private.h"

static void machine_init(struct nw_machine *machine, const char *host, const char *source)
{
    *machine = (struct nw_machine){.gpu_count = -1,
                                   .gpu_memory_bytes = NAN,
                                   .ram_bytes = NAN,
                                   .power_limit_w = NAN,
                                   .nvlink = -1};
    snprintf(machine->host, sizeof machine->host, "%s", host);
    snprintf(machine->source, sizeof machine->source, "%s", source);
}

static void take_gpu(struct nw_machine *machine, const struct nw_topo_node *gpu)
{
    if (gpu->model[0] != '\0' && machine->gpu_model[0] == '\0')
        snprintf(machine->gpu_model, sizeof machine->gpu_model, "%s", gpu->model);
    else if (gpu->model[0] != '\0' && strcmp(machine->gpu_model, gpu->model) != 0)
        machine->gpus_differ = true;
    if (gpu->memory_bytes > 0 && !((double)gpu->memory_bytes > machine->gpu_memory_bytes))
        machine->gpu_memory_bytes = (double)gpu->memory_bytes;
}

static void machine_of_topo(const struct nw_topo *topo, const char *source,
                            struct nw_machine *machine)
{
    machine_init(machine, topo->host, topo->source[0] != '\0' ? topo->source : source);
    machine->topos[machine->topo_count++] = topo;
    machine->restricted = (topo->gaps & NW_TOPO_RESTRICTED) != 0;
    machine->core_count = topo->core_count;
    machine->thread_count = topo->pu_count;
    if (topo->memory_bytes > 0)
        machine->ram_bytes = (double)topo->memory_bytes;
    machine->simulated = nw_topo_number(topo, 0, NW_FACT_SIMULATED) > 0;
    bool complete;
    const bool known = nw_machine_topo(machine, NW_NODE_GPU, &complete) != NULL;
    const double attached = nw_machine_number(machine, NW_FACT_GPUS_ATTACHED);
    const int shown = nw_topo_count(topo, NW_NODE_GPU);

    if (known && complete)
        machine->gpu_count = shown;
    else if (attached >= 0 && attached <= 1024)
        machine->gpu_count = (int)attached;
    else
        machine->gpu_count_seen = shown;
    for (int i = 0; i < shown; i++)
        take_gpu(machine, nw_topo_nth(topo, NW_NODE_GPU, i));
}

static bool is_gpu_run(const struct nw_context *context)
{
    return context->gpu_model[0] != '\0' || strcmp(context->backend, "nccl") == 0 ||
           strncmp(context->tool, "nccl-tests", 10) == 0 ||
           strncmp(context->tool, "rccl-tests", 10) == 0;
}

/* "580.65.06, CUDA driver API 13.0" of a rank's GPU; "NCCL 2.28.9 (/usr/lib/…)". */
static void versions_of(const struct nw_context *context, struct nw_machine *machine)
{
    const char *driver =
        json_string_value(json_object_get(json_array_get(context->gpus, 0), "driver"));
    const char *cuda = driver != NULL ? strstr(driver, "CUDA driver API ") : NULL;

    if (driver != NULL)
        snprintf(machine->driver, sizeof machine->driver, "%.*s",
                 (int)strspn(driver, "0123456789."), driver);
    if (cuda != NULL)
        snprintf(machine->cuda, sizeof machine->cuda, "%.40s", cuda + strlen("CUDA driver API "));
    if (strncmp(context->library, "NCCL ", 5) == 0)
        snprintf(machine->nccl, sizeof machine->nccl, "%.*s",
                 (int)strspn(context->library + 5, "0123456789."), context->library + 5);
}

/* What loads and copies of a host's GPUs show of the product they are. */
static void look_at_load(const struct nw_run *run, const char *host, struct nw_machine *machine)
{
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        const double limit = record->during.power_limit_w;

        if (strcmp(record->host_a, host) != 0 || record->rc != NW_OK)
            continue;
        if (strcmp(record->case_name, "gemm") == 0 && limit > 0 &&
            !(limit >= machine->power_limit_w))
            machine->power_limit_w = limit;
        if (strcmp(record->case_name, "p2p") == 0 && strcmp(record->lane, "ce") == 0 &&
            strcmp(record->collective, "write") == 0 && record->ceiling_bytes_per_s > 0 &&
            machine->nvlink != 1)
            machine->nvlink = !nw_copy_is_over_pcie(record);
    }
}

static void machine_of_host(const struct nw_context *context, const struct nw_host *host,
                            const char *source, struct nw_machine *machine)
{
    const char *model = host->gpu_model[0] != '\0' ? host->gpu_model : context->gpu_model;

    machine_init(machine, host->name, source);
    snprintf(machine->gpu_model, sizeof machine->gpu_model, "%s", model);
    /* A log counts the GPUs that took part; only our own runs count those that are there, and at
     * least those that took part. */
    if (context->source[0] == '\0' && !(is_gpu_run(context) && host->gpu_count == host->rank_count))
        machine->gpu_count = host->gpu_count;
    if (is_gpu_run(context))
        machine->gpu_count_seen = host->rank_count;
    machine->core_count = host->core_count;
    machine->thread_count = host->pu_count;
    if (host->memory_bytes > 0)
        machine->ram_bytes = (double)host->memory_bytes;
    machine->simulated = context->simulated;
    versions_of(context, machine);
}

static void keep_text(char *text, const char *other, size_t size)
{
    if (text[0] == '\0')
        snprintf(text, size, "%s", other);
}
#define KEEP_TEXT(member) keep_text(kept->member, other->member, sizeof kept->member)

/* One entry a host: a topology knows more than a context, a context more than a log. */
static void merge(struct nw_machine *kept, const struct nw_machine *other)
{
    const bool first_topo = kept->topo_count == 0 && other->topo_count > 0;

    for (size_t i = 0; i < other->topo_count && kept->topo_count < NW_MACHINE_TOPOS; i++)
        kept->topos[kept->topo_count++] = other->topos[i];
    KEEP_TEXT(gpu_model);
    KEEP_TEXT(driver);
    KEEP_TEXT(cuda);
    KEEP_TEXT(nccl);
    kept->gpus_differ = kept->gpus_differ || other->gpus_differ ||
                        (other->gpu_model[0] != '\0' && other->topo_count > 0 &&
                         kept->topo_count > 0 && strcmp(kept->gpu_model, other->gpu_model) != 0);
    if (kept->gpu_count < 0 || (first_topo && other->gpu_count >= 0))
        kept->gpu_count = other->gpu_count;
    if (isnan(kept->gpu_memory_bytes))
        kept->gpu_memory_bytes = other->gpu_memory_bytes;
    if (kept->core_count == 0 || (first_topo && other->core_count > 0)) {
        kept->core_count = other->core_count;
        kept->thread_count = other->thread_count;
        kept->restricted = other->restricted;
    }
    if (isnan(kept->ram_bytes) || (first_topo && other->ram_bytes > 0))
        kept->ram_bytes = other->ram_bytes;
    kept->simulated = kept->simulated || other->simulated;
    kept->power_limit_w = fmin(kept->power_limit_w, other->power_limit_w); /* of NAN and x: x */
    kept->nvlink = other->nvlink > kept->nvlink ? other->nvlink : kept->nvlink;
    if (other->gpu_count_seen > kept->gpu_count_seen)
        kept->gpu_count_seen = other->gpu_count_seen;
    /* GPUs took part that the topology does not show: it cannot tell how many there are. */
    if (kept->gpu_count >= 0 && kept->gpu_count < kept->gpu_count_seen)
        kept->gpu_count = -1;
}

static nw_rc add_machine(struct nw_audit_state *state, const struct nw_machine *machine)
{
    for (size_t i = 0; i < state->machine_count; i++) {
        if (machine->host[0] != '\0' && strcmp(state->machines[i].host, machine->host) == 0) {
            merge(&state->machines[i], machine);
            return NW_OK;
        }
    }
    struct nw_machine *machines =
        realloc(state->machines, (state->machine_count + 1) * sizeof *machines);

    if (machines == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu machines", state->machine_count + 1);
    state->machines = machines;
    machines[state->machine_count++] = *machine;
    return NW_OK;
}

static nw_rc add_context_topologies(struct nw_audit_state *state, const struct nw_context *context,
                                    const char *source)
{
    size_t index;
    json_t *item;
    struct nw_machine machine;

    json_array_foreach(context->topology, index, item)
    {
        struct nw_topo *topo;
        struct nw_topo **owned =
            realloc(state->owned, (state->owned_count + 1) * sizeof(struct nw_topo *));

        if (owned == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the topologies of a run");
        state->owned = owned;
        if (json_is_null(item))
            continue;
        NW_TRY(nw_topo_from_json(item, source, &topo));
        owned[state->owned_count++] = topo;
        machine_of_topo(topo, source, &machine);
        machine.simulated = machine.simulated || context->simulated;
        NW_TRY(add_machine(state, &machine));
    }
    return NW_OK;
}

/* Ranks on other GPUs than those that their hosts are named by. */
static nw_rc add_other_models(struct nw_audit_state *state, const struct nw_context *context,
                              const char *source)
{
    const char *first = NULL;
    size_t rank;
    json_t *gpu;

    json_array_foreach(context->gpus, rank, gpu)
    {
        const char *model = json_string_value(json_object_get(gpu, "model"));
        struct nw_machine machine;

        first = first != NULL ? first : model;
        if (model == NULL || strcmp(model, first) == 0)
            continue;
        machine_init(&machine, "", source);
        snprintf(machine.source, sizeof machine.source, "rank %zu's GPU", rank);
        snprintf(machine.gpu_model, sizeof machine.gpu_model, "%s", model);
        machine.simulated = context->simulated;
        NW_TRY(add_machine(state, &machine));
    }
    return NW_OK;
}

static nw_rc add_run(struct nw_audit_state *state, size_t run_index)
{
    const struct nw_context *context = &state->results->runs[run_index].context;
    char source[256];
    struct nw_machine machine;

    if (context->source[0] != '\0')
        snprintf(source, sizeof source, "%s", context->source);
    else
        snprintf(source, sizeof source, "run %zu", run_index + 1);
    if (context->host_count > state->host_count)
        state->host_count = context->host_count;
    NW_TRY(add_context_topologies(state, context, source));
    for (int i = 0; context->hosts != NULL && i < context->host_count; i++) {
        machine_of_host(context, &context->hosts[i], source, &machine);
        look_at_load(&state->results->runs[run_index], context->hosts[i].name, &machine);
        NW_TRY(add_machine(state, &machine));
    }
    NW_TRY(add_other_models(state, context, source));
    if (context->hosts != NULL || context->gpu_model[0] == '\0')
        return NW_OK;
    /* A log that names its GPUs but not its hosts. */
    machine_init(&machine, "", source);
    snprintf(machine.gpu_model, sizeof machine.gpu_model, "%s", context->gpu_model);
    if (context->host_count > 0 && context->rank_count > 0)
        machine.gpu_count_seen = context->rank_count / context->host_count;
    machine.simulated = context->simulated;
    versions_of(context, &machine);
    return add_machine(state, &machine);
}

static bool has_gpus(const struct nw_audit_state *state)
{
    for (size_t i = 0; i < state->machine_count; i++)
        if (state->machines[i].gpu_count > 0)
            return true;
    return false;
}

/* A list of ports, or a matrix, without its host may be of any of the machines. */
static bool is_whole(const struct nw_machine *machine)
{
    for (size_t i = 0; i < machine->topo_count; i++)
        if ((machine->topos[i]->gaps & NW_TOPO_PARTIAL) == 0)
            return true;
    return false;
}

nw_rc nw_audit_collect(const struct nw_audit_input *input, struct nw_audit_state *state)
{
    struct nw_machine machine;

    state->quote = input->quote;
    state->results = input->results;
    for (size_t i = 0; i < input->topo_count; i++) {
        machine_of_topo(input->topos[i], input->topos[i]->source, &machine);
        NW_TRY(add_machine(state, &machine));
    }
    for (size_t i = 0; input->results != NULL && i < input->results->run_count; i++)
        NW_TRY(add_run(state, i));
    const bool any_gpu = nw_audit_gpu_model(state) != NULL || has_gpus(state);
    int named = 0;

    for (size_t i = 0; i < state->machine_count; i++)
        state->machines[i].others_have_gpus = any_gpu;
    for (size_t i = 0; i < state->machine_count; i++)
        named += state->machines[i].host[0] != '\0' || is_whole(&state->machines[i]);
    if (state->host_count < named)
        state->host_count = named;
    return NW_OK;
}

void nw_audit_collect_free(struct nw_audit_state *state)
{
    for (size_t i = 0; i < state->owned_count; i++)
        nw_topo_free(state->owned[i]);
    free(state->owned);
    free(state->machines);
}

const char *nw_audit_gpu_model(const struct nw_audit_state *state)
{
    for (size_t i = 0; i < state->machine_count; i++)
        if (state->machines[i].gpu_model[0] != '\0')
            return state->machines[i].gpu_model;
    return NULL;
}

int nw_audit_gpus_per_node(const struct nw_audit_state *state)
{
    int most = state->quote->gpu_count;

    for (size_t i = 0; i < state->machine_count; i++)
        if (state->machines[i].gpu_count > 0)
            return state->machines[i].gpu_count;
    for (size_t i = 0; i < state->machine_count; i++)
        if (state->machines[i].gpu_count_seen > most)
            most = state->machines[i].gpu_count_seen;
    return most;
}

nw_rc nw_audit_name_hosts(const struct nw_audit_state *state, struct nw_audit *audit)
{
    audit->hosts = calloc(state->machine_count + 1, sizeof *audit->hosts);
    if (audit->hosts == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the names of %zu hosts", state->machine_count);
    for (size_t i = 0; i < state->machine_count; i++)
        if (state->machines[i].host[0] != '\0')
            memcpy(audit->hosts[audit->host_count++], state->machines[i].host,
                   sizeof *audit->hosts);
    return NW_OK;
}
