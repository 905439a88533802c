/* Telling findings, and joining those that say the same of several devices and hosts. */
#include "topo/preflight_run.h"

#include <stdarg.h>
#include <stdlib.h>

nw_rc nw_tell(struct nw_preflight_run *run, size_t host, int node, nw_severity severity,
              const char *code, const char *remedy, const char *format, ...)
{
    char *text;
    va_list arguments;
    nw_rc rc;

    if (run->told.count == run->place_capacity) {
        const size_t capacity = run->place_capacity > 0 ? 2 * run->place_capacity : 32;
        struct nw_preflight_place *places = realloc(run->places, capacity * sizeof *places);

        if (places == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for %zu findings", capacity);
        run->places = places;
        run->place_capacity = capacity;
    }
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return nw_fail(NW_ENOMEM, "out of memory for a finding");
    rc = nw_findings_add(&run->told, severity, code, "", remedy, "%s", text);
    free(text);
    NW_TRY(rc);
    run->places[run->told.count - 1] = (struct nw_preflight_place){host, node};
    return NW_OK;
}

nw_rc nw_tell_where(struct nw_preflight_run *run, size_t host, const char *where)
{
    const struct nw_topo *topo = nw_run_host(run, host);
    struct nw_finding *last = &run->told.items[run->told.count - 1];
    char *copy;

    if (strcmp(where, topo->host) == 0 || strcmp(where, topo->source) == 0)
        return NW_OK;
    copy = strdup(where);
    if (copy == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for a finding");
    free(last->where);
    last->where = copy;
    return NW_OK;
}

void nw_gap(struct nw_preflight_run *run, size_t host, const char *what)
{
    const size_t length = strlen(run->gaps[host]);

    if (strstr(run->gaps[host], what) == NULL)
        snprintf(run->gaps[host] + length, sizeof run->gaps[host] - length, "%s%s",
                 length > 0 ? "; " : "", what);
}

int nw_next(const struct nw_topo *topo, nw_node_kind kind, int after)
{
    for (size_t i = (size_t)(after + 1); i < topo->node_count; i++)
        if (topo->nodes[i].kind == kind)
            return (int)i;
    return -1;
}

int nw_count_known(const struct nw_topo *topo, nw_node_kind kind, nw_fact_id id)
{
    int count = 0;

    for (int i = -1; (i = nw_next(topo, kind, i)) >= 0;)
        count += nw_topo_fact(topo, i, id) != NULL;
    return count;
}

bool nw_is_rdma(const struct nw_topo_node *nic)
{
    static const char *const fabrics[] = {"infiniband", "roce", "efa", "cxi", "omnipath"};

    for (size_t i = 0; i < sizeof fabrics / sizeof *fabrics; i++)
        if (strcmp(nic->fabric, fabrics[i]) == 0)
            return true;
    return false;
}

int nw_count_rdma(const struct nw_topo *topo)
{
    int count = 0;

    for (int i = -1; (i = nw_next(topo, NW_NODE_NIC, i)) >= 0;)
        count += nw_is_rdma(&topo->nodes[i]) && topo->nodes[i].port_up != 0;
    return count;
}

bool nw_is_alike(const struct nw_topo_node *a, const struct nw_topo_node *b)
{
    return a->kind == b->kind && strcmp(a->model, b->model) == 0;
}

bool nw_is_consumer(const struct nw_topo_node *gpu)
{
    static const char *const words[] = {"GeForce", "TITAN", "Quadro", "RTX"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(gpu->model, words[i]) != NULL)
            return true;
    return false;
}

bool nw_is_grace(const struct nw_topo *topo)
{
    static const char *const words[] = {"GB200", "GB300", "GH200", "Grace"};

    for (size_t i = 0; i < topo->node_count; i++) {
        if (nw_topo_fact(topo, (int)i, NW_FACT_GPU_NUMA_ID) != NULL)
            return true;
        for (size_t word = 0; word < sizeof words / sizeof *words; word++)
            if (topo->nodes[i].kind != NW_NODE_NIC &&
                strstr(topo->nodes[i].model, words[word]) != NULL)
                return true;
    }
    return false;
}

bool nw_is_virtual(const struct nw_topo *topo)
{
    const char *hypervisor = nw_topo_text(topo, 0, NW_FACT_VIRTUAL);

    return hypervisor != NULL && strcmp(hypervisor, "none") != 0;
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

double nw_median(double *values, size_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* --- joining ----------------------------------------------------------------------------------
 */

static bool same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static bool same_finding(const struct nw_finding *a, const struct nw_finding *b)
{
    return a->severity == b->severity && strcmp(a->code, b->code) == 0 &&
           strcmp(a->text, b->text) == 0 && strcmp(a->where, b->where) == 0 &&
           same_text(a->effect, b->effect);
}

const char *nw_host_name(const struct nw_preflight_run *run, size_t host, char text[96])
{
    if (host == NW_ALL_HOSTS)
        snprintf(text, 96, "all hosts");
    else if (nw_run_host(run, host)->host[0] != '\0')
        snprintf(text, 96, "%s", nw_run_host(run, host)->host);
    else if (run->input->host_count > 1)
        snprintf(text, 96, "host %zu", host);
    else
        snprintf(text, 96, "this machine");
    return text;
}

/* Appends ", name" while it fits; counts what does not. */
struct list {
    char text[NW_NAMES_MAX];
    int more;
};

static void list_add(struct list *list, const char *name)
{
    const size_t length = strlen(list->text);

    if (length + strlen(name) + 3 > sizeof list->text - 24)
        list->more++;
    else
        snprintf(list->text + length, sizeof list->text - length, "%s%s", length > 0 ? ", " : "",
                 name);
}

static const char *list_end(struct list *list)
{
    const size_t length = strlen(list->text);

    if (list->more > 0)
        snprintf(list->text + length, sizeof list->text - length, " and %d more", list->more);
    return list->text;
}

/* "node1 gpu0, gpu3": the places of one host among those that say what `first` says. */
static void name_devices(const struct nw_preflight_run *run, const bool *same, size_t host,
                         char *text, size_t size)
{
    struct list devices = {.more = 0};
    char name[96];

    for (size_t i = 0; i < run->told.count; i++)
        if (same[i] && run->places[i].host == host && run->places[i].node > 0)
            list_add(&devices, nw_run_host(run, host)->nodes[run->places[i].node].name);
    nw_host_name(run, host, name);
    snprintf(text, size, "%s%s%s", name, devices.text[0] != '\0' ? " " : "", list_end(&devices));
}

static void name_places(const struct nw_preflight_run *run, const bool *same, size_t first,
                        struct list *places)
{
    size_t done = NW_ALL_HOSTS;

    if (run->places[first].host == NW_ALL_HOSTS || run->told.items[first].where[0] != '\0') {
        list_add(places, run->places[first].host == NW_ALL_HOSTS ? "all hosts"
                                                                 : run->told.items[first].where);
        return;
    }
    for (size_t i = first; i < run->told.count; i++) {
        char text[NW_NAMES_MAX + 128];

        if (!same[i] || run->places[i].host == done)
            continue;
        done = run->places[i].host; /* a rule goes host by host */
        name_devices(run, same, done, text, sizeof text);
        list_add(places, text);
    }
}

static nw_rc join_from(struct nw_preflight_run *run, size_t first, bool *taken, bool *same,
                       struct nw_findings *findings)
{
    const struct nw_finding *finding = &run->told.items[first];
    double lost = finding->lost_bytes_per_s;
    struct list places = {.more = 0};

    for (size_t i = 0; i < run->told.count; i++) {
        same[i] = !taken[i] && same_finding(finding, &run->told.items[i]);
        taken[i] |= same[i];
        if (same[i])
            lost = fmax(lost, run->told.items[i].lost_bytes_per_s);
    }
    name_places(run, same, first, &places);
    NW_TRY(nw_findings_add(findings, finding->severity, finding->code, list_end(&places),
                           finding->remedy, "%s", finding->text));
    if (finding->effect != NULL)
        NW_TRY(nw_findings_effect(findings, lost, "%s", finding->effect));
    return NW_OK;
}

nw_rc nw_preflight_join(struct nw_preflight_run *run, nw_severity severity,
                        struct nw_findings *findings)
{
    bool *marks = calloc(2 * run->told.count + 1, sizeof *marks);
    nw_rc rc = NW_OK;

    if (marks == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for %zu findings", run->told.count);
    for (size_t i = 0; i < run->told.count && rc == NW_OK; i++)
        if (!marks[i] && run->told.items[i].severity == severity)
            rc = join_from(run, i, marks, marks + run->told.count, findings);
    free(marks);
    return rc;
}
