#include "cli/check_rows.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/ceiling.h"
#include "topo/link.h"

enum { VALUE = 240 };

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends ", part". */
static void add(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list list;
    char part[VALUE];

    va_start(list, format);
    vsnprintf(part, sizeof part, format, list);
    va_end(list);
    snprintf(text + used, VALUE - used, "%s%s", used > 0 ? ", " : "", part);
}

static bool sees_devices(const struct nw_topo *topo)
{
    return !(topo->gaps & (NW_TOPO_NO_IO | NW_TOPO_PARTIAL));
}

/* The value that all nodes of a kind have; NAN: unknown, or not all. */
static double common(const struct nw_topo *topo, nw_node_kind kind, nw_fact_id id)
{
    double value = NAN;

    for (size_t i = 0; i < topo->node_count; i++) {
        const double own = topo->nodes[i].kind == kind ? nw_topo_number(topo, (int)i, id) : NAN;

        if (topo->nodes[i].kind != kind)
            continue;
        if (isnan(own) || (!isnan(value) && own != value))
            return NAN;
        value = own;
    }
    return value;
}

/* "8 × A, 2 × B": nodes of a kind, counted by `name_of`. */
static void count_by(const struct nw_topo *topo, nw_node_kind kind,
                     void (*name_of)(const struct nw_topo *topo, int node, char name[160]),
                     char *text)
{
    for (size_t i = 0; i < topo->node_count; i++) {
        char name[160], other[160];
        int count = 0;
        bool first = true;

        if (topo->nodes[i].kind != kind)
            continue;
        name_of(topo, (int)i, name);
        for (size_t j = 0; j < topo->node_count; j++) {
            if (topo->nodes[j].kind != kind)
                continue;
            name_of(topo, (int)j, other);
            if (strcmp(name, other) == 0) {
                first &= j >= i;
                count++;
            }
        }
        if (first && name[0] != '\0')
            add(text, "%d × %s", count, name);
    }
}

/* ---- the parts ---------------------------------------------------------------------------------
 */

static void name_gpu(const struct nw_topo *topo, int node, char name[160])
{
    snprintf(name, 160, "%s", topo->nodes[node].model[0] != '\0' ? topo->nodes[node].model : "GPU");
}

static void of_gpu(const struct nw_check_host *host, char *text)
{
    const struct nw_topo *topo = host->topo;
    const struct nw_topo_node *gpu = nw_topo_nth(topo, NW_NODE_GPU, 0);
    const double power = common(topo, NW_NODE_GPU, NW_FACT_POWER_LIMIT),
                 ecc = common(topo, NW_NODE_GPU, NW_FACT_ECC);
    char bytes[32];

    count_by(topo, NW_NODE_GPU, name_gpu, text);
    if (gpu == NULL) {
        if (sees_devices(topo))
            add(text, "none seen");
        return;
    }
    if (gpu->memory_bytes > 0)
        add(text, "%s", nw_format_bytes(bytes, gpu->memory_bytes));
    if (!isnan(power))
        add(text, "%.0f W", power);
    if (!isnan(ecc))
        add(text, "ECC %s", ecc != 0 ? "on" : "off");
}

/* Would NVLink between GPUs have been seen? */
static bool knows_pairs(const struct nw_topo *topo)
{
    return nw_topo_count(topo, NW_NODE_GPU) > 1 &&
           (topo->stated_count > 0 || !(topo->gaps & NW_TOPO_PARTIAL) ||
            !isnan(common(topo, NW_NODE_GPU, NW_FACT_NVLINK_COUNT)));
}

static void of_nvlink(const struct nw_check_host *host, char *text)
{
    const struct nw_topo *topo = host->topo;
    double low = INFINITY, high = 0;
    bool switched = false, any = false;
    int lanes = 0;
    char a[32], b[32];

    for (size_t i = 0; i < topo->node_count; i++) {
        bool own_switched = false;
        int own_lanes = 0;
        double rate;

        if (topo->nodes[i].kind != NW_NODE_GPU)
            continue;
        rate = nw_ceiling_nvlink(topo, (int)i, &own_lanes, &own_switched);
        any = true;
        low = fmin(low, isnan(rate) ? 0 : rate);
        high = fmax(high, isnan(rate) ? 0 : rate);
        lanes = own_lanes > lanes ? own_lanes : lanes;
        switched |= own_switched;
    }
    if (!any || (topo->gaps & NW_TOPO_NO_NVLINK))
        return;
    if (high <= 0 && lanes > 0) { /* a matrix of topo -m alone: links without a rate */
        add(text, "%d links a GPU, rate unknown", lanes);
        return;
    }
    if (high <= 0) {
        if (knows_pairs(topo))
            add(text, "none between the GPUs");
        return;
    }
    if (low == high)
        add(text, "%d links a GPU, %s GB/s one way", lanes, nw_format_gb_per_s(a, high));
    else
        add(text, "%s to %s GB/s one way a GPU", nw_format_gb_per_s(a, low),
            nw_format_gb_per_s(b, high));
    if (switched)
        add(text, "through NVSwitch");
}

