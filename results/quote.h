/* Public. What a vendor promises: the quote file. INI, strict: an unknown section or key, a value
 * out of range, a key given twice or a line that is cut is an error with file, line, key and what
 * is accepted. docs/quote.md describes it; `nodeworth quote init` writes a template.
 *
 * A quote is a plain value that owns nothing. What was not quoted is 0 (counts), NAN (rates, sizes,
 * prices), "" (texts), NULL (choices) or -1 (yes/no).
 *
 *     struct nw_quote quote;
 *     NW_TRY(nw_quote_read("vendor.ini", &quote));
 *     if (quote.gpu_count > 0) …
 */
#ifndef NW_RESULTS_QUOTE_H
#define NW_RESULTS_QUOTE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

#define NW_QUOTE_MAX_KEYS  80
#define NW_QUOTE_MAX_BYTES (1 << 20)

struct nw_quote {
    char path[256]; /* the file, for messages */
    char vendor[160], date[32], note[200];

    int node_count;

    char gpu_model[128];
    int gpu_count;                     /* per node */
    double gpu_memory_bytes;           /* per GPU */
    double nvlink_quoted_bytes_per_s;  /* per GPU, as written */
    const char *nvlink_is;             /* "one-way" or "bidirectional" */
    double nvlink_one_way_bytes_per_s; /* per GPU, one way: half of what was quoted both ways */
    int pcie_generation, pcie_lanes;   /* per GPU */
    double memory_bytes_per_s;         /* of a GPU's own memory */
    double bf16_flop_per_s;            /* per GPU, dense */
    int has_peer_access;
    int nvlink_count; /* NVLinks of one GPU */
    int has_nvswitch; /* NVSwitches join all GPUs of a node */
    int has_ecc;
    double power_w;   /* power limit of one GPU */
    int has_stress;   /* full load without throttling, for however long */
    double stress_ns; /* the same for this long */

    int nic_count;          /* per node */
    double nic_bytes_per_s; /* per NIC, one way */
    int has_rdma;
    const char *network_kind; /* as nw_topo_node.fabric */
    int has_gpudirect;        /* NICs read and write GPU memory (GPUDirect RDMA) */
    int has_nic_per_gpu;      /* a NIC on the PCIe switch of every GPU */
    int mtu_bytes;

    int core_count, thread_count; /* per node */
    double ram_bytes;             /* per node */

    int nvme_count;               /* per node */
    double nvme_bytes;            /* each */
    double disk_read_bytes_per_s; /* per node, sequential */
    double disk_write_bytes_per_s;
    double disk_read_iops;   /* per node, random reads of 4 KiB */
    const char *file_system; /* shared: a word of nw_quote_file_systems */
    char file_system_mount[128];

    char driver[32], cuda[32], nccl[32], pytorch[32]; /* versions: at least */
    char os[64];
    const char *scheduler;

    char currency[16];
    double price_per_gpu_hour, price_per_node_hour, price_per_gpu_month, price_per_node_month;
    double spot_per_gpu_hour, spot_per_node_hour; /* may be taken back at any time */
    double spot_interruptions_per_month;          /* of one node */
    double setup_price;                           /* once, per node */
    double minimum_rental_ns;                     /* a node is paid for at least this long */
    double network_extra_per_month, storage_extra_per_month,
        ops_extra_per_month; /* for the whole cluster */

    int lines[NW_QUOTE_MAX_KEYS]; /* line of each key of nw_quote_rows; 0: not given */
};

typedef enum {
    NW_QUOTE_TEXT,    /* char array of `size` */
    NW_QUOTE_VERSION, /* the same: numbers with dots between them */
    NW_QUOTE_CHOICE,  /* const char *, the table's own string */
    NW_QUOTE_YES_NO,  /* int */
    NW_QUOTE_COUNT,   /* int */
    NW_QUOTE_NUMBER,  /* double: the file's number × `scale` */
} nw_quote_type;

struct nw_quote_row {
    const char *section, *key;
    nw_quote_type type;
    size_t offset, size;
    double min, max;            /* in the file's unit */
    double scale;               /* to the field's unit */
    const char *const *choices; /* NULL-terminated */
    const char *unit;           /* of the file; "": none */
    const char *json;           /* key in nw_quote_to_json, unit included */
    const char *example;        /* in the template */
    const char *help;
};
extern const struct nw_quote_row nw_quote_rows[];
extern const size_t nw_quote_row_count;

nw_rc nw_quote_read(const char *path, struct nw_quote *quote_out);
/* `what` stands for the file in messages. */
nw_rc nw_quote_parse(const char *data, size_t length, const char *what, struct nw_quote *quote_out);
/* The line that a key was given in; 0: it was not. */
int nw_quote_line(const struct nw_quote *quote, const char *section, const char *key);

/* Every key as a comment with its meaning and an example. */
nw_rc nw_quote_template(FILE *stream);
nw_rc nw_quote_to_json(const struct nw_quote *quote, json_t **json_out);

/* A month has 730.5 hours here (365.25 × 24 / 12). */
#define NW_HOURS_PER_MONTH 730.5
#define NW_HOUR_NS         3.6e12
/* Price of one node for an hour: the monthly price when it was quoted (rented by the month is how
 * training runs), of the node or of its GPUs, else per node-hour, else per GPU-hour × GPUs. NAN:
 * not quoted. */
double nw_quote_node_hour(const struct nw_quote *quote);
/* The same of one way to rent; NAN: not quoted. */
double nw_quote_node_hour_by_hour(const struct nw_quote *quote);
double nw_quote_node_hour_by_month(const struct nw_quote *quote);
double nw_quote_node_hour_spot(const struct nw_quote *quote);
/* Network, storage and operations of the whole cluster for an hour; 0 when none was quoted. */
double nw_quote_extra_hour(const struct nw_quote *quote);

#endif
