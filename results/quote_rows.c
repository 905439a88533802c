#include "results/quote.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

static const char *const nvlink_ways[] = {"one-way", "bidirectional", NULL};
static const char *const network_kinds[] = {"infiniband", "roce",     "ethernet", "efa",
                                            "cxi",        "omnipath", "iwarp",    NULL};

static const char *const file_systems[] = {"lustre", "gpfs",      "beegfs", "nfs",     "ceph",
                                           "weka",   "glusterfs", "cpfs",   "juicefs", "yrfs",
                                           "panfs",  "daos",      "3fs",    NULL};
static const char *const schedulers[] = {"slurm", "kubernetes", "ray",      "pbs", "lsf",
                                         "sge",   "flux",       "htcondor", NULL};

#define FIELD(member) .offset = offsetof(struct nw_quote, member)
#define TEXT(member)                                                                               \
    .type = NW_QUOTE_TEXT, FIELD(member), .size = sizeof((struct nw_quote *)0)->member, .unit = ""
#define VERSION(member)                                                                            \
    .type = NW_QUOTE_VERSION, FIELD(member), .size = sizeof((struct nw_quote *)0)->member,         \
    .unit = ""
#define YES_NO(member)        .type = NW_QUOTE_YES_NO, FIELD(member), .unit = ""
#define CHOICE(member, names) .type = NW_QUOTE_CHOICE, FIELD(member), .choices = names, .unit = ""
#define COUNT(member, most)                                                                        \
    .type = NW_QUOTE_COUNT, FIELD(member), .min = 1, .max = most, .scale = 1, .unit = ""
#define NUMBER(member, least, most, factor, name)                                                  \
    .type = NW_QUOTE_NUMBER, FIELD(member), .min = least, .max = most, .scale = factor, .unit = name
#define PRICE(member, least)                                                                       \
    .type = NW_QUOTE_NUMBER, FIELD(member), .min = least, .max = 1e12, .scale = 1,                 \
    .unit = "currency"

#define GIB 1073741824.0

/* Reference prices in the examples: quotes on the Chinese market collected in 2026, CNY per
 * GPU-hour: H100 80 GB 80 to 120, A100 40 to 60, H20 30 to 50; by the month about 30 % less. */