static void name_pcie(const struct nw_topo *topo, int node, char name[160])
{
    const struct nw_topo_node *gpu = &topo->nodes[node];
    const double loaded = nw_topo_number(topo, node, NW_FACT_LINK_LOADED);
    const double most = nw_topo_number(topo, node, NW_FACT_LINK_MAX_GENERATION);
    int generation = 0, lanes = 0;

    name[0] = '\0';
    if (!isnan(loaded)) {
        snprintf(name, 160, "Gen%.0f x%d under load", loaded, gpu->link_lanes);
        return;
    }
    if (!isnan(most)) {
        generation = (int)most;
        lanes = gpu->link_max_lanes;
    } else if (gpu->link_max_bytes_per_s > 0) {
        nw_pcie_from_rate(gpu->link_max_bytes_per_s, &generation, &lanes);
    }
    if (generation > 0 && lanes > 0)
        snprintf(name, 160, "Gen%d x%d at best", generation, lanes);
}

static void of_pcie(const struct nw_check_host *host, char *text)
{
    count_by(host->topo, NW_NODE_GPU, name_pcie, text);
}

static void name_nic(const struct nw_topo *topo, int node, char name[160])
{
    const struct nw_topo_node *nic = &topo->nodes[node];
    char rate[32];

    name[0] = '\0';
    if (nic->port_up == 0)
        snprintf(name, 160, "%s, down", nic->fabric[0] != '\0' ? nic->fabric : "NIC");
    else if (nic->rate_bits_per_s > 0)
        snprintf(name, 160, "%s Gb/s %s", nw_format_sig(rate, nic->rate_bits_per_s / 1e9, 4),
                 nic->fabric[0] != '\0' ? nic->fabric : "NIC");
    else if (nic->fabric[0] != '\0')
        snprintf(name, 160, "%s", nic->fabric);
}

static void of_network(const struct nw_check_host *host, char *text)
{
    char rate[32];

    for (size_t i = 0; i < host->end.address_count; i++) {
        const struct nw_reach_address *address = &host->end.addresses[i];

        if (address->bits_per_s > 0)
            add(text, "%s %s Gb/s MTU %d", address->interface,
                nw_format_sig(rate, address->bits_per_s / 1e9, 4), address->mtu);
        else
            add(text, "%s MTU %d", address->interface, address->mtu);
    }
    if (host->end.port == 0 && host->topo != NULL)
        count_by(host->topo, NW_NODE_NIC, name_nic, text);
}

static bool is_rdma(const struct nw_topo_node *node)
{
    static const char *const fabrics[] = {"infiniband", "roce", "iwarp", "omnipath", "efa", "cxi"};

    for (size_t i = 0; node->kind == NW_NODE_NIC && i < sizeof fabrics / sizeof *fabrics; i++)
        if (strcmp(node->fabric, fabrics[i]) == 0)
            return true;
    return false;
}

static void name_rdma(const struct nw_topo *topo, int node, char name[160])
{
    name[0] = '\0';
    if (is_rdma(&topo->nodes[node]))
        name_nic(topo, node, name);
}

static void of_rdma(const struct nw_check_host *host, char *text)
{
    const struct nw_topo *topo = host->topo;
    const double peermem = nw_topo_number(topo, 0, NW_FACT_PEERMEM),
                 dmabuf = nw_topo_number(topo, 0, NW_FACT_DMABUF);

    count_by(topo, NW_NODE_NIC, name_rdma, text);
    if (text[0] == '\0') {
        if (sees_devices(topo))
            add(text, "none seen");
        return;
    }
    if (peermem == 1 || dmabuf == 1)
        add(text, "GPUDirect by %s", peermem == 1 ? "nvidia_peermem" : "dma-buf");
}

static void of_cpu(const struct nw_check_host *host, char *text)
{
    const struct nw_topo *topo = host->topo;
    char bytes[32];

    if (topo->core_count > 0)
        add(text, "%d core%s", topo->core_count, topo->core_count == 1 ? "" : "s");
    if (topo->package_count > 1)
        add(text, "%d sockets", topo->package_count);
    if (topo->numa_count > 1)
        add(text, "%d NUMA nodes", topo->numa_count);
    if (topo->memory_bytes > 0)
        add(text, "%s of RAM", nw_format_bytes(bytes, topo->memory_bytes));
    if (!isnan(nw_topo_number(topo, 0, NW_FACT_SHM)))
        add(text, "/dev/shm %s",
            nw_format_bytes(bytes, (uint64_t)fmin(nw_topo_number(topo, 0, NW_FACT_SHM), 9e18)));
}

