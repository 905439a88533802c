/* NCCL as it is installed, through the project's own declarations: with one rank on every machine
 * with a GPU, with several on one GPU (right results and ends; never a time) or on a GPU each.
 * Ranks find each other through a file: no MPI is needed.
 *
 *     test_nccl [--rank R --size N --id-file FILE] [--json FILE] [--only CHECK,CHECK…]
 *
 * Checks: errors collectives features hang inithang; the last two only when they are named, with
 * at least two ranks. Exits 0 in order, 1 not, 77 without GPU or NCCL (with the reason).
 */
#include "tests/gpu/graph.h"
#include "tests/gpu/nccl_collectives.h"

#define HANG_LIMIT_S  2.0
#define ABORT_LIMIT_S 5.0

static void check_collective(struct rank *r, struct buffers *b, const struct collective *c,
                             size_t type, size_t count)
{
    const int bytes = types[type].bytes, number = types[type].type;
    const uint64_t sent = c->sends_all ? count * (uint64_t)r->size : count;
    const uint64_t got = c->root_only && r->rank != 0 ? 0
                         : c->gets_all                ? count * (uint64_t)r->size
                                                      : count;
    char what[96], detail[400], text[128];
    long bad = -1;
    snprintf(what, sizeof what, "%s, %zu of %s", c->name, count, types[type].name);
    if (fill(r, b, sent, number, bytes) != NW_OK) {
        say(r, false, what, nw_last_error()->text);
        return;
    }
    const int code = settle(r, r->comm, c->call(r, b->send, b->recv, count, number), LIMIT_S);
    if (code == -1) {
        say(r, true, what, "this NCCL has not the call");
        return;
    }
    nw_rc rc = code == NW_NCCL_SUCCESS ? wait_work(r, r->comm, LIMIT_S) : NW_ELIB;
    if (rc == NW_OK)
        bad = wrong(r, b, b->recv, c, got, count, number, bytes);
    if (code != NW_NCCL_SUCCESS)
        snprintf(detail, sizeof detail, "%s", code_text(r, code, text));
    else if (bad < 0)
        snprintf(detail, sizeof detail, "%.399s", nw_last_error()->text);
    else
        snprintf(detail, sizeof detail, "%ld wrong of %llu", bad, (unsigned long long)got);
    say(r, bad == 0, what, detail);
}

/* 64 MiB, between marks. Where ranks share a GPU it is said that this is no time. */
static void check_time(struct rank *r, struct buffers *b)
{
    const size_t count = b->bytes / 4;
    double ns;
    char detail[160];
    for (int i = 0; i < 4; i++) {
        if (i == 1 && r->dev->ops->mark_set(r->stream, r->start) != NW_OK)
            break;
        const int code =
            settle(r, r->comm, do_all_reduce(r, b->send, b->recv, count, NW_NCCL_FLOAT32), LIMIT_S);
        if (code != NW_NCCL_SUCCESS) {
            say(r, false, "all_reduce, timed", r->nccl->get_error_string(code));
            return;
        }
    }
    if (r->dev->ops->mark_set(r->stream, r->end) != NW_OK ||
        wait_work(r, r->comm, LIMIT_S) != NW_OK ||
        r->dev->ops->mark_elapsed(r->start, r->end, &ns) != NW_OK) {
        say(r, false, "all_reduce, timed", nw_last_error()->text);
        return;
    }
    snprintf(detail, sizeof detail, "%.4g us for %zu MiB%s", ns / 3 * 1e-3, b->bytes >> 20,
             r->shared      ? " (shared GPU: not a measurement)"
             : r->size == 1 ? " (one rank: a copy, no communication)"
                            : "");
    say(r, true, "all_reduce, timed", detail);
}

static void check_collectives(struct rank *r)
{
    static const size_t counts[] = {1, 4099, 262144};
    const uint64_t bytes = r->dev->simulated ? 4 << 20 : 64 << 20;
    struct buffers b = {0};
    if (buffers_open(
            r, bytes < 4u * 262144u * (unsigned)r->size ? 4u * 262144u * (unsigned)r->size : bytes,
            &b) != NW_OK) {
        say(r, false, "buffers", nw_last_error()->text);
    } else {
        for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
                    check_collective(r, &b, &collectives[c], t, counts[k]);
        check_time(r, &b);
    }
    buffers_close(r, &b);
}