const struct nw_quote_row nw_quote_rows[] = {
    {"quote", "vendor", TEXT(vendor), .json = "vendor", .example = "Example Cloud",
     .help = "who quotes"},
    {"quote", "date", TEXT(date), .json = "date", .example = "2026-11-30",
     .help = "date of the quote"},
    {"quote", "note", TEXT(note), .json = "note", .example = "offer 4711, valid for 30 days",
     .help = "anything to remember; shown in the report"},

    {"cluster", "nodes", COUNT(node_count, 100000), .json = "node_count", .example = "2",
     .help = "how many servers"},

    {"gpu", "model", TEXT(gpu_model), .json = "gpu_model", .example = "H100 SXM5 80GB",
     .help = "model with its form: SXM, PCIe and NVL are different products"},
    {"gpu", "count", COUNT(gpu_count, 1024), .json = "gpu_count", .example = "8",
     .help = "GPUs per node"},
    {"gpu", "memory_GiB", NUMBER(gpu_memory_bytes, 0.1, 1e5, GIB, "GiB"),
     .json = "gpu_memory_bytes", .example = "80", .help = "memory of one GPU, as sold"},
    {"gpu", "nvlink_GBps", NUMBER(nvlink_quoted_bytes_per_s, 1, 1e5, 1e9, "GB/s"),
     .json = "nvlink_quoted_bytes_per_s", .example = "900",
     .help = "NVLink of one GPU; nvlink_is must say how it is counted"},
    {"gpu", "nvlink_is", .type = NW_QUOTE_CHOICE, FIELD(nvlink_is), .choices = nvlink_ways,
     .unit = "", .json = "nvlink_is", .example = "bidirectional",
     .help = "NVIDIA's product pages add both directions: 900 there is 450 one way"},
    {"gpu", "pcie_gen", COUNT(pcie_generation, 6), .json = "pcie_generation", .example = "5",
     .help = "PCIe generation of the GPU's slot"},
    {"gpu", "pcie_width", COUNT(pcie_lanes, 16), .json = "pcie_lane_count", .example = "16",
     .help = "PCIe lanes of the GPU's slot"},

    {"gpu", "memory_GBps", NUMBER(memory_bytes_per_s, 1, 1e6, 1e9, "GB/s"),
     .json = "gpu_memory_bytes_per_s", .example = "3350",
     .help = "bandwidth of one GPU's own memory"},
    {"gpu", "bf16_TFLOPS", NUMBER(bf16_flop_per_s, 1, 1e6, 1e12, "TFLOP/s"),
     .json = "gpu_bf16_flop_per_s", .example = "989",
     .help = "dense bf16 rate of one GPU: product pages that say \"with sparsity\" print double"},
    {"gpu", "peer_access", YES_NO(has_peer_access), .json = "has_peer_access", .example = "yes",
     .help = "GPUs reach each other's memory without going through host memory"},

    {"gpu", "nvlink_links", COUNT(nvlink_count, 72), .json = "nvlink_count", .example = "18",
     .help = "NVLinks of one GPU: H100 18, H800 8, A100 12, H100 NVL and PCIe 12 over a bridge"},
    {"gpu", "nvswitch", YES_NO(has_nvswitch), .json = "has_nvswitch", .example = "yes",
     .help = "NVSwitches join every GPU with every other at full rate; bridges between pairs of "
             "cards, and links straight from GPU to GPU, are no NVSwitch"},
    {"gpu", "ecc", YES_NO(has_ecc), .json = "has_ecc", .example = "yes",
     .help = "ECC of the GPU's memory is on"},
    {"gpu", "power_W", NUMBER(power_w, 1, 1e5, 1, "W"), .json = "gpu_power_limit_w",
     .example = "700", .help = "power limit of one GPU: 700 is H100 SXM, 350 H100 PCIe"},
    {"gpu", "stress", YES_NO(has_stress), .json = "has_stress", .example = "yes",
     .help = "all GPUs under full load keep their clocks: no heat, no failing power supply"},
    {"gpu", "stress_minutes", NUMBER(stress_ns, 0.01, 1e5, 60e9, "minutes"), .json = "stress_ns",
     .example = "30", .help = "the same for at least this long"},

    {"network", "nic_count", COUNT(nic_count, 1024), .json = "nic_count", .example = "8",
     .help = "network cards (ports) per node for traffic between nodes"},
    {"network", "nic_gbps", NUMBER(nic_bytes_per_s, 0.001, 1e5, 1e9 / 8, "Gb/s"),
     .json = "nic_bytes_per_s", .example = "400", .help = "rate of one, in gigaBIT per second"},
    {"network", "rdma", YES_NO(has_rdma), .json = "has_rdma", .example = "yes",
     .help = "RDMA between nodes (InfiniBand, RoCE, EFA …)"},
    {"network", "kind", .type = NW_QUOTE_CHOICE, FIELD(network_kind), .choices = network_kinds,
     .unit = "", .json = "network_kind", .example = "infiniband", .help = "kind of network"},
    {"network", "gpudirect", YES_NO(has_gpudirect), .json = "has_gpudirect", .example = "yes",
     .help = "the NICs read and write GPU memory themselves (GPUDirect RDMA)"},
    {"network", "nic_per_gpu", YES_NO(has_nic_per_gpu), .json = "has_nic_per_gpu", .example = "yes",
     .help = "every GPU has a NIC of its own on the same PCIe switch"},
    {"network", "mtu", COUNT(mtu_bytes, 65536), .json = "mtu_bytes", .example = "4096",
     .help = "MTU of the NICs in bytes: InfiniBand and RoCE 4096, Ethernet jumbo frames 9000"},

    {"cpu", "cores", COUNT(core_count, 100000), .json = "core_count", .example = "96",
     .help = "physical cores per node; a vCPU is a hardware thread, usually half a core"},
    {"cpu", "threads", COUNT(thread_count, 100000), .json = "thread_count", .example = "192",
     .help = "hardware threads (vCPUs) per node"},
    {"cpu", "ram_GiB", NUMBER(ram_bytes, 0.1, 1e7, GIB, "GiB"), .json = "ram_bytes",
     .example = "2048", .help = "main memory per node"},

    {"disk", "nvme_count", COUNT(nvme_count, 1024), .json = "nvme_count", .example = "4",
     .help = "local NVMe disks per node"},
    {"disk", "nvme_TB", NUMBER(nvme_bytes, 0.001, 1e5, 1e12, "TB"), .json = "nvme_bytes",
     .example = "3.84", .help = "capacity of one (10^12 bytes)"},
    {"disk", "read_GBps", NUMBER(disk_read_bytes_per_s, 0.001, 1e5, 1e9, "GB/s"),
     .json = "disk_read_bytes_per_s", .example = "6", .help = "sequential read of a node"},
    {"disk", "write_GBps", NUMBER(disk_write_bytes_per_s, 0.001, 1e5, 1e9, "GB/s"),
     .json = "disk_write_bytes_per_s", .example = "3", .help = "sequential write of a node"},
    {"disk", "read_IOPS", NUMBER(disk_read_iops, 1, 1e10, 1, "reads of 4 KiB a second"),
     .json = "disk_read_iops", .example = "800000", .help = "random reads of a node"},
    {"disk", "file_system", CHOICE(file_system, file_systems), .json = "file_system",
     .example = "lustre", .help = "shared file system on every node"},
    {"disk", "mount", TEXT(file_system_mount), .json = "file_system_mount", .example = "/data",
     .help = "where the shared file system is mounted"},

    {"software", "os", TEXT(os), .json = "os", .example = "Ubuntu 22.04",
     .help = "operating system: each word must be in its name or version"},
    {"software", "driver", VERSION(driver), .json = "driver_version", .example = "550.54",
     .help = "NVIDIA driver, at least"},
    {"software", "cuda", VERSION(cuda), .json = "cuda_version", .example = "12.4",
     .help = "CUDA that the driver can run, at least"},
    {"software", "nccl", VERSION(nccl), .json = "nccl_version", .example = "2.21",
     .help = "NCCL, at least"},
    {"software", "pytorch", VERSION(pytorch), .json = "pytorch_version", .example = "2.4",
     .help = "PyTorch that sees the GPUs, at least"},
    {"software", "scheduler", CHOICE(scheduler, schedulers), .json = "scheduler",
     .example = "slurm", .help = "what starts jobs on the nodes"},

    {"price", "currency", TEXT(currency), .json = "currency", .example = "CNY",
     .help = "of all prices; must be said when a price is"},
    {"price", "per_gpu_hour", PRICE(price_per_gpu_hour, 1e-9), .json = "price_per_gpu_hour",
     .example = "100",
     .help = "one GPU for an hour (2026, CNY: H100 80-120, A100 40-60, H20 30-50, L40S 25-40, "
             "RTX 4090 8-15)"},
    {"price", "per_node_hour", PRICE(price_per_node_hour, 1e-9), .json = "price_per_node_hour",
     .example = "800", .help = "one node for an hour"},
    {"price", "per_gpu_month", PRICE(price_per_gpu_month, 1e-9), .json = "price_per_gpu_month",
     .example = "50000", .help = "one GPU for a month (730.5 h)"},
    {"price", "per_node_month", PRICE(price_per_node_month, 1e-9), .json = "price_per_node_month",
     .example = "400000",
     .help = "one node for a month (730.5 h); often some 30 % below the hourly price"},
    {"price", "spot_per_gpu_hour", PRICE(spot_per_gpu_hour, 1e-9), .json = "spot_per_gpu_hour",
     .example = "40", .help = "one GPU for an hour on spot terms: it may be taken back"},
    {"price", "spot_per_node_hour", PRICE(spot_per_node_hour, 1e-9), .json = "spot_per_node_hour",
     .example = "320", .help = "one node for an hour on spot terms"},
    {"price", "spot_interruptions", NUMBER(spot_interruptions_per_month, 0, 1e5, 1, "a month"),
     .json = "spot_interruptions_per_month", .example = "3",
     .help = "how often one spot node is taken back"},
    {"price", "setup", PRICE(setup_price, 0), .json = "setup_price", .example = "5000",
     .help = "once, for each node"},
    {"price", "minimum_days", NUMBER(minimum_rental_ns, 0, 1e5, 86400e9, "days"),
     .json = "minimum_rental_ns", .example = "30", .help = "a node is paid for at least this long"},
    {"price", "network_extra", PRICE(network_extra_per_month, 0), .json = "network_extra_per_month",
     .example = "20000", .help = "switch, optics, cables: the whole cluster, per month"},
    {"price", "storage_extra", PRICE(storage_extra_per_month, 0), .json = "storage_extra_per_month",
     .example = "10000", .help = "shared storage: the whole cluster, per month"},
    {"price", "ops_extra", PRICE(ops_extra_per_month, 0), .json = "ops_extra_per_month",
     .example = "15000", .help = "people: the whole cluster, per month"},
};
const size_t nw_quote_row_count = sizeof nw_quote_rows / sizeof nw_quote_rows[0];

