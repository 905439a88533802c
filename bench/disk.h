/* Public. A short measurement of the storage below a directory: sequential write and read, random
 * reads and writes of 4 KiB. fio does it where it is installed, else a loop of our own; both go
 * around the page cache where the file system allows it.
 *
 * Bounded: in time (`limit_s`), in bytes written (`max_bytes`, and never more than 5 % of the free
 * space). Nothing is left behind: the file has no name from the moment it is open (or, where the
 * file system cannot do that, a process of its own removes it when this one ends in whatever way).
 * What is written does not compress, what is read is compared with it.
 *
 *     struct nw_disk_result result;
 *     NW_TRY(nw_disk_measure(&(struct nw_disk_wish){.path = "/data"}, &result));
 *     rc = nw_disk_facts(topo, &result);
 *     nw_disk_free(&result);
 */
#ifndef NW_BENCH_DISK_H
#define NW_BENCH_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/finding.h"
#include "base/stats.h"
#include "topo/mounts.h"
#include "topo/topo.h"

/* X(enumerator, fact, title) in the order of measuring */
#define NW_DISK_RATE_MAP(X)                                                                        \
    X(NW_DISK_WRITE, NW_FACT_DATA_WRITE, "write")                                                  \
    X(NW_DISK_READ, NW_FACT_DATA_READ, "read")                                                     \
    X(NW_DISK_READ_IOPS, NW_FACT_DATA_READ_IOPS, "random read")                                    \
    X(NW_DISK_WRITE_IOPS, NW_FACT_DATA_WRITE_IOPS, "random write")

typedef enum {
#define X(rate, fact, title) rate,
    NW_DISK_RATE_MAP(X)
#undef X
        NW_DISK_RATE_COUNT
} nw_disk_rate_id;

typedef enum { NW_DISK_ANY, NW_DISK_OWN, NW_DISK_FIO } nw_disk_tool;

struct nw_disk_calls { /* what tests put in the system's place; NULL members: the system's */
    ssize_t (*read)(int fd, void *data, size_t length, off_t at);
    ssize_t (*write)(int fd, const void *data, size_t length, off_t at);
    int (*unlink)(const char *path);
    bool no_unnamed, no_direct; /* as on a file system without O_TMPFILE, without O_DIRECT */
};

struct nw_disk_wish {
    const char *path;   /* a directory */
    double limit_s;     /* in all; 0: 6 s; at least 0.5 */
    uint64_t max_bytes; /* written in all; 0: 1 GiB */
    int threads;        /* that read and write at the same time; 0: 8, and 16 to 64 for 4 KiB */
    double stop_rel;    /* half width of the median's interval that is enough; 0: 3 % */
    nw_disk_tool tool;
    const char *fio; /* NULL: "fio" of PATH */
    const struct nw_disk_calls *calls;
};

struct nw_disk_result {
    struct nw_stats rates[NW_DISK_RATE_COUNT]; /* bytes/s or operations/s; count 0: not measured */
    bool steady[NW_DISK_RATE_COUNT];           /* the interval became as narrow as wanted */
    char tool[32];                             /* "own loop", "fio-3.33" */
    bool direct;                               /* around the page cache */
    int threads, random_threads;
    uint64_t file_bytes, written_bytes, free_bytes; /* free: before */
    double seconds;
    struct nw_place place;
    struct nw_findings findings; /* errors, wrong data, no answer */
};

/* NW_EUSAGE: the directory cannot be measured, and why. NW_ENODEV: NW_DISK_FIO and no fio. A disk
 * that fails or hangs is NW_OK with a finding. */
nw_rc nw_disk_measure(const struct nw_disk_wish *wish, struct nw_disk_result *result_out);
/* The place alone: file system, device, medium, free space; of directories that cannot be measured,
 * too. On a server that does not answer it hangs. NW_EUSAGE: there is no such file or directory. */
nw_rc nw_disk_look(const char *path, struct nw_disk_result *result_out);
void nw_disk_free(struct nw_disk_result *result);
/* The facts NW_FACT_DATA_* of the machine, and the findings. */
nw_rc nw_disk_facts(struct nw_topo *topo, const struct nw_disk_result *result);
/* "fio-3.33, direct I/O, 8 x 1 MiB and 32 x 4 KiB at once, 768 MiB; read +-1.2 %, …" */
const char *nw_disk_how(const struct nw_disk_result *result, char text[192]);

#endif