static void name_disk(const struct nw_topo *topo, int node, char name[160])
{
    char bytes[32];

    snprintf(name, 160, "%s%s%s", strncmp(topo->nodes[node].name, "nvme", 4) == 0 ? "NVMe" : "disk",
             topo->nodes[node].memory_bytes > 0 ? " " : "",
             topo->nodes[node].memory_bytes > 0
                 ? nw_format_bytes(bytes, topo->nodes[node].memory_bytes)
                 : "");
}

static void of_storage(const struct nw_check_host *host, char *text)
{
    const struct nw_topo *topo = host->topo;
    const char *path = nw_topo_text(topo, 0, NW_FACT_DATA_PATH),
               *type = nw_topo_text(topo, 0, NW_FACT_DATA_FS),
               *shared = nw_topo_text(topo, 0, NW_FACT_PARALLEL_FS);
    const double read = nw_topo_number(topo, 0, NW_FACT_DATA_READ),
                 write = nw_topo_number(topo, 0, NW_FACT_DATA_WRITE);
    char a[32], b[32];

    count_by(topo, NW_NODE_DISK, name_disk, text);
    if (path != NULL)
        add(text, "%s: %s", path, type != NULL ? type : "file system unknown");
    if (!isnan(read) && !isnan(write))
        add(text, "read %s, write %s GB/s", nw_format_gb_per_s(a, read),
            nw_format_gb_per_s(b, write));
    if (shared != NULL && strcmp(shared, "none") != 0)
        add(text, "%s", shared);
}

static void of_software(const struct nw_check_host *host, char *text)
{
    static const struct {
        nw_fact_id fact;
        const char *title;
    } facts[] = {{NW_FACT_DRIVER, "driver"},   {NW_FACT_CUDA, "CUDA"}, {NW_FACT_NCCL, "NCCL"},
                 {NW_FACT_PYTORCH, "PyTorch"}, {NW_FACT_OFED, ""},     {NW_FACT_KERNEL, "Linux"}};

    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *value = nw_topo_text(host->topo, 0, facts[i].fact);

        if (value != NULL && strcmp(value, "absent") != 0)
            add(text, "%s%s%s", facts[i].title, facts[i].title[0] != '\0' ? " " : "", value);
    }
    if (host->mpi[0] != '\0')
        add(text, "%.*s", (int)strcspn(host->mpi, ",("), host->mpi);
}

static void of_scheduler(const struct nw_check_host *host, char *text)
{
    const char *scheduler = nw_topo_text(host->topo, 0, NW_FACT_SCHEDULER);

    if (scheduler != NULL)
        add(text, "%s", scheduler);
}

static void (*const parts[NW_CHECK_AREA_COUNT])(const struct nw_check_host *host, char *text) = {
    [NW_AREA_GPU] = of_gpu,
    [NW_AREA_NVLINK] = of_nvlink,
    [NW_AREA_PCIE] = of_pcie,
    [NW_AREA_NETWORK] = of_network,
    [NW_AREA_RDMA] = of_rdma,
    [NW_AREA_CPU] = of_cpu,
    [NW_AREA_STORAGE] = of_storage,
    [NW_AREA_SOFTWARE] = of_software,
    [NW_AREA_SCHEDULER] = of_scheduler,
};

/* ---- over all hosts ----------------------------------------------------------------------------
 */

/* One text a host, "" where it was not read. NULL: no memory. */
static char (*all_values(const struct nw_check_gathered *gathered,
                         void (*part)(const struct nw_check_host *, char *)))[VALUE]
{
    char(*values)[VALUE] = calloc(gathered->host_count + 1, sizeof *values);

    for (size_t i = 0; values != NULL && i < gathered->host_count; i++)
        if (gathered->hosts[i].topo != NULL)
            part(&gathered->hosts[i], values[i]);
    return values;
}

/* The host whose value most of those that were read have; ties: the first. -1: none was read. */
static int find_usual(const struct nw_check_gathered *gathered, char (*values)[VALUE],
                      size_t *count_out)
{
    int usual = -1;

    *count_out = 0;
    for (size_t i = 0; i < gathered->host_count; i++) {
        size_t count = 0;

        for (size_t j = 0; j < gathered->host_count && gathered->hosts[i].topo != NULL; j++)
            count += gathered->hosts[j].topo != NULL && strcmp(values[i], values[j]) == 0;
        if (count > *count_out) {
            *count_out = count;
            usual = (int)i;
        }
    }
    return usual;
}