_Static_assert(sizeof nw_quote_rows / sizeof nw_quote_rows[0] <= NW_QUOTE_MAX_KEYS,
               "nw_quote.lines holds a line for every key");

/* "(yes, no)", "[GiB]", "" of a text. */
static void accepted_text(const struct nw_quote_row *row, char *text, size_t size)
{
    char names[200];

    text[0] = '\0';
    if (row->type == NW_QUOTE_CHOICE)
        snprintf(text, size, "  (%s)", nw_join_names(names, sizeof names, row->choices));
    else if (row->type == NW_QUOTE_YES_NO)
        snprintf(text, size, "  (yes, no)");
    else if (row->unit[0] != '\0' && strcmp(row->unit, "currency") != 0)
        snprintf(text, size, "  [%s]", row->unit);
}

nw_rc nw_quote_template(FILE *stream)
{
    const char *section = "";
    char text[512], accepted[240];

    nw_print(stream, "# What the vendor promises. Remove the \"#\" before a key = value line and "
                     "write the offer's figure.\n"
                     "# Leave out what is not promised. The values below are examples, never used "
                     "unless you say so.\n"
                     "# Check: nodeworth quote check FILE    Hold against a machine: nodeworth "
                     "audit --quote FILE\n");
    for (size_t i = 0; i < nw_quote_row_count; i++) {
        const struct nw_quote_row *row = &nw_quote_rows[i];

        if (strcmp(section, row->section) != 0)
            fprintf(stream, "\n[%s]\n", row->section);
        section = row->section;
        accepted_text(row, accepted, sizeof accepted);
        snprintf(text, sizeof text, "%s%s", nw_tr(row->help), accepted);
        nw_print_wrapped(stream, "# ", "# ", text);
        fprintf(stream, "#%s = %s\n", row->key, row->example);
    }
    if (ferror(stream))
        return nw_fail(NW_EIO, "the quote template could not be written");
    return NW_OK;
}

