/* Public. Which end (host, rank, NIC) or which pair of ends is worse than its like? Pure: works on
 * pairs with a rate, wherever these come from.
 *
 * Pairs are compared within a class (same collective, size, number of GPUs). An end can do what its
 * second best pair reaches (the best one of few): bad partners do not make it a suspect.
 * Ends are held against the median end, pairs against what the weaker of their two ends can do, so
 * that a slow host does not make suspects of all its pairs, and one slow path is not a slow host.
 * An outlier lies below 75 % of the usual and is one by the modified z-score of the median absolute
 * deviation; where the others agree so closely that the deviation is beyond doubt, below 92 %.
 * Where two clusters stand apart (base/clusters.h) the upper one is the usual, if the lower is the
 * minority. Clusters of pairs of like size are the network's, no single pair is a suspect.
 *
 *     struct nw_fleet fleet = {.end_count = 17, .class_count = 6, .edges = edges, .edge_count = n};
 *     NW_TRY(nw_fleet_score(&fleet, &scores));
 *     nw_fleet_scores_free(&scores);
 */
#ifndef NW_BENCH_FLEET_H
#define NW_BENCH_FLEET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clusters.h"
#include "base/err.h"
#include "base/stats.h"

/* collective of a pair's record that was measured there, then back; others are both ways at once */
#define NW_FLEET_ONE_WAY "one_way"
/* finding: the host in `where` was lost in mid-run */
#define NW_FLEET_HOST_FAILED "host-failed"

#define NW_FLEET_SLOW_SHARE 0.75
#define NW_FLEET_SLOW_Z     (-3.5) /* Iglewicz & Hoaglin's limit for an outlier */
#define NW_FLEET_LOW_SHARE  0.92   /* a node of eight NICs without one of them: 0.875 */
#define NW_FLEET_LOW_Z      (-8)
#define NW_FLEET_LOW_LEAST  8 /* fewer may agree so closely by chance */
/* Readings of one healthy fleet agree no better: a smaller deviation is not believed. */
#define NW_FLEET_LEAST_DEVIATION 0.005 /* of the median */
/* Where an end must be below this share of the usual to be named, that is said. */
#define NW_FLEET_NOISY_SHARE 0.6
/* More slow pairs than this are no suspects among many: the class is divided. */
#define NW_FLEET_DIVIDED_SHARE (1.0 / 3)

typedef enum {
    NW_FLEET_UNKNOWN, /* nothing to compare with */
    NW_FLEET_GOOD,
    NW_FLEET_SLOW,   /* an end: slow with all its partners */
    NW_FLEET_FLAKY,  /* an end: more than half of its pairs are slow or failed */
    NW_FLEET_FAILED, /* a pair: no result; an end: none of its pairs has one */
} nw_fleet_state;

struct nw_fleet_edge {
    int a, b;
    int class;
    double bytes_per_s;        /* NAN: failed */
    double high_bytes_per_s;   /* that it reaches in good moments; NAN: unknown */
    double low_bytes_per_s;    /* that it reaches for certain; 0 or NAN: unknown */
    bool again;                /* measured again alone; the better of both counts */
    double before_bytes_per_s; /* then: in company */
};

/* From the times of calls: the better of the median's interval and the quickest quarter. A path
 * that is slow only most of the time is unsteady, and not named as slow. */
double nw_fleet_high(double bytes_per_s, const struct nw_stats *time_ns);
/* The worse of the interval and the slowest quarter: what others are held against. */
double nw_fleet_low(double bytes_per_s, const struct nw_stats *time_ns);
/* `again`: the pair alone. The better rate counts. One way after the other is another thing than
 * both ways at once, where a message may wait for the other way's: it only says what the path can
 * do. */
void nw_fleet_again(struct nw_fleet_edge *edge, const struct nw_fleet_edge *again, bool one_way);

struct nw_fleet { /* borrowed */
    int end_count, class_count;
    const struct nw_fleet_edge *edges;
    size_t edge_count;
    const bool *lost; /* ends that failed in mid-run; NULL: none */
};

struct nw_fleet_end {
    nw_fleet_state state;
    bool lost;    /* FAILED, whatever its pairs say */
    double share; /* of what the usual end can do, in the class where it is lowest; NAN */
    double z;     /* there; NAN */
    int class;    /* there, or where most of its pairs are bad; -1 */
    size_t pair_count, slow_count, failed_count; /* over all classes */
    size_t class_pair_count, class_bad_count;    /* in `class` */
    double bad_z;                                /* of slow and failed pairs among all ends; NAN */
};

struct nw_fleet_pair_score {     /* of one edge */
    nw_fleet_state state;        /* UNKNOWN, GOOD, SLOW, FAILED */
    double expected_bytes_per_s; /* of the weaker end; NAN */
    double share, z;             /* NAN */
    double usual_share;          /* of the class's median; NAN */
};

struct nw_fleet_class {
    size_t pair_count, failed_count, slow_count;
    double median_bytes_per_s; /* of its pairs; NAN */
    double usual_bytes_per_s;  /* of what its ends can do; NAN */
    bool two_clusters;         /* of pairs */
    struct nw_clusters clusters;
    bool divided;      /* too many slow pairs: none is named */
    bool ends_divided; /* ends: the lower cluster is the larger one */
    struct nw_clusters end_clusters;
    /* An end that reaches less than this share of the usual would be named, the noise of this class
     * being what it is; NAN: fewer than three ends. */
    double detect_share;
};

struct nw_fleet_suspect { /* two ends, over all classes */
    int a, b;
    size_t count, slow_count, failed_count; /* of its edges */
    double share;                           /* lowest; NAN: no result at all */
    int class;                              /* of that, or of the first failure */
    bool explained;                         /* by an end that is itself a suspect */
};

struct nw_fleet_scores { /* owns its lists */
    struct nw_fleet_end *ends;
    struct nw_fleet_pair_score *pairs; /* one an edge */
    struct nw_fleet_class *classes;
    struct nw_fleet_suspect *suspects; /* failed ones first, then the slowest */
    size_t suspect_count;
};

nw_rc nw_fleet_score(const struct nw_fleet *fleet, struct nw_fleet_scores *scores_out);
void nw_fleet_scores_free(struct nw_fleet_scores *scores); /* leaves it empty */

/* A suspect end that alone reaches what is usual was slow in company only: its other pairs, which
 * were not measured again, say nothing about it, and are removed from fleet->edges, which are
 * `edges`. */
nw_rc nw_fleet_drop_cleared(const struct nw_fleet *fleet, struct nw_fleet_edge *edges,
                            size_t *count_out);

bool nw_fleet_is_suspect(const struct nw_fleet_end *end);
/* The best end to test suspects against: none of its pairs bad, nearest to the usual or above it;
 * not `except`. -1: none. */
int nw_fleet_known_good(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores,
                        int except);
/* Marks suspects, and further ends until no bad pair is left among the others: each time the one
 * with the most bad pairs. `out` has room for end_count. */
nw_rc nw_fleet_leave_out(const struct nw_fleet *fleet, const struct nw_fleet_scores *scores,
                         bool *out, size_t *count_out);
const char *nw_fleet_state_name(
    nw_fleet_state state); /* "good" "slow" "flaky" "failed" "unknown" */

#endif
