#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/resume.h"

enum { HOSTS = 4, PER_HOST = 2 };

struct sample {
    struct nw_results results;
    struct nw_run *run;
    struct nw_comm comm;
    int host_of_rank[HOSTS * PER_HOST];
    char names[HOSTS][64];
};

static void add_pair(struct nw_run *run, int a, int b)
{
    struct nw_record record;

    nw_record_init(&record);
    snprintf(record.case_name, sizeof record.case_name, "pairs");
    record.peer_a = a;
    record.peer_b = b;
    snprintf(record.host_a, sizeof record.host_a, "node%d", a / PER_HOST + 1);
    snprintf(record.host_b, sizeof record.host_b, "node%d", b / PER_HOST + 1);
    cr_assert_eq(nw_run_add_record(run, &record), NW_OK);
}

/* A run of four hosts, and ranks on the hosts of `here` ("134"). */
static void make(struct sample *sample, const char *here)
{
    *sample = (struct sample){
        .comm = {.host_of_rank = sample->host_of_rank, .host_names = sample->names}};
    sample->run = nw_results_add_run(&sample->results);
    cr_assert_not_null(sample->run);
    sample->run->context.hosts = calloc(HOSTS, sizeof *sample->run->context.hosts);
    sample->run->context.host_count = HOSTS;
    for (int i = 0; i < HOSTS; i++) {
        snprintf(sample->run->context.hosts[i].name, 64, "node%d", i + 1);
        sample->run->context.hosts[i].rank_count = PER_HOST;
    }
    for (; here[sample->comm.host_count] != '\0'; sample->comm.host_count++) {
        snprintf(sample->names[sample->comm.host_count], 64, "node%c",
                 here[sample->comm.host_count]);
        for (int k = 0; k < PER_HOST; k++)
            sample->host_of_rank[sample->comm.rank_count++] = sample->comm.host_count;
    }
}

Test(cli_resume, pairs_of_hosts_that_are_left_keep_the_numbers_of_the_file)
{
    struct sample sample;
    struct nw_cli_resume resume;
    struct nw_findings findings = {0};
    struct nw_context now = {.host_count = 3};
    struct nw_record record;

    make(&sample, "124");
    add_pair(sample.run, 0, 6);
    add_pair(sample.run, 1, 5); /* with node3, which is gone */
    cr_assert_eq(nw_cli_resume_open(sample.run, &sample.comm, "r", &resume), NW_OK);
    cr_assert_eq(resume.done_count, 1);
    cr_expect(resume.done[0].peer_a == 0 && resume.done[0].peer_b == 4);
    nw_record_init(&record);
    record.peer_a = 3;
    record.peer_b = 5;
    nw_cli_resume_number(&resume, &record);
    cr_expect(record.peer_a == 3 && record.peer_b == 7 && record.slowest_rank == -1);
    nw_cli_resume_free(&resume);

    now.hosts = calloc(3, sizeof *now.hosts);
    for (int i = 0; i < 3; i++)
        snprintf(now.hosts[i].name, 64, "%s", sample.names[i]);
    cr_assert_eq(nw_cli_resume_left_out(sample.run, &now, &findings), NW_OK);
    cr_assert_eq(findings.count, 1);
    cr_expect_str_eq(findings.items[0].where, "node3");
    free(now.hosts);
    nw_findings_free(&findings);
    nw_results_free(&sample.results);
}

Test(cli_resume, other_hosts_and_other_numbers_of_ranks_are_refused)
{
    static const struct {
        const char *here;
        int cut;      /* ranks fewer */
        bool strange; /* a record's rank stands on another host */
    } rows[] = {{"125", 0, false}, {"124", 1, false}, {"11", 0, false}, {"124", 0, true}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sample sample;
        struct nw_cli_resume resume;

        make(&sample, rows[i].here);
        sample.comm.rank_count -= rows[i].cut;
        add_pair(sample.run, 0, 6);
        if (rows[i].strange)
            sample.run->records[0].peer_b = 1;
        if (i == 2) /* one host of four ranks */
            sample.host_of_rank[2] = sample.host_of_rank[3] = 0;
        cr_expect_eq(nw_cli_resume_open(sample.run, &sample.comm, "r", &resume), NW_EUSAGE,
                     "row %zu", i);
        nw_results_free(&sample.results);
    }
}