/* ---- what later versions have -------------------------------------------------------------------
 */

#define MIDDLE 65536 /* elements */

/* all_reduce of what is in b->send into b->recv over `comm`, checked. */
static void reduce_over(struct rank *r, struct buffers *b, struct ncclComm *comm, const char *what)
{
    struct rank other = *r; /* the same rank in another communicator of the same ranks */
    char text[128];
    long bad = -1;
    other.comm = comm;
    if (fill(r, b, MIDDLE, NW_NCCL_FLOAT32, 4) == NW_OK) {
        const int code = settle(
            r, comm, do_all_reduce(&other, b->send, b->recv, MIDDLE, NW_NCCL_FLOAT32), LIMIT_S);
        if (code != NW_NCCL_SUCCESS) {
            say(r, false, what, code_text(r, code, text));
            return;
        }
        if (wait_work(r, comm, LIMIT_S) == NW_OK)
            bad = wrong(r, b, b->recv, &collectives[0], MIDDLE, MIDDLE, NW_NCCL_FLOAT32, 4);
    }
    snprintf(text, sizeof text, "%ld wrong of %d", bad, MIDDLE);
    say(r, bad == 0, what, bad < 0 ? nw_last_error()->text : text);
}

static void check_split(struct rank *r, struct buffers *b)
{
    struct ncclComm *all = NULL, *none = NULL;
    char text[128];
    int code;
    if (!r->later.split) {
        say(r, true, "split", "this NCCL has it not (since 2.18)");
        return;
    }
    code = r->later.split(r->comm, 1, r->rank, &all, NULL);
    code = settle(r, r->comm, code, LIMIT_S);
    if (code == NW_NCCL_SUCCESS && all)
        code = settle(r, all, NW_NCCL_IN_PROGRESS, LIMIT_S);
    say(r, code == NW_NCCL_SUCCESS && all, "split", code_text(r, code, text));
    if (all) {
        reduce_over(r, b, all, "all_reduce over the split");
        if (r->later.finalize)
            settle(r, all, r->later.finalize(all), LIMIT_S);
        r->nccl->comm_destroy(all);
    }
    code = settle(r, r->comm, r->later.split(r->comm, -1, 0, &none, NULL), LIMIT_S);
    say(r, code == NW_NCCL_SUCCESS && !none, "split without a colour", code_text(r, code, text));
}

/* Memory of NCCL's own, known to it beforehand, and as a symmetric window. */
static void check_registered(struct rank *r)
{
    struct buffers b = {.bytes = 4 * MIDDLE};
    void *handles[2] = {NULL, NULL}, *windows[2] = {NULL, NULL};
    char text[128];
    int code;
    if (!r->later.mem_alloc || !r->later.add) {
        say(r, true, "registered buffers", "this NCCL has them not (since 2.19)");
        return;
    }
    b.host = malloc(b.bytes);
    code = r->later.mem_alloc(&b.send, b.bytes);
    if (code == NW_NCCL_SUCCESS)
        code = r->later.mem_alloc(&b.recv, b.bytes);
    say(r, b.host && code == NW_NCCL_SUCCESS, "memory of NCCL", code_text(r, code, text));
    if (code == NW_NCCL_SUCCESS && b.host) {
        code = r->later.add(r->comm, b.send, b.bytes, &handles[0]);
        if (code == NW_NCCL_SUCCESS)
            code = r->later.add(r->comm, b.recv, b.bytes, &handles[1]);
        say(r, code == NW_NCCL_SUCCESS, "registered buffers", code_text(r, code, text));
        reduce_over(r, &b, r->comm, "all_reduce in registered buffers");
        for (int i = 0; i < 2; i++)
            if (handles[i])
                r->later.take_away(r->comm, handles[i]);
    }
    if (code == NW_NCCL_SUCCESS && b.host && r->later.window) {
        code =
            settle(r, r->comm, r->later.window(r->comm, b.send, b.bytes, &windows[0], 1), LIMIT_S);
        if (code == NW_NCCL_SUCCESS)
            code = settle(r, r->comm, r->later.window(r->comm, b.recv, b.bytes, &windows[1], 1),
                          LIMIT_S);
        /* Where it cannot have symmetric memory NCCL says success and gives no window. */
        snprintf(text, sizeof text, "%s", r->nccl->get_error_string(code));
        say(r, code == NW_NCCL_SUCCESS, "symmetric windows",
            code == NW_NCCL_SUCCESS && !(windows[0] && windows[1]) ? "none given, which is allowed"
                                                                   : text);
        reduce_over(r, &b, r->comm, "all_reduce in symmetric windows");
        for (int i = 0; i < 2; i++)
            if (windows[i])
                settle(r, r->comm, r->later.window_end(r->comm, windows[i]), LIMIT_S);
    }
    if (b.send)
        r->later.mem_free(b.send);
    if (b.recv)
        r->later.mem_free(b.recv);
    free(b.host);
}

