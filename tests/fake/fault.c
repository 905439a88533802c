#include "tests/fake/fault.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/machine.h"

#define MAX_FAULTS 16

static const char *const kind_names[FK_FAULT_COUNT] = {
#define X(id, name) [id] = name,
    FK_FAULT_MAP(X)
#undef X
};

struct fault {
    fk_fault_kind kind;
    double value;
    bool percent;
    int rank; /* -1: any */
    char what[24], lane[24];
    long first, last;
};
static struct fault faults[MAX_FAULTS];
static int fault_count;
static pthread_once_t faults_once = PTHREAD_ONCE_INIT;

static void bad(const char *text)
{
    fk_die(
        "FAKE_FAULT: \"%s\"; accepted: KIND[=VALUE]:RANK:COLLECTIVE:NTH[@LANE] with KIND one of "
        "error hang inithang async corrupt slow slowlink crash oom, RANK a number or *, "
        "COLLECTIVE a collective, init, alloc, copy, gemm, finalize or *, NTH 5, 5+ or *, LANE of "
        "the machine file",
        text);
}

static double default_value(fk_fault_kind kind, bool *percent)
{
    *percent = kind == FK_FAULT_SLOW || kind == FK_FAULT_CORRUPT;
    return kind == FK_FAULT_SLOW ? 3 : kind == FK_FAULT_CORRUPT ? 50 : 3;
}

static void read_kind(struct fault *fault, const char *text, const char *whole)
{
    const size_t length = strcspn(text, "=");
    int kind = 0;
    while (kind < FK_FAULT_COUNT &&
           (strlen(kind_names[kind]) != length || strncmp(kind_names[kind], text, length)))
        kind++;
    if (kind == FK_FAULT_COUNT)
        bad(whole);
    fault->kind = (fk_fault_kind)kind;
    fault->value = default_value(fault->kind, &fault->percent);
    if (!text[length])
        return;
    char *end;
    fault->value = strtod(text + length + 1, &end);
    fault->percent = strcmp(end, "%") == 0;
    if (end == text + length + 1 || (*end && !fault->percent && strcmp(end, "us") != 0))
        bad(whole);
}

static bool known(const char *what)
{
    for (int i = 0; i < FK_COLL_COUNT; i++)
        if (strcmp(what, fk_coll_names[i]) == 0)
            return true;
    return strcmp(what, "init") == 0 || strcmp(what, "alloc") == 0 || strcmp(what, "copy") == 0 ||
           strcmp(what, "gemm") == 0 || strcmp(what, "finalize") == 0 || strcmp(what, "*") == 0;
}

static void read_fault(const char *whole)
{
    char kind[32], rank[16], nth[24], *end;
    struct fault fault = {.rank = -1};
    if (fault_count == MAX_FAULTS ||
        sscanf(whole, "%31[^:]:%15[^:]:%23[^:]:%23[^@]@%23s", kind, rank, fault.what, nth,
               fault.lane) < 4 ||
        !known(fault.what))
        bad(whole);
    read_kind(&fault, kind, whole);
    if (strcmp(rank, "*") != 0) {
        fault.rank = (int)strtol(rank, &end, 10);
        if (*end || fault.rank < 0)
            bad(whole);
    }
    fault.first = 1;
    fault.last = 0x7fffffff;
    if (strcmp(nth, "*") != 0) {
        fault.first = strtol(nth, &end, 10);
        if (fault.first < 1 || (*end && strcmp(end, "+") != 0))
            bad(whole);
        fault.last = *end ? fault.last : fault.first;
    }
    if (fault.kind == FK_FAULT_INITHANG)
        strcpy(fault.what, "init");
    if (fault.kind == FK_FAULT_OOM && strcmp(fault.what, "*") == 0)
        strcpy(fault.what, "alloc");
    faults[fault_count++] = fault;
}

static void read_faults(void)
{
    const char *list = getenv("FAKE_FAULT");
    while (list && *list) {
        char one[128];
        const size_t length = strcspn(list, ",");
        snprintf(one, sizeof one, "%.*s", (int)length, list);
        read_fault(one);
        list += length + (list[length] == ',');
    }
}

void fk_faults_check(void)
{
    pthread_once(&faults_once, read_faults);
}

int fk_process_rank(void)
{
    static const char *const names[] = {"FAKE_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

static bool matches(const struct fault *fault, const char *what, int rank, long nth, long nth_any)
{
    const bool any = strcmp(fault->what, "*") == 0 && strcmp(what, "init") != 0 &&
                     strcmp(what, "alloc") != 0 && strcmp(what, "copy") != 0 &&
                     strcmp(what, "gemm") != 0 && strcmp(what, "finalize") != 0;
    nth = any ? nth_any : nth;
    if ((!any && strcmp(fault->what, what) != 0) || (fault->rank >= 0 && fault->rank != rank) ||
        nth < fault->first || nth > fault->last)
        return false;
    const struct fk_machine *machine = fk_machine();
    return !fault->lane[0] || strcmp(fault->lane, fk_machine_lane(machine)->name) == 0 ||
           strcmp(fault->lane, fk_machine_wire(machine)->name) == 0;
}

struct fk_faults fk_faults_of(const char *what, int rank, long nth, long nth_any)
{
    struct fk_faults now = {.slow_factor = 1, .link_factor = 1};
    fk_faults_check();
    for (int i = 0; i < fault_count; i++) {
        const struct fault *fault = &faults[i];
        if (!matches(fault, what, rank, nth, nth_any))
            continue;
        now.kinds |= 1u << fault->kind;
        if (fault->kind == FK_FAULT_SLOW && fault->percent)
            now.slow_factor *= 1 + fault->value / 100;
        else if (fault->kind == FK_FAULT_SLOW)
            now.late_us += fault->value;
        else if (fault->kind == FK_FAULT_SLOWLINK)
            now.link_factor *= fault->value;
        else if (fault->kind == FK_FAULT_CORRUPT)
            now.corrupt_at = fault->percent ? fault->value / 100 : fault->value;
    }
    return now;
}
