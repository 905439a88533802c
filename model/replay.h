/* Public. A step replayed: the events that predict it, executed by real ranks. Each rank computes
 * for as long as its stage's events say, on one thread, and makes their collectives on others, one
 * a stream, in the same order and after the same waits as the simulation.
 *
 *     NW_TRY(nw_replay_open(comm, &question, &replay));   // collective; question: rank 0's counts
 *     NW_TRY(nw_replay_run(replay, &how, &result));       // collective
 *     nw_replay_result_free(&result);
 *     nw_replay_close(replay);
 *
 * Host memory: computation is a loop of calibrated length, copies to and from the host are waited
 * for, messages are float32 whatever the job's type. In virtual time nothing is waited for: the
 * ranks tell each other their clocks, and each event lasts what it was predicted to.
 */
#ifndef NW_MODEL_REPLAY_H
#define NW_MODEL_REPLAY_H

#include "base/stats.h"
#include "collectives/comm.h"
#include "model/graph.h"
#include "model/model.h"

struct nw_bench_status;

struct nw_replay_question {
    const struct nw_job *job;
    const struct nw_platform *platform;
    const struct nw_layout *layout; /* rank_count: the communicator's */
    double scale; /* × time of computation, × bytes of messages; 0 < scale <= 1 */
};

struct nw_replay_how {
    bool is_virtual;
    int warmup_steps, min_steps, max_steps;
    double rel_interval;            /* enough when the median is known so well */
    double budget_ns;               /* of all steps */
    double margin_ns;               /* of a step's deadline, over 20 times what it should take */
    struct nw_bench_status *status; /* NULL: nobody watches */
};

/* One event of one rank, as it was in the middle step. */
struct nw_replay_time {
    double start_ns, end_ns; /* from the step's begin; NAN: not on this rank */
};

struct nw_replay_result {     /* the same on all ranks, but `times` on rank 0 only */
    struct nw_step predicted; /* the same events simulated */
    struct nw_stats step_ns;  /* of the slowest rank; virtual: one value */
    int step_count;
    bool enough;      /* the interval is as narrow as asked for */
    double skew_ns;   /* median over the steps: slowest less fastest rank */
    int slowest_rank; /* of the middle step */
    struct nw_stage_sums predicted_sums, sums; /* of the slowest rank's stage, of the middle step */
    double unit_ns;   /* of the calibrated loop, slowest rank; virtual: 0 */
    double cpu_share; /* of its computation's time that a rank had its core, the least of all ranks;
                         less than 1: other work ran there; virtual: NAN */
    uint64_t buffer_bytes;  /* of the rank with the most */
    int64_t wrong_elements; /* of the verified step; -1: not verified */
    uint64_t checked_calls;
    struct nw_graph graph; /* owned; with the predicted times */
    struct nw_timing timing;
    int rank_count;
    struct nw_replay_time *times; /* owned: [rank][event of the graph]; NULL: not rank 0 */
};

struct nw_replay;

/* Collective. Rank 0's question is everybody's; its failure too. */
nw_rc nw_replay_open(struct nw_comm *comm, const struct nw_replay_question *question,
                     struct nw_replay **replay_out);
nw_rc nw_replay_run(struct nw_replay *replay, const struct nw_replay_how *how,
                    struct nw_replay_result *result_out);
void nw_replay_result_free(struct nw_replay_result *result);
void nw_replay_close(struct nw_replay *replay); /* accepts NULL */

const char *nw_stream_name(nw_stream stream); /* "gradients" */
/* {"traceEvents": …}: predicted (one process a stage) and replayed (one a rank), one thread a
 * stream; opens in chrome://tracing and Perfetto. Written to `stream` as it comes. */
nw_rc nw_replay_write_trace(FILE *stream, const struct nw_replay_result *result);
nw_rc nw_replay_to_json(const struct nw_replay_result *result, json_t **json_out);

#endif