struct capture {
    struct rank *r;
    struct buffers *b;
};

static nw_rc queue_capture(void *user)
{
    struct capture *c = user;
    struct rank *r = c->r;
    const int code = settle(
        r, r->comm, do_all_reduce(r, c->b->send, c->b->recv, MIDDLE, NW_NCCL_FLOAT32), LIMIT_S);
    return code == NW_NCCL_SUCCESS ? NW_OK : nw_nccl_fail(r->nccl, r->comm, code, "all_reduce");
}

static void check_graph(struct rank *r, struct buffers *b)
{
    struct capture capture = {.r = r, .b = b};
    struct graph_api api;
    void *instance = NULL;
    char detail[64];
    long bad = -1;
    nw_rc rc = graph_open(r->dev, &api);
    if (rc == NW_OK)
        rc = fill(r, b, MIDDLE, NW_NCCL_FLOAT32, 4);
    if (rc == NW_OK)
        rc = graph_of(&api, r->handle, queue_capture, &capture, &instance);
    for (int i = 0; rc == NW_OK && i < 3; i++)
        if (api.launch(instance, r->handle) != 0)
            rc = nw_fail(NW_ELIB, "the graph cannot be launched");
    if (rc == NW_OK)
        rc = wait_work(r, r->comm, LIMIT_S);
    if (rc == NW_OK)
        bad = wrong(r, b, b->recv, &collectives[0], MIDDLE, MIDDLE, NW_NCCL_FLOAT32, 4);
    snprintf(detail, sizeof detail, "%ld wrong of %d", bad, MIDDLE);
    say(r, bad == 0, "all_reduce in a graph", bad < 0 ? nw_last_error()->text : detail);
    if (instance)
        api.destroy_instance(instance);
}

/* NCCL's own expectation; of one rank it has none. */
static void check_expectation(struct rank *r, struct buffers *b)
{
    struct nccl_sim_info info = {
        .size = sizeof info, .magic = 0x74685283, .version = 22203, .estimated_us = -1};
    char detail[64], text[128];
    if (!r->later.simulate_end) {
        say(r, true, "NCCL's own expectation", "this NCCL has it not (since 2.22)");
        return;
    }
    int code = r->nccl->group_start();
    if (code == NW_NCCL_SUCCESS)
        do_all_reduce(r, b->send, b->recv, MIDDLE, NW_NCCL_FLOAT32);
    code = settle(r, r->comm, r->later.simulate_end(&info), LIMIT_S);
    snprintf(detail, sizeof detail, "%.4g us", (double)info.estimated_us);
    say(r, code == NW_NCCL_SUCCESS, "NCCL's own expectation",
        code == NW_NCCL_SUCCESS ? detail : code_text(r, code, text));
}

static void check_features(struct rank *r)
{
    struct buffers b = {0};
    if (buffers_open(r, 4 * MIDDLE, &b) != NW_OK) {
        say(r, false, "buffers", nw_last_error()->text);
    } else {
        check_split(r, &b);
        check_registered(r);
        check_graph(r, &b);
        check_expectation(r, &b);
    }
    buffers_close(r, &b);
}