static void name_differing(const struct nw_check_gathered *gathered, char (*values)[VALUE],
                           size_t read, struct nw_check_row *row)
{
    size_t differing = 0;

    for (size_t i = 0; i < gathered->host_count; i++) {
        const size_t used = strlen(row->hosts);

        if (gathered->hosts[i].topo == NULL || strcmp(values[i], row->value) == 0)
            continue;
        if (differing++ < 2)
            snprintf(row->hosts + used, sizeof row->hosts - used, "%s%.20s: %.90s",
                     used > 0 ? "; " : "", gathered->hosts[i].name,
                     values[i][0] != '\0' ? values[i] : "unknown");
    }
    if (differing > 2)
        snprintf(row->hosts, sizeof row->hosts, "%zu of %zu hosts differ", differing, read);
}

static nw_rc compare(const struct nw_check_gathered *gathered, nw_check_area area,
                     struct nw_check_row *row)
{
    char(*values)[VALUE] = all_values(gathered, parts[area]);
    size_t read = 0, most;
    int usual;

    if (values == NULL)
        return nw_fail(NW_ENOMEM, "no memory to compare %zu hosts", gathered->host_count);
    usual = find_usual(gathered, values, &most);
    for (size_t i = 0; i < gathered->host_count; i++)
        read += gathered->hosts[i].topo != NULL;
    if (usual >= 0)
        snprintf(row->value, sizeof row->value, "%s", values[usual]);
    if (read > 1 && most == read && row->value[0] != '\0')
        snprintf(row->hosts, sizeof row->hosts, "all %zu hosts equal", read);
    else if (read > 1 && most < read)
        name_differing(gathered, values, read, row);
    free(values);
    return NW_OK;
}

static nw_check_state state_of(const struct nw_findings *findings, nw_check_area area,
                               const char *value, bool judged)
{
    nw_check_state state = strcmp(value, "none seen") == 0 ? NW_CHECK_NOTHING
                           : value[0] != '\0' && judged    ? NW_CHECK_OK
                                                           : NW_CHECK_NOT_CHECKED;

    for (size_t i = 0; i < findings->count; i++) {
        const struct nw_finding *finding = &findings->items[i];

        if (finding->severity == NW_FINDING_INFO || nw_check_area_of(finding) != area)
            continue;
        if (finding->severity == NW_FINDING_FAIL)
            return NW_CHECK_FAILURE;
        state = NW_CHECK_WARNING;
    }
    return state;
}

/* A link's speed shows under load only; an idle one is not judged. */
static bool is_judged(const struct nw_check_gathered *gathered, nw_check_area area)
{
    for (size_t i = 0; i < gathered->host_count && area == NW_AREA_PCIE; i++) {
        const struct nw_topo *topo = gathered->hosts[i].topo;

        if (topo != NULL && isnan(common(topo, NW_NODE_GPU, NW_FACT_LINK_LOADED)))
            return false;
    }
    return true;
}

nw_rc nw_check_rows(const struct nw_check_gathered *gathered, const struct nw_findings *findings,
                    struct nw_check_row *rows_out)
{
    for (int area = 0; area < NW_CHECK_AREA_COUNT; area++) {
        struct nw_check_row *row = &rows_out[area];

        *row = (struct nw_check_row){.key = nw_check_area_key((nw_check_area)area),
                                     .title = nw_check_area_title((nw_check_area)area)};
        NW_TRY(compare(gathered, (nw_check_area)area, row));
        row->state = state_of(findings, (nw_check_area)area, row->value,
                              is_judged(gathered, (nw_check_area)area));
    }
    return NW_OK;
}

static void gpus_of(const struct nw_check_host *host, char *text)
{
    count_by(host->topo, NW_NODE_GPU, name_gpu, text);
}

nw_rc nw_check_machines(const struct nw_check_gathered *gathered, char *text, size_t size)
{
    char(*values)[VALUE] = all_values(gathered, gpus_of);
    bool seen = false;
    size_t most;
    int usual;

    if (values == NULL)
        return nw_fail(NW_ENOMEM, "no memory to compare %zu hosts", gathered->host_count);
    for (size_t i = 0; i < gathered->host_count; i++)
        seen |= gathered->hosts[i].topo != NULL && sees_devices(gathered->hosts[i].topo);
    usual = find_usual(gathered, values, &most);
    snprintf(text, size, "%.150s",
             usual >= 0 && values[usual][0] != '\0' ? values[usual]
             : seen                                 ? "no GPU seen"
                                                    : "GPUs unknown");
    free(values);
    return NW_OK;
}
