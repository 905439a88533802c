#include "cli/watch.h"

#include <stdio.h>
#include <string.h>

#include "cli/supervise.h"

static void describe(const void *shared, char *text, size_t size)
{
    const struct nw_bench_status *status = shared;
    char where[NW_BENCH_STATUS_TEXT];
    uint64_t deadline_ns, records;

    nw_bench_status_read(status, where, &deadline_ns);
    records = atomic_load(&status->records);
    snprintf(text, size, "%s", where[0] != '\0' ? where : "start or end");
    if (records > 0)
        snprintf(text + strlen(text), size - strlen(text), "; %llu records kept",
                 (unsigned long long)records);
}

static uint64_t deadline_ns(const void *shared)
{
    const struct nw_bench_status *status = shared;

    return atomic_load_explicit(&status->deadline_ns, memory_order_relaxed);
}

static struct nw_lifeline *lifeline(void *shared)
{
    return &((struct nw_bench_status *)shared)->lifeline;
}

int nw_cli_watch(int (*work)(void *argument, void *status), void *argument, int argc, char **argv)
{
    const struct nw_supervision supervision = {.shared_bytes = sizeof(struct nw_bench_status),
                                               .work = work,
                                               .argument = argument,
                                               .describe = describe,
                                               .deadline_ns = deadline_ns,
                                               .lifeline = lifeline};

    return nw_supervise(&supervision, argc, argv);
}
