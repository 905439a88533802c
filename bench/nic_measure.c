/* A round's pairs measured at once, in groups of which the slowest counts. */
#include <math.h>
#include <stdlib.h>

#include "bench/agree.h"
#include "bench/nic_work.h"

/* A sample of nw_sampling is at least 0.2 ms; filling and draining the queues takes some tens of us
 * of each, so streams are given so many times as long. */
#define STREAM_LONGER 16

static int group_count(const struct nw_nic_links *links, const struct nw_nic_task *task)
{
    return task->group_of_pair != NULL ? task->group_count : (int)links->round->count;
}

/* A group with a pair that has failed is left out: of its ranks' times nothing is made. */
static nw_rc failure_of(const struct nw_nic_links *links, const struct nw_nic_task *task, int group)
{
    for (size_t pair = 0; pair < links->round->count; pair++)
        if (nw_nic_group_of(task, pair) == group && links->is_out[pair])
            return nw_nic_rc(links, pair);
    return NW_OK;
}

/* Of the groups that work, in their order: a number each, and the ranks that are in them. */
static int number_groups(const struct nw_nic_links *links, const struct nw_nic_task *task,
                         int *number_of_group, int *group_of_rank)
{
    const int groups = group_count(links, task);
    int count = 0;

    for (int rank = 0; rank < links->bench->comm->rank_count; rank++)
        group_of_rank[rank] = -1;
    for (int group = 0; group < groups; group++)
        number_of_group[group] = failure_of(links, task, group) != NW_OK ? -1 : count++;
    for (size_t i = 0; i < 2 * links->round->count; i++) {
        const int group = nw_nic_group_of(task, i / 2);

        if (group >= 0 && number_of_group[group] >= 0)
            group_of_rank[nw_nic_owner(links, i / 2, (int)(i % 2))] = number_of_group[group];
    }
    return count;
}

static nw_rc report(const struct nw_nic_work *work, const struct nw_measured *measured,
                    const int *number_of_group, struct nw_record *records)
{
    const struct nw_nic_links *links = work->links;
    const struct nw_nic_task *task = work->task;

    for (int group = 0; group < group_count(links, task); group++) {
        struct nw_record *record = &records[group];

        record->rc = failure_of(links, task, group);
        if (record->rc != NW_OK)
            continue;
        NW_TRY(
            nw_measured_report(measured, number_of_group[group], links->bench->comm, NAN, record));
        record->calls_per_sample *= work->batch;
        if (task->ping)
            record->algbw_bytes_per_s = NAN;
    }
    return NW_OK;
}

static int compare_rates(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double own_rate(struct nw_nic_work *work, size_t i)
{
    const size_t count =
        work->own_count[i] < NW_NIC_OWN_MOST ? work->own_count[i] : NW_NIC_OWN_MOST;

    qsort(&work->own[i * NW_NIC_OWN_MOST], count, sizeof *work->own, compare_rates);
    return count > 0 ? work->own[i * NW_NIC_OWN_MOST + count / 2] : NAN;
}

/* Collective: of both sides the slower one, where both give. */
static nw_rc share_own_rates(struct nw_nic_work *work)
{
    struct nw_nic_links *links = work->links;

    /* one an end, where all of them were: entry i is not read again after end i */
    for (size_t i = 0; i < links->end_count; i++)
        work->own[i] = own_rate(work, i);
    NW_TRY(nw_nic_tell_values(links, work->own));
    for (size_t pair = 0; pair < links->round->count; pair++) {
        const bool is_in = nw_nic_group_of(work->task, pair) >= 0 && !links->is_out[pair];

        links->own_rates[pair] = is_in ? fmin(links->values[2 * pair], links->values[2 * pair + 1])
                                       : NAN; /* a NAN gives way to the other */
    }
    return NW_OK;
}

static nw_rc measure(struct nw_nic_work *work, int *number_of_group, int *group_of_rank,
                     struct nw_record *records)
{
    struct nw_nic_links *links = work->links;
    const struct nw_nic_task *task = work->task;
    struct nw_measure how = nw_bench_how(links->bench, task->bytes, task->title);
    struct nw_measured measured = {0};
    const int working = number_groups(links, task, number_of_group, group_of_rank);
    nw_rc rc;

    how.group_of_rank = group_of_rank;
    how.group_count = working;
    how.call_deadline_ns *= work->batch * 2;
    if (!task->ping) /* its time is told a message */
        how.rules.least_factor = STREAM_LONGER / (double)work->batch;
    how.margin_ns += 2 * nw_nic_wait_ns(links->bench);
    if (how.rules.fixed_calls > 0)
        how.rules.fixed_calls = (how.rules.fixed_calls + work->batch - 1) / work->batch;
    for (size_t pair = 0; pair < links->round->count; pair++)
        links->own_rates[pair] = NAN;
    if (working > 0) {
        NW_TRY(nw_measure(&how, &work->work, &measured));
        rc = nw_nic_agree(links, work->failures);
        if (rc == NW_OK)
            rc = share_own_rates(work);
        if (rc != NW_OK) {
            nw_measured_free(&measured);
            return rc;
        }
    }
    rc = nw_agree(links->bench->comm, report(work, &measured, number_of_group, records));
    nw_measured_free(&measured);
    return rc;
}

nw_rc nw_nic_measure(struct nw_nic_links *links, const struct nw_nic_task *task,
                     struct nw_record *records)
{
    int *number_of_group = calloc((size_t)group_count(links, task), sizeof *number_of_group);
    int *group_of_rank = calloc((size_t)links->bench->comm->rank_count, sizeof *group_of_rank);
    struct nw_comm *comm = links->bench->comm;
    const bool was_gentle = comm->gentle;
    struct nw_nic_work work;
    nw_rc rc = nw_nic_work_open(&work, links, task);

    if (rc == NW_OK && (number_of_group == NULL || group_of_rank == NULL))
        rc = nw_fail(NW_ENOMEM, "no memory for the groups of %zu NICs", links->round->count);
    rc = nw_agree(comm, rc);
    /* Who only looks on keeps its CPU from nobody, where MPI's are the barriers (NCCL's
     * communicator has the same). It may leave the barrier 70 us late, so not where that would be
     * in the time: two ways at once, and pings, whose answering side is awaited. */
    comm->gentle = task->ways != (NW_NIC_FORTH | NW_NIC_BACK) && !task->ping;
    if (rc == NW_OK)
        rc = measure(&work, number_of_group, group_of_rank, records);
    comm->gentle = was_gentle;
    nw_nic_work_close(&work);
    free(number_of_group);
    free(group_of_rank);
    return rc;
}