/* Sizes are whole, rates and prices need not be. */
static nw_rc set_number(json_t *json, const char *key, double value)
{
    const size_t length = strlen(key), suffix = strlen("_bytes");

    if (isfinite(value) && length > suffix && strcmp(key + length - suffix, "_bytes") == 0)
        return nw_json_set_u64(json, key, (uint64_t)(value + 0.5));
    return nw_json_set_real(json, key, value);
}

static nw_rc set_json(json_t *json, const struct nw_quote_row *row, const struct nw_quote *quote)
{
    const void *field = (const char *)quote + row->offset;
    int number;

    switch (row->type) {
    case NW_QUOTE_TEXT:
    case NW_QUOTE_VERSION:
        return nw_json_set_text(json, row->json,
                                ((const char *)field)[0] != '\0' ? (const char *)field : NULL);
    case NW_QUOTE_CHOICE:
        return nw_json_set_text(json, row->json, *(const char *const *)field);
    case NW_QUOTE_NUMBER:
        return set_number(json, row->json, *(const double *)field);
    case NW_QUOTE_YES_NO:
        number = *(const int *)field;
        return number >= 0 ? nw_json_set_bool(json, row->json, number == 1) : NW_OK;
    default:
        number = *(const int *)field;
        return number > 0 ? nw_json_set_int(json, row->json, number) : NW_OK;
    }
}

nw_rc nw_quote_to_json(const struct nw_quote *quote, json_t **json_out)
{
    json_t *json = json_object();
    nw_rc rc = NW_OK;

    if (json == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a quote");
    for (size_t i = 0; i < nw_quote_row_count && rc == NW_OK; i++)
        rc = set_json(json, &nw_quote_rows[i], quote);
    if (rc == NW_OK)
        rc =
            nw_json_set_real(json, "nvlink_one_way_bytes_per_s", quote->nvlink_one_way_bytes_per_s);
    if (rc != NW_OK) {
        json_decref(json);
        return rc;
    }
    *json_out = json;
    return NW_OK;
}

int nw_quote_line(const struct nw_quote *quote, const char *section, const char *key)
{
    for (size_t i = 0; i < nw_quote_row_count; i++)
        if (strcmp(nw_quote_rows[i].section, section) == 0 &&
            strcmp(nw_quote_rows[i].key, key) == 0)
            return quote->lines[i];
    return 0;
}

static double per_node(const struct nw_quote *quote, double node, double gpu)
{
    if (isfinite(node))
        return node;
    return quote->gpu_count > 0 ? gpu * quote->gpu_count : NAN;
}

double nw_quote_node_hour_by_hour(const struct nw_quote *quote)
{
    return per_node(quote, quote->price_per_node_hour, quote->price_per_gpu_hour);
}

double nw_quote_node_hour_by_month(const struct nw_quote *quote)
{
    return per_node(quote, quote->price_per_node_month, quote->price_per_gpu_month) /
           NW_HOURS_PER_MONTH;
}

double nw_quote_node_hour_spot(const struct nw_quote *quote)
{
    return per_node(quote, quote->spot_per_node_hour, quote->spot_per_gpu_hour);
}

double nw_quote_node_hour(const struct nw_quote *quote)
{
    const double month = nw_quote_node_hour_by_month(quote);

    return isfinite(month) ? month : nw_quote_node_hour_by_hour(quote);
}

double nw_quote_extra_hour(const struct nw_quote *quote)
{
    const double extras[] = {quote->network_extra_per_month, quote->storage_extra_per_month,
                             quote->ops_extra_per_month};
    double sum = 0;

    for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++)
        if (isfinite(extras[i]))
            sum += extras[i];
    return sum / NW_HOURS_PER_MONTH;
}
