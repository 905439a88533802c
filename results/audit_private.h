/* Private to results/. The parts of the audit:
 *
 *   audit.c          the whole
 *   audit_table.c    the table of claims: an area, a quote's text, a judge each
 *   audit_machine.c  what the machines are: from topologies, contexts and logs
 *   audit_facts.c    what their topologies' facts say
 *   audit_claims.c   claims about what is there: counts and sizes
 *   audit_claims_gpu.c  the same of GPUs
 *   audit_claims_nic.c  the same of NICs: GPUDirect, places, MTU
 *   audit_software.c  versions, scheduler, shared file system, speed of disks
 *   audit_stress.c   clocks under load
 *   audit_price.c    prices against each other, and what they come to
 *   audit_nvlink.c   NVLink: what the links carry, by facts, product and measurement
 *   audit_nvlink_links.c  how many NVLinks, NVSwitch
 *   audit_nvlink_view.c  NVLink as the topologies show it
 *   audit_wire.c     evidence about rates: which records speak, and which decide
 *   audit_reading.c  a collective's time read as wire rates, and its verdict
 *   audit_rate.c     what rates have in common, the network
 *   audit_tcp.c      whether TCP runs where RDMA is quoted
 *   audit_device.c   claims from the cases on single GPUs and pairs of them
 *   audit_gpu.c      names of GPUs
 *   audit_json.c     JSON
 */
#ifndef NW_RESULTS_AUDIT_PRIVATE_H
#define NW_RESULTS_AUDIT_PRIVATE_H

#include "results/audit.h"
#include "results/audit_gpu.h"
#include "topo/gpu.h"

#define NW_MACHINE_TOPOS 8

struct nw_machine {
    char host[64];                                 /* "": unknown */
    char source[256];                              /* file, or "run N" */
    const struct nw_topo *topos[NW_MACHINE_TOPOS]; /* what was read of it */
    size_t topo_count;                             /* 0: only what the fields below say */
    char gpu_model[128];                           /* "": unknown or none */
    bool gpus_differ;                              /* further models beside it */
    int gpu_count;                                 /* -1: unknown */
    int gpu_count_seen;                            /* at least: those that took part in a run */
    double gpu_memory_bytes;                       /* the least of its GPUs; NAN: unknown */
    int core_count, thread_count;                  /* 0: unknown */
    double ram_bytes;                              /* NAN: unknown */
    bool restricted;                               /* cores and memory shown may be a part */
    char driver[48], cuda[48], nccl[48];           /* versions that a run names; "": unknown */
    double power_limit_w;  /* the least that a load of its GPUs read; NAN: unknown */
    int nvlink;            /* its GPUs copy to each other over NVLink: 1, 0; -1: unknown */
    bool others_have_gpus; /* so a machine without any lacks them */
    bool simulated;
};

struct nw_audit_state {
    const struct nw_quote *quote;
    const struct nw_results *results; /* may be NULL */
    struct nw_machine *machines;
    size_t machine_count;
    struct nw_topo **owned; /* topologies read from contexts */
    size_t owned_count;
    int host_count; /* most hosts in one run, or machines; 0: none */
    struct nw_findings *findings;
};

/* --- what the topologies of a machine say --- */
/* The one that knows most of a kind of device, NULL: none can tell. *complete_out: what it does not
 * show is absent. */
const struct nw_topo *nw_machine_topo(const struct nw_machine *machine, nw_node_kind kind,
                                      bool *complete_out);
/* Of the machine itself: NULL, NAN unknown. */
const char *nw_machine_text(const struct nw_machine *machine, nw_fact_id id);
double nw_machine_number(const struct nw_machine *machine, nw_fact_id id);
/* The least of a fact over the GPUs, NAN: no GPU has it. `gpu_out`: the GPU's name; may be NULL.
 * `known_out`: GPUs that have it; may be NULL. */
double nw_machine_least(const struct nw_machine *machine, nw_fact_id id, const char **gpu_out,
                        int *known_out);
/* The product that one of its GPUs is by all that was read of it, where that is another than its
 * name says, or than the name's words tell (nw_gpu_identify); NULL: none. `why`: "" or the
 * contradiction. */
const struct nw_gpu *nw_machine_product(const struct nw_machine *machine, char why[320]);
/* "550.54.15" against "550.90": -1, 0, 1; what a version leaves out is not compared. */
int nw_version_compare(const char *a, const char *b);
/* Is `word` a whole word of `text`, in any case? */
bool nw_has_word(const char *text, const char *word);

bool nw_nic_does_rdma(const struct nw_topo_node *nic);

/* --- the table --- */
struct nw_opinion;
typedef void nw_opinion_of(const struct nw_quote *quote, const struct nw_machine *machine,
                           struct nw_opinion *opinion);
