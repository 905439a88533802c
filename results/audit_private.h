/* Private to results/. The parts of the audit:
 *
 *   audit.c          the table of claims, the whole
 *   audit_machine.c  what the machines are: from topologies, contexts and logs
 *   audit_claims.c   claims about what is there: counts and sizes
 *   audit_claims_gpu.c  the same of GPUs
 *   audit_wire.c     evidence about rates: which records speak, and which decide
 *   audit_reading.c  a collective's time read as wire rates, and its verdict
 *   audit_rate.c     claims about rates: NVLink, network
 *   audit_device.c   claims from the cases on single GPUs and pairs of them
 *   audit_gpu.c      names of GPUs
 *   audit_json.c     JSON
 */
#ifndef NW_RESULTS_AUDIT_PRIVATE_H
#define NW_RESULTS_AUDIT_PRIVATE_H

#include "results/audit.h"
#include "results/audit_gpu.h"

struct nw_machine {
    char host[64];                /* "": unknown */
    char source[256];             /* file, or "run N" */
    const struct nw_topo *topo;   /* NULL: only what the fields below say */
    char gpu_model[128];          /* "": unknown or none */
    bool gpus_differ;             /* further models beside it */
    int gpu_count;                /* -1: unknown */
    int gpu_count_seen;           /* at least: those that took part in a run */
    double gpu_memory_bytes;      /* the least of its GPUs; NAN: unknown */
    int core_count, thread_count; /* 0: unknown */
    double ram_bytes;             /* NAN: unknown */
    bool restricted;              /* cores and memory shown may be a part */
    bool has_io;                  /* devices can be told from absent ones */
    bool others_have_gpus;        /* so a machine without any lacks them */
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

nw_rc nw_audit_collect(const struct nw_audit_input *input, struct nw_audit_state *state);
void nw_audit_collect_free(struct nw_audit_state *state);
/* The name of the GPUs that the evidence comes from; NULL: none named. */
const char *nw_audit_gpu_model(const struct nw_audit_state *state);
/* GPUs per node: as found, else as quoted; 0: unknown. */
int nw_audit_gpus_per_node(const struct nw_audit_state *state);

/* What one machine says to a claim. */
struct nw_opinion {
    nw_audit_verdict verdict; /* NOT_MEASURED: nothing */
    double value;             /* NAN: a text */
    char text[128];           /* as found */
    char reason[300];
    const char *cause, *remedy; /* of SHORT; NULL */
};
typedef void nw_opinion_of(const struct nw_quote *quote, const struct nw_machine *machine,
                           struct nw_opinion *opinion);
bool nw_opinion_is_worse(const struct nw_opinion *a, const struct nw_opinion *b);
/* Every node must be as quoted: the worst machine speaks, machines that know nothing don't. `how`:
 * to measure it. */
nw_rc nw_audit_judge_machines(const struct nw_audit_state *state, struct nw_audit_row *row,
                              nw_opinion_of *opinion_of_machine, const char *how);

#define NW_GIB 1073741824.0
/* Numbers of equal links are compared within rounding of their printed forms. */
#define NW_SAME_RATE 0.97

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
nw_rc nw_judge_pcie_by_copies(const struct nw_audit_state *state, struct nw_audit_row *row,
                              bool *spoken_out);
nw_rc nw_judge_nics(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_network(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_rdma(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_kind(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_cores(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_threads(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_ram(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_disks(const struct nw_audit_state *state, struct nw_audit_row *row);
nw_rc nw_judge_disk_read(const struct nw_audit_state *state, struct nw_audit_row *row);

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

#endif