/* ---- bad arguments, on a communicator of this rank alone that blocks ----------------------------
 */

static void check_code(struct rank *r, const char *what, int code, int expected)
{
    char text[128], detail[200];
    snprintf(detail, sizeof detail, "%s, expected %d", code_text(r, code, text), expected);
    say(r, code == expected, what, detail);
}

static void check_errors(struct rank *r)
{
    const struct nw_nccl_api *nccl = r->nccl;
    struct nw_nccl_id id;
    struct ncclComm *comm = NULL, *no = NULL;
    struct buffers b = {0};
    if (buffers_open(r, 4096, &b) != NW_OK || nccl->get_unique_id(&id) != NW_NCCL_SUCCESS ||
        nccl->comm_init_rank(&comm, 1, id, 0) != NW_NCCL_SUCCESS) {
        say(r, false, "a communicator of one rank", nw_last_error()->text);
        buffers_close(r, &b);
        return;
    }
    check_code(r, "no communicator",
               nccl->all_reduce(b.send, b.recv, 1, NW_NCCL_INT32, NW_NCCL_SUM, NULL, r->handle), 4);
    check_code(r, "no such type",
               nccl->all_reduce(b.send, b.recv, 1, 99, NW_NCCL_SUM, comm, r->handle), 4);
    check_code(r, "no such operation",
               nccl->all_reduce(b.send, b.recv, 1, NW_NCCL_INT32, 77, comm, r->handle), 4);
    check_code(r, "no such root",
               nccl->broadcast(b.send, b.recv, 1, NW_NCCL_INT32, 9, comm, r->handle), 4);
    check_code(r, "no such peer", nccl->send(b.send, 1, NW_NCCL_INT32, 9, comm, r->handle), 4);
    check_code(r, "no ranks", nccl->comm_init_rank(&no, 0, id, 0), 4);
    check_code(r, "rank 3 of 2", nccl->comm_init_rank(&no, 2, id, 3), 4);
    check_code(r, "the end of no group", nccl->group_end(), 5);
    /* and nothing of that broke it */
    check_code(r, "still usable",
               nccl->all_reduce(b.send, b.recv, 64, NW_NCCL_INT32, NW_NCCL_SUM, comm, r->handle),
               0);
    say(r, wait_work(r, comm, LIMIT_S) == NW_OK, "still works", "");
    nccl->comm_destroy(comm);
    buffers_close(r, &b);
}

/* ---- hangs --------------------------------------------------------------------------------------
 */

/* The GPU does as it is told afterwards. */
static void check_usable(struct rank *r)
{
    struct buffers b = {0};
    bool good = buffers_open(r, 1 << 20, &b) == NW_OK;
    if (good) {
        good = fill(r, &b, 4096, NW_NCCL_INT32, 4) == NW_OK &&
               r->dev->ops->kernel_copy(r->stream, b.recv, b.send, 4 * 4096) == NW_OK &&
               wrong(r, &b, b.recv, &(struct collective){.expect = expect_mine}, 4096, 4096,
                     NW_NCCL_INT32, 4) == 0;
    }
    say(r, good, "the GPU afterwards", good ? "usable" : nw_last_error()->text);
    buffers_close(r, &b);
}

static void abort_in_time(struct rank *r, const char *what)
{
    char detail[256], text[128];
    const double before = now_s();
    const int code = r->nccl->comm_abort(r->comm);
    const double took = now_s() - before;
    const nw_rc rc = r->dev->ops->wait(r->stream, ABORT_LIMIT_S * 1e9);
    const double all = now_s() - before;
    r->comm = NULL;
    snprintf(detail, sizeof detail, "%s, %.3g s; the stream %s after %.3g s",
             code_text(r, code, text), took, rc == NW_OK ? "empty" : "NOT empty", all);
    say(r, code == NW_NCCL_SUCCESS && rc == NW_OK && all < ABORT_LIMIT_S, what, detail);
    if (r->json)
        fprintf(r->json,
                "{\"check\": \"abort\", \"ranks\": %d, \"rank\": %d, \"what\": \"%s\", "
                "\"abort_s\": %.3f, \"simulated\": %s}\n",
                r->size, r->rank, what, all, r->dev->simulated ? "true" : "false");
}

