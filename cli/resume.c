#include "cli/resume.h"

#include <stdlib.h>
#include <string.h>

#include "bench/fleet.h"

/* Of the run's hosts: the number of its first rank, where ranks stand host by host; -1: no such
 * host. */
static int first_rank(const struct nw_context *context, const char *host, int *count_out)
{
    int first = 0;

    for (int i = 0; i < context->host_count; i++) {
        if (strcmp(context->hosts[i].name, host) == 0) {
            *count_out = context->hosts[i].rank_count;
            return first;
        }
        first += context->hosts[i].rank_count;
    }
    return -1;
}

static bool stands_host_by_host(const struct nw_run *run)
{
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        const char *const hosts[] = {record->host_a, record->host_b};
        const int ranks[] = {record->peer_a, record->peer_b};

        for (int side = 0; side < 2; side++) {
            int count = 0, first;

            if (hosts[side][0] == '\0' || ranks[side] < 0)
                continue;
            first = first_rank(&run->context, hosts[side], &count);
            if (first < 0 || ranks[side] < first || ranks[side] >= first + count)
                return false;
        }
    }
    return true;
}

static nw_rc number_ranks(const struct nw_run *run, const struct nw_comm *comm, const char *path,
                          int *file_of_rank)
{
    int *local = calloc((size_t)comm->host_count + 1, sizeof *local);
    nw_rc rc =
        local != NULL ? NW_OK : nw_fail(NW_ENOMEM, "no memory for %d hosts", comm->host_count);

    for (int rank = 0; rank < comm->rank_count && rc == NW_OK; rank++) {
        const int host = comm->host_of_rank[rank];
        int count = 0;
        const int first = first_rank(&run->context, comm->host_names[host], &count);

        if (first < 0 || local[host] >= count)
            rc = nw_fail(
                NW_EUSAGE,
                "%s: the run to go on with has %d ranks on %s; go on with all or some of its "
                "hosts, each with as many ranks as before, or start without --resume",
                path, first < 0 ? 0 : count, comm->host_names[host]);
        file_of_rank[rank] = first + local[host]++;
    }
    for (int rank = 0; rank < comm->rank_count && rc == NW_OK; rank++) {
        const int host = comm->host_of_rank[rank];
        int count = 0;

        (void)first_rank(&run->context, comm->host_names[host], &count);
        if (local[host] != count)
            rc = nw_fail(NW_EUSAGE, "%s: the run to go on with has %d ranks on %s, this one %d",
                         path, count, comm->host_names[host], local[host]);
    }
    free(local);
    return rc;
}

static int here(const struct nw_cli_resume *resume, int file_rank)
{
    for (int rank = 0; rank < resume->rank_count; rank++)
        if (resume->file_of_rank[rank] == file_rank)
            return rank;
    return -1;
}

/* Everything else counts ranks that are not there any more. */
static nw_rc take_done(const struct nw_run *run, struct nw_cli_resume *resume)
{
    resume->done = calloc(run->record_count + 1, sizeof *resume->done);
    if (resume->done == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu records", run->record_count);
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];
        const int a = here(resume, record->peer_a), b = here(resume, record->peer_b);
        struct nw_record *copy = &resume->done[resume->done_count];

        if (record->peer_a < 0 || record->peer_b < 0 || a < 0 || b < 0)
            continue;
        NW_TRY(nw_record_copy(copy, record));
        resume->done_count++;
        copy->peer_a = a;
        copy->peer_b = b;
    }
    return NW_OK;
}

nw_rc nw_cli_resume_open(const struct nw_run *run, const struct nw_comm *comm, const char *path,
                         struct nw_cli_resume *resume_out)
{
    struct nw_cli_resume resume = {.rank_count = comm->rank_count};
    nw_rc rc;

    if (run->context.hosts == NULL || !stands_host_by_host(run))
        return nw_fail(
            NW_EUSAGE,
            "%s: the ranks of the run to go on with do not stand host by host, so it cannot "
            "be gone on with on some of its hosts",
            path);
    resume.file_of_rank = calloc((size_t)comm->rank_count + 1, sizeof *resume.file_of_rank);
    rc = resume.file_of_rank != NULL
             ? number_ranks(run, comm, path, resume.file_of_rank)
             : nw_fail(NW_ENOMEM, "no memory for the numbers of %d ranks", comm->rank_count);
    if (rc == NW_OK)
        rc = take_done(run, &resume);
    if (rc == NW_OK)
        *resume_out = resume;
    else
        nw_cli_resume_free(&resume);
    return rc;
}

void nw_cli_resume_number(const struct nw_cli_resume *resume, struct nw_record *record)
{
    int *const ranks[] = {&record->peer_a, &record->peer_b, &record->slowest_rank};

    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (*ranks[i] >= 0 && *ranks[i] < resume->rank_count)
            *ranks[i] = resume->file_of_rank[*ranks[i]];
}

static bool has_host(const struct nw_context *context, const char *name)
{
    for (int i = 0; i < context->host_count; i++)
        if (strcmp(context->hosts[i].name, name) == 0)
            return true;
    return false;
}

static bool is_told(const struct nw_findings *findings, const char *host)
{
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->items[i].code, NW_FLEET_HOST_FAILED) == 0 &&
            strcmp(findings->items[i].where, host) == 0)
            return true;
    return false;
}

nw_rc nw_cli_resume_left_out(const struct nw_run *run, const struct nw_context *context,
                             struct nw_findings *findings)
{
    for (int i = 0; i < run->context.host_count; i++) {
        const char *name = run->context.hosts[i].name;

        if (!has_host(context, name) && !is_told(&run->context.findings, name))
            NW_TRY(nw_findings_add(findings, NW_FINDING_FAIL, NW_FLEET_HOST_FAILED, name,
                                   "repair it, then measure all of them anew",
                                   "the run was gone on with without it"));
    }
    return NW_OK;
}

void nw_cli_resume_free(struct nw_cli_resume *resume)
{
    for (size_t i = 0; i < resume->done_count; i++)
        nw_record_free(&resume->done[i]);
    free(resume->done);
    free(resume->file_of_rank);
    *resume = (struct nw_cli_resume){.rank_count = 0};
}
