/* Private to cli/. A run that is gone on with on some of its hosts: the file keeps the numbers of
 * its ranks, and what is measured now is written under these. */
#ifndef NW_CLI_RESUME_H
#define NW_CLI_RESUME_H

#include "collectives/comm.h"
#include "results/results.h"

struct nw_cli_resume { /* owns its lists */
    int *file_of_rank; /* comm's rank_count entries */
    int rank_count;
    struct nw_record
        *done; /* the run's records between hosts that are here, under comm's numbers */
    size_t done_count;
};

/* NW_EUSAGE: a host is none of the run's, has another number of ranks, or the run's ranks do not
 * stand host by host. */
nw_rc nw_cli_resume_open(const struct nw_run *run, const struct nw_comm *comm, const char *path,
                         struct nw_cli_resume *resume_out);
/* From comm's numbers to the file's. */
void nw_cli_resume_number(const struct nw_cli_resume *resume, struct nw_record *record);
/* Findings of the run's hosts that are not among `context`'s, unless the run has told of them. */
nw_rc nw_cli_resume_left_out(const struct nw_run *run, const struct nw_context *context,
                             struct nw_findings *findings);
void nw_cli_resume_free(struct nw_cli_resume *resume);

#endif