/* The last rank does not come to the second all_reduce. The others find that out and abort. */
static void check_hang(struct rank *r)
{
    struct buffers b = {0};
    if (!comm_open(r) || buffers_open(r, 4 * MIDDLE, &b) != NW_OK) {
        say(r, false, "buffers", nw_last_error()->text);
        return;
    }
    reduce_over(r, &b, r->comm, "all_reduce before the hang");
    if (r->rank == r->size - 1) {
        pause_ms((int)(HANG_LIMIT_S * 1000) + 1000);
    } else {
        const int code =
            settle(r, r->comm, do_all_reduce(r, b.send, b.recv, MIDDLE, NW_NCCL_FLOAT32), LIMIT_S);
        const nw_rc rc = code == NW_NCCL_SUCCESS ? wait_work(r, r->comm, HANG_LIMIT_S) : NW_ELIB;
        say(r, rc == NW_ETIMEOUT, "all_reduce without the last rank",
            rc == NW_OK ? "it ended all the same" : nw_last_error()->text);
    }
    abort_in_time(r, "abort of a hang");
    check_usable(r);
    buffers_close(r, &b);
}

/* The last rank does not even start NCCL. */
static void check_inithang(struct rank *r)
{
    char text[128];
    if (!r->later.init_config) {
        say(r, true, "start without the last rank", "this NCCL cannot give up (since 2.14)");
        return;
    }
    if (r->rank == r->size - 1) {
        pause_ms((int)(HANG_LIMIT_S * 1000) + 1000);
        return;
    }
    const int code = settle(r, r->comm, init_start(r, &r->comm), HANG_LIMIT_S);
    say(r, code == NW_NCCL_IN_PROGRESS, "start without the last rank", code_text(r, code, text));
    abort_in_time(r, "abort of a start");
    check_usable(r);
}

/* ---- which -------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    void (*run)(struct rank *r);
    bool needs_comm, when_named;
} checks[] = {
    {"errors", check_errors, false, false},    {"collectives", check_collectives, true, false},
    {"features", check_features, true, false}, {"hang", check_hang, false, true},
    {"inithang", check_inithang, false, true},
};

/* Whether `name` is in the comma-separated list. */
static bool is_in(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static void run_checks(struct rank *r, const char *only)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (only ? !is_in(only, checks[i].name) : checks[i].when_named)
            continue;
        if (!checks[i].needs_comm || r->comm || comm_open(r))
            checks[i].run(r);
    }
    comm_close(r);
}

int main(int argc, char **argv)
{
    struct rank r = {.size = 1};
    const char *path = NULL, *only = NULL;
    char why[1024];
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rank") == 0)
            r.rank = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--size") == 0)
            r.size = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--id-file") == 0)
            r.id_file = argv[i + 1];
        else if (strcmp(argv[i], "--json") == 0)
            path = argv[i + 1];
        else if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
    }
    if (r.size < 1 || r.rank < 0 || r.rank >= r.size || (r.size > 1 && !r.id_file)) {
        printf("rank %d of %d; accepted: [--rank R --size N --id-file FILE]\n", r.rank, r.size);
        return 2;
    }
    const int count = nw_dev_count("cuda", why, sizeof why);
    if (count == 0 || rank_open(&r, count) != NW_OK) {
        printf("skipped: %s\n", count == 0 ? why : nw_last_error()->text);
        return 77;
    }
    r.json = path ? fopen(path, "w") : NULL;
    if (path && !r.json) {
        perror(path);
        return 1;
    }
    if (r.rank == 0)
        printf("NCCL %s (%s), %d rank%s%s on %s%s\n", nw_nccl_version_text(r.nccl->version, why),
               r.nccl->path, r.size, r.size == 1 ? "" : "s", r.shared ? " that share it" : "",
               r.dev->name, r.dev->simulated ? " (SIMULATED)" : "");
    run_checks(&r, only);
    if (r.json && fclose(r.json) != 0)
        r.failed++;
    return r.failed ? 1 : 0;
}
