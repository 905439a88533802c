/* Public. A finding: something a person must know, with what to do about it. Warnings of a record
 * and results of a check are findings. The list owns its items and their texts.
 *
 *     nw_findings_add(&list, NW_FINDING_WARN, "curve-falls", "all_reduce", "use pieces of 8 MiB",
 *                     "busbw falls from %s GB/s at 16 MiB to %s at 64 MiB", a, b);
 *     nw_findings_effect(&list, 3e9, "large messages lose %s of %s GB/s", lost, a);
 */
#ifndef NW_BASE_FINDING_H
#define NW_BASE_FINDING_H

#include <stddef.h>

#include "base/err.h"

typedef enum { NW_FINDING_INFO, NW_FINDING_WARN, NW_FINDING_FAIL } nw_severity;

struct nw_finding {
    nw_severity severity;
    char *code;              /* stable key: "curve-falls" */
    char *where;             /* "node2 rank 3", "log.txt:14", "all_reduce" */
    char *text;              /* one sentence */
    char *remedy;            /* what to do; NULL: nothing known */
    char *effect;            /* why it matters, in GB/s where that can be said; NULL: not said */
    double lost_bytes_per_s; /* what the path loses, one way; NAN: unknown */
    double step_ns;          /* what a step of the job given loses; NAN: no job, or unknown */
};

struct nw_findings {
    struct nw_finding *items;
    size_t count, capacity;
};

nw_rc nw_findings_add(struct nw_findings *list, nw_severity severity, const char *code,
                      const char *where, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* What the last finding of the list costs. `effect` is printf form. */
nw_rc nw_findings_effect(struct nw_findings *list, double lost_bytes_per_s, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
nw_rc nw_findings_copy_one(struct nw_findings *to, const struct nw_finding *from); /* appends */
nw_rc nw_findings_copy(struct nw_findings *to, const struct nw_findings *from);    /* appends */
void nw_findings_free(struct nw_findings *list);    /* leaves an empty list */
const char *nw_severity_name(nw_severity severity); /* "info" "warning" "failure" */

#endif
