/* Private to tests/fake/. The insides of the NCCL double: a communicator is a shared file that its
 * ranks map, with a seat for each; operations run on the CUDA double's streams. */
#ifndef NW_TESTS_FAKE_NCCL_COMM_H
#define NW_TESTS_FAKE_NCCL_COMM_H

#include <stdatomic.h>

#include "tests/fake/fake.h"
#include "tests/fake/fault.h"
#include "tests/fake/nccl_fake.h"

#define FK_MAX_RANKS  128
#define FK_SLOT_BYTES ((size_t)1 << 20)
#define FK_MAIL_BYTES ((size_t)64 << 10)
#define FK_MAX_SCALED 16

/* What a rank says of a call before it takes part. */
struct fk_call {
    int coll, type, op, root;
    uint64_t count;
    int64_t base_ps; /* where its stream is */
    bool movable;    /* it stands at a gate, in step with the others */
    double late_us, link_factor;
};

struct fk_seat {
    atomic_int taken;
    uint64_t host;
    int bus, color, key;
    int64_t host_ps;
    struct fk_call call;
};

struct fk_barrier {
    _Atomic uint32_t arrived, round;
};

/* One direction between two ranks, one message at a time. */
struct fk_mail {
    _Atomic uint64_t send_posted, recv_posted, acknowledged;
    _Atomic uint64_t put, got; /* chunks of all messages */
    uint64_t send_bytes, recv_bytes;
    struct fk_call send_call, recv_call;
    unsigned char data[FK_MAIL_BYTES];
};

struct fk_segment { /* zeroed at birth; then slots, the result, mail for each pair */
    atomic_int rank_count, joined;
    struct fk_barrier on_stream, on_host;
    struct fk_seat seats[FK_MAX_RANKS];
};

struct ncclComm {
    int rank, rank_count;
    struct CUctx_st *context;
    char id[64];
    ncclConfig_t config;
    struct fk_segment *segment;
    size_t segment_bytes;
    void *shm;                         /* FAKE_SHM; NULL: none */
    const struct fk_lane *lane, *wire; /* wire: NULL on one host */
    uint64_t hosts[FK_MAX_RANKS];
    atomic_int ending;              /* threads in ncclCommFinalize: an abort lets them go first */
    atomic_int state, aborted;      /* state: what ncclCommGetAsyncError says */
    bool finalized, revoked, stuck; /* stuck: in its end, until it is aborted */
    atomic_int busy;        /* non-blocking: how many more looks find the last call in progress */
    void **late_out, *late; /* what the last call hands over when it is done */
    char error[256];
    pthread_t init_thread; /* of a non-blocking start */
    bool init_threaded;
    int children;
    _Atomic(ncclComm_t) child; /* being made: an abort ends that, too */
    /* Operations run in the order of their calls, on whatever streams. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    long issued, done;
    long calls[FK_COLL_COUNT], all_calls;
    uint64_t sent[FK_MAX_RANKS], received[FK_MAX_RANKS]; /* messages so far */
    struct {
        bool used;
        ncclDataType_t type;
        unsigned char scalar[8];
    } scaled[FK_MAX_SCALED]; /* ncclRedOpCreatePreMulSum */
};

struct fk_coll_op {
    ncclComm_t comm;
    fk_coll coll;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    long turn;
    struct fk_faults faults;
};

/* nccl_segment.c */
ncclResult_t fk_segment_open(ncclComm_t comm);
void fk_segment_forget(ncclComm_t comm); /* its name */
void fk_segment_close(ncclComm_t comm);
unsigned char *fk_slot(const ncclComm_t comm, int rank); /* rank_count: the result's */
struct fk_mail *fk_mail(const ncclComm_t comm, int from, int to);
/* False: the communicator was aborted meanwhile. */
bool fk_barrier(ncclComm_t comm, struct fk_barrier *barrier);
void fk_pause(void); /* between two looks at what another rank does */

/* nccl_init.c */
ncclComm_t fk_comm_new(int rank_count, int rank, const char *id, struct CUctx_st *context,
                       const ncclConfig_t *config);
void fk_comm_free(ncclComm_t comm);

/* nccl_comm.c */
ncclResult_t fk_nccl_fail(ncclComm_t comm, ncclResult_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
ncclResult_t fk_nccl_usable(ncclComm_t comm); /* ncclSuccess, or why a call is refused */
void fk_nccl_async(ncclComm_t comm, ncclResult_t code, const char *text);
/* The result of a call that succeeded: of a non-blocking communicator it has only begun. */
ncclResult_t fk_nccl_begun(ncclComm_t comm);

/* nccl_coll.c */
ncclResult_t fk_nccl_push_coll(struct fk_coll_op *op, struct CUstream_st *stream);
/* For operations of all kinds. */
void fk_turn_take(ncclComm_t comm, fk_coll coll, long *turn, struct fk_faults *faults);
bool fk_turn_wait(ncclComm_t comm, long turn);
void fk_turn_end(ncclComm_t comm);
bool fk_fault_before(ncclComm_t comm, const struct fk_faults *faults); /* false: never arrives */

/* nccl_data.c: false when aborted */
bool fk_move(const struct fk_coll_op *op);

/* nccl_p2p.c */
struct fk_message {
    bool send;
    int peer;
    void *buffer;
    size_t bytes;
};
ncclResult_t fk_nccl_push_messages(ncclComm_t comm, const struct fk_message *messages, int count,
                                   struct CUstream_st *stream);
double fk_messages_us(ncclComm_t comm, const struct fk_message *messages, int count);

/* nccl_reduce.c */
size_t fk_type_bytes(ncclDataType_t type);
/* to[i] = from[0][i] op from[1][i] …, in this order, each rounded once. */
void fk_reduce(ncclDataType_t type, ncclRedOp_t op, void *to, const void *const *from, int inputs,
               size_t count);
void fk_scale(ncclDataType_t type, void *values, const void *scalar, size_t count);

/* nccl_model.c */
double fk_coll_us(ncclComm_t comm, fk_coll coll, size_t count, size_t type_bytes, bool in_place);
double fk_path_us(ncclComm_t comm, fk_coll coll, double bus_bytes, bool crosses);

#endif