struct nw_claim {
    const char *area, *key, *claim;
    const char *section, *quote_key, *or_key; /* or_key: "" none */
    nw_audit_unit unit;
    void (*quote)(const struct nw_quote *quote, struct nw_audit_row *row);
    nw_rc (*judge)(const struct nw_audit_state *state, struct nw_audit_row *row);
    nw_opinion_of *opinion; /* where judge is NULL: of each machine, and how to learn it */
    const char *how;
};
extern const struct nw_claim nw_claims[];
extern const size_t nw_claim_count;

/* Price rows and costs. */
nw_rc nw_audit_judge_price(const struct nw_audit_state *state, struct nw_audit *audit);
nw_rc nw_audit_name_hosts(const struct nw_audit_state *state, struct nw_audit *audit);

nw_rc nw_audit_collect(const struct nw_audit_input *input, struct nw_audit_state *state);
void nw_audit_collect_free(struct nw_audit_state *state);
/* The name of the GPUs that the evidence comes from; NULL: none named. */
const char *nw_audit_gpu_model(const struct nw_audit_state *state);
/* GPUs per node: as found, else as quoted; 0: unknown. */
int nw_audit_gpus_per_node(const struct nw_audit_state *state);

/* Nothing known yet: numbers NAN, not measured. */
struct nw_audit_row nw_audit_row_of(const char *area, const char *key, const char *claim,
                                    nw_audit_unit unit, int quote_line);

/* What one machine says to a claim. */
struct nw_opinion {
    nw_audit_verdict verdict; /* NOT_MEASURED: nothing */
    double value;             /* NAN: a text */
    char text[128];           /* as found */
    char reason[340];
    const char *cause, *remedy; /* of SHORT; NULL */
    char cause_text[240];       /* the same in words made here; "": `cause` */
};
bool nw_opinion_is_worse(const struct nw_opinion *a, const struct nw_opinion *b);
/* Every node must be as quoted: the worst machine speaks, machines that know nothing don't. `how`:
 * to measure it. */
nw_rc nw_audit_judge_machines(const struct nw_audit_state *state, struct nw_audit_row *row,
                              nw_opinion_of *opinion_of_machine, const char *how);

#define NW_GIB 1073741824.0
/* Numbers of equal links are compared within rounding of their printed forms. */
#define NW_SAME_RATE 0.97
/* Power limits are set in whole watts; a share of 1 % is rounding. */
#define NW_SAME_POWER 0.99

