#include "bench/pairs_survive.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collectives/guard.h"

#define CALL_NS   10000000000ull /* for the parents to find each other */
#define LOSS_NS   15000000000ull /* for a host to be silent so long that it is lost */
#define SETTLE_NS 400000000ull   /* other ranks of the same host die, too */
#define ORDER_NS  20000000000ull /* for rank 0 to say how to go on */
#define PAUSE_NS  2000000l

static struct nw_lifeline *lifeline_of(const struct nw_pairs *pairs)
{
    struct nw_bench_status *status = pairs->bench->events->status;

    return status != NULL && status->lifeline.parent != 0 ? &status->lifeline : NULL;
}

static void pause_shortly(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Asks the parent, and waits for it. */
static bool ask_parent(struct nw_lifeline *lifeline)
{
    const uint64_t until_ns = nw_now_ns() + CALL_NS;

    atomic_store(&lifeline->state, NW_LIFELINE_WANTED);
    kill(lifeline->parent, SIGUSR1);
    while (atomic_load(&lifeline->state) == NW_LIFELINE_WANTED && nw_now_ns() < until_ns)
        pause_shortly();
    return atomic_load(&lifeline->state) == NW_LIFELINE_THERE;
}

/* ---- beginning and end -------------------------------------------------------------------------
 */

/* The same answer on all ranks. */
static nw_rc all_agree(struct nw_comm *comm, bool mine, bool *all_out)
{
    bool *answers = calloc((size_t)comm->rank_count, sizeof *answers);
    nw_rc rc;

    if (answers == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the answers of %d ranks", comm->rank_count);
    rc = comm->ops->exchange(comm, &mine, sizeof mine, answers);
    *all_out = rc == NW_OK;
    for (int rank = 0; rank < comm->rank_count; rank++)
        *all_out &= answers[rank];
    free(answers);
    return rc;
}

nw_rc nw_pairs_guard(struct nw_pairs *pairs)
{
    struct nw_bench *bench = pairs->bench;
    struct nw_comm *comm = bench->comm;
    struct nw_lifeline *lifeline = lifeline_of(pairs);
    struct nw_lifeline_call call = {.port = 0};
    bool all;

    if (!pairs->plan.by_host || strcmp(comm->ops->name, "mpi") != 0)
        return NW_OK;
    NW_TRY(all_agree(comm, lifeline != NULL, &all));
    if (!all)
        return NW_OK;
    nw_bench_status_write(bench->events->status, nw_now_ns() + 3 * CALL_NS,
                          "the ranks' parents meeting");
    lifeline->rank = comm->rank;
    if (comm->rank == 0 && ask_parent(lifeline))
        call = lifeline->call;
    NW_TRY(comm->ops->share(comm, &call, sizeof call, 0));
    if (comm->rank != 0 && call.port != 0) {
        lifeline->call = call;
        NW_TRY(all_agree(comm, ask_parent(lifeline), &all));
    } else
        NW_TRY(all_agree(comm, call.port != 0, &all));
    if (!all || nw_comm_guard(comm, &lifeline->lost_count) != NW_OK)
        return NW_OK;
    atomic_store(&lifeline->guarded, 1);
    pairs->lifeline = lifeline;
    return NW_OK;
}

void nw_pairs_unguard(struct nw_pairs *pairs)
{
    if (pairs->lifeline == NULL)
        return;
    atomic_store(&pairs->lifeline->guarded, 0);
    nw_comm_unguard(pairs->bench->comm);
    pairs->lifeline = NULL;
}

/* ---- a loss ------------------------------------------------------------------------------------
 */

static bool wait_for_loss(const struct nw_pairs *pairs)
{
    const uint64_t until_ns = nw_now_ns() + LOSS_NS;

    nw_bench_status_deadline(pairs->bench->events->status, until_ns + ORDER_NS);
    while (!nw_comm_has_loss(pairs->bench->comm) && nw_now_ns() < until_ns)
        pause_shortly();
    return nw_comm_has_loss(pairs->bench->comm);
}

/* Rank 0 writes that down at once: the launcher may end everything. */
static void note_losses(struct nw_pairs *pairs)
{
    const struct nw_comm *comm = pairs->bench->comm;
    const uint32_t count = atomic_load(&pairs->lifeline->lost_count);

    for (; pairs->losses_noted < count; pairs->losses_noted++) {
        const struct nw_lifeline_loss *loss = &pairs->lifeline->lost[pairs->losses_noted];
        const int host =
            loss->rank >= 0 && loss->rank < comm->rank_count ? comm->host_of_rank[loss->rank] : 0;

        if (pairs->lost_hosts[host])
            continue;
        pairs->lost_hosts[host] = true;
        nw_bench_finding(
            pairs->bench, NW_FINDING_FAIL, NW_FLEET_HOST_FAILED, comm->host_names[host],
            "repair it, or leave it out; bench --resume then measures its pairs",
            "it was lost while its pairs were measured: rank %d: %.115s", loss->rank, loss->text);
    }
    atomic_store(&pairs->lifeline->noted, pairs->losses_noted);
}

static void mark_ranks(const struct nw_pairs *pairs, bool *lost)
{
    const struct nw_comm *comm = pairs->bench->comm;

    for (int rank = 0; rank < comm->rank_count; rank++)
        lost[rank] = pairs->lost_hosts[comm->host_of_rank[rank]];
}

/* MPI may still write into what was begun in the old ones: those stay. */
static nw_rc take_new_buffers(struct nw_bench *bench)
{
    bench->send = nw_comm_buffer(bench->comm, bench->send_bytes);
    if (bench->send != NULL)
        bench->recv = nw_comm_buffer(bench->comm, bench->recv_bytes);
    return bench->send != NULL && bench->recv != NULL ? NW_OK : nw_last_error()->rc;
}

static nw_rc go_on(struct nw_pairs *pairs, bool *lost, struct nw_pairs_place *place)
{
    struct nw_bench *bench = pairs->bench;
    struct nw_comm *comm = bench->comm;
    const uint64_t until_ns = nw_now_ns() + SETTLE_NS;

    note_losses(pairs);
    while (comm->rank == 0 && nw_now_ns() < until_ns)
        pause_shortly();
    note_losses(pairs);
    mark_ranks(pairs, lost);
    if (lost[comm->rank] || lost[0])
        return nw_fail(NW_EPEER, "%s was lost", lost[0] ? "rank 0" : "another rank of this host");
    NW_TRY(nw_comm_outlive(comm, (uint32_t)pairs->losses_noted, lost, place, sizeof *place,
                           (double)ORDER_NS));
    for (int rank = 0; rank < comm->rank_count; rank++) /* as rank 0 sees it */
        if (lost[rank])
            pairs->lost_hosts[comm->host_of_rank[rank]] = true;
    bench->round = place->pattern;
    return take_new_buffers(bench);
}

nw_rc nw_pairs_survive(struct nw_pairs *pairs, nw_rc why, struct nw_pairs_place *place)
{
    struct nw_bench *bench = pairs->bench;
    char text[sizeof nw_last_error()->text];
    bool *lost;
    nw_rc rc;

    if (pairs->lifeline == NULL || !nw_bench_is_broken(why))
        return why;
    snprintf(text, sizeof text, "%s", nw_last_error()->text);
    if (!wait_for_loss(pairs))
        return nw_fail(why, "%s", text);
    atomic_store(&pairs->lifeline->survived, 1);
    lost = calloc((size_t)bench->comm->rank_count, sizeof *lost);
    if (lost == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %d ranks", bench->comm->rank_count);
    nw_bench_status_write(bench->events->status, nw_now_ns() + 2 * ORDER_NS,
                          "going on without hosts that were lost");
    rc = go_on(pairs, lost, place);
    free(lost);
    return rc;
}

nw_rc nw_pairs_tell_lost(const struct nw_pairs *pairs)
{
    const struct nw_comm *comm = pairs->bench->comm;
    char names[512] = "";
    size_t length = 0;
    int count = 0;

    for (int host = 0; host < comm->host_count; host++) {
        if (!pairs->lost_hosts[host])
            continue;
        if (length < sizeof names)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%.64s",
                                       count > 0 ? ", " : "", comm->host_names[host]);
        count++;
    }
    return count == 0 ? NW_OK
                      : nw_fail(NW_EPEER,
                                "lost while pairs were measured: %s; the pairs of the other hosts "
                                "are measured, what was to follow is not",
                                names);
}