/* Judges fill the row beyond key, claim and line. */
nw_rc nw_judge_nodes(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_gpu_model(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_gpu_count(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_gpu_memory(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_nvlink(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_pcie(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_memory_rate(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_compute(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_peer_access(const struct nw_audit_state *state, struct nw_audit_row *row);
/* From measured copies; *spoken_out false: there are none, and the row is as it was. `full`: what
 * the GPU's links carry; NAN: unknown. */
nw_rc nw_judge_nvlink_by_pairs(const struct nw_audit_state *state, double full,
                               struct nw_audit_row *row, bool *spoken_out);
/* Does the path of a p2p record have the ceiling of a PCIe link? */
bool nw_copy_is_over_pcie(const struct nw_record *record);
nw_rc nw_judge_pcie_by_copies(const struct nw_audit_state *state, struct nw_audit_row *row,
                              bool *spoken_out);
nw_rc nw_judge_network(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_nvswitch(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_nvlink_count(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_power(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_gpudirect(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_stress(const struct nw_audit_state *state, struct nw_audit_row *row);

nw_opinion_of nw_opinion_nics, nw_opinion_rdma, nw_opinion_kind, nw_opinion_nic_per_gpu,
    nw_opinion_mtu, nw_opinion_cores, nw_opinion_threads, nw_opinion_ram, nw_opinion_disks,
    nw_opinion_disk_read, nw_opinion_disk_write, nw_opinion_disk_iops, nw_opinion_file_system,
    nw_opinion_os, nw_opinion_driver, nw_opinion_cuda, nw_opinion_nccl, nw_opinion_pytorch,
    nw_opinion_scheduler, nw_opinion_ecc;

/* Reason and cause of a row, in printf form; causes may fail for want of memory. */
void nw_audit_reason(struct nw_audit_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- rates --- */
struct nw_wire_target {
    bool between_nodes;
    bool gpu;                /* the claim is about GPUs: runs on host memory only bound it */
    bool rdma;               /* quoted with RDMA */
    bool reduces;            /* NVLS is possible */
    bool may_be_slow_inside; /* no NVLink, or unknown: a node itself may be slower than the network
                              */
    double quoted;           /* bytes/s: per GPU, or per node */
    double ceiling;          /* physical, of the same; NAN: unknown */
    int gpus_per_node;       /* 0: unknown */
};

struct nw_wire_evidence {
    const struct nw_run *run;
    const char *case_name, *collective, *lane, *features;
    const char *host_a, *host_b; /* pairs; else "" */
    int peer_a, peer_b;          /* pairs; else -1 */
    int rank_count, host_count;
    int record_hosts;  /* as the records say; 0: unknown, host_count is by the GPUs per node */
    uint64_t host_set; /* equal: the same hosts */
    bool gpu, simulated, has_interval;
    struct nw_plateau plateau;
    struct nw_audit_reading readings[NW_AUDIT_MAX_READINGS];
    size_t reading_count;
    int best; /* the possible reading that says most; -1: none is possible */
    double
        part; /* share of the node that took part: its reading is held against that of the quote */
    double score; /* best reading over what the quote needs: 1 and more is met */
    nw_audit_verdict verdict;
    char reason[400];
};

/* Every group of records that speaks to the target, judged; the caller frees the array. */
nw_rc nw_wire_gather(const struct nw_audit_state *state, const struct nw_wire_target *target,
                     struct nw_wire_evidence **list_out, size_t *count_out);
/* Is there a record of several ranks that does not tell its hosts? */
bool nw_wire_has_unknown_hosts(const struct nw_audit_state *state);
/* Readings of one evidence and its verdict. `inside`: busbw of the same collective within one
 * node, NAN unknown. */
void nw_wire_judge(const struct nw_wire_target *target, double inside,
                   struct nw_wire_evidence *evidence);
/* The evidence that decides: within one set of hosts the best, over several sets the worst; NULL:
 * none. Runs of one set that contradict each other become findings. */
const struct nw_wire_evidence *nw_wire_decide(const struct nw_wire_evidence *list, size_t count,
                                              struct nw_findings *findings);

/* --- RDMA is quoted: is it TCP that runs? (audit_tcp.c) --- */
typedef enum {
    NW_TCP_SILENT, /* TCP was not measured, or is as fast as what was sold */
    NW_TCP_RUNS,
    NW_TCP_IS_SLOWER, /* so it is not what runs */
    NW_TCP_IS_FASTER, /* so it is not the wire that limits */
} nw_tcp_says;
struct nw_tcp_control {
    nw_tcp_says says;
    double bytes_per_s; /* of TCP, as the evidence is read; NAN: unknown */
    double most; /* so much of it TCP may reach at most: over one interface it was measured */
    char who[200];
    char text[600]; /* with both numbers; "": silent */
    bool simulated;
};
/* `quoted`: bytes/s of the part of a node that took part. */
void nw_tcp_control_of(const struct nw_audit_state *state, const struct nw_wire_evidence *evidence,
                       double quoted, struct nw_tcp_control *control_out);

/* --- what rates have in common (audit_rate.c) --- */
struct nw_rate_cause { /* likely, by the share of what a healthy machine reaches */
    double from, below;
    const char *text, *remedy;
};
nw_rc nw_rate_add_causes_of_share(struct nw_audit_row *row, const struct nw_rate_cause *causes,
                                  size_t count, double share);
nw_rc nw_rate_add_causes(struct nw_audit_row *row, const struct nw_rate_cause *causes, size_t count,
                         const struct nw_wire_evidence *evidence);
void nw_rate_fill(struct nw_audit_row *row, const struct nw_wire_evidence *evidence);
nw_rc nw_rate_short_by_hardware(struct nw_audit_row *row, const char *remedy, const char *text);

/* From here on the time of a copy is that of its bytes (1 ms over Gen3 x16). */
#define NW_LONG_COPY_BYTES (16u << 20)

/* --- NVLink as the topologies show it (audit_nvlink_view.c) --- */
struct nw_nvlink_view {               /* of the weakest GPU of all machines */
    const struct nw_machine *machine; /* NULL: no topology tells */
    char gpu[64];
    int links;               /* active; -1: unknown */
    int inactive;            /* down; 0: none, or unknown */
    double link_bytes_per_s; /* one link, one way; NAN: unknown */
    double bytes_per_s;      /* the GPU's links, one way; 0: it has none */
    int peers, pair_links;   /* GPUs that it has links to, and the most to one of them */
    int switched;            /* its links go to NVSwitches: 1, 0; -1: cannot be told */
};
void nw_nvlink_view(const struct nw_audit_state *state, struct nw_nvlink_view *view_out);
struct nw_nvlink { /* all that is known of the claim */
    struct nw_nvlink_view view;
    struct nw_gpu_nvlink product;
    struct nw_gpu_name name;
    const char *model; /* NULL: unknown */
    bool simulated;    /* the model is that of a pretended machine */
    bool as_quoted;    /* no source names the GPU: links are taken for those of the quoted one */
    bool none;         /* copies between its GPUs take PCIe */
};

struct nw_nvlink nw_nvlink_know(const struct nw_audit_state *state);
/* Who speaks: the machine and its GPU, else the model. */
void nw_nvlink_name_source(const struct nw_nvlink *nvlink, struct nw_audit_row *row);
/* What the product that the machine's GPUs are named as can do. */
struct nw_gpu_nvlink nw_nvlink_product(const char *model, bool driver,
                                       struct nw_gpu_name *name_out);

#endif
