/* Private to bench/. The parts of nw_disk_measure: the file, our own loop, fio. */
#ifndef NW_BENCH_DISK_PARTS_H
#define NW_BENCH_DISK_PARTS_H

#include "bench/disk.h"

enum {
    NW_DISK_SECTOR = 4096,
    NW_DISK_BLOCK = 1 << 20,
    NW_DISK_MIN_BYTES = 16 << 20, /* less tells nothing */
};

/* --- the file --- */

struct nw_disk_file {
    int fd;
    bool direct;
    char *name;   /* NULL: it has none any more */
    int guard_fd; /* -1: no guard. Closing it, or our end, makes the guard remove the file */
    pid_t guard;
};

nw_rc nw_disk_create(const char *folder, const struct nw_disk_calls *calls,
                     struct nw_disk_file *file_out);
void nw_disk_remove(struct nw_disk_file *file, const struct nw_disk_calls *calls);

/* --- measuring --- */

struct nw_disk_plan {
    const struct nw_disk_calls *calls;
    const struct nw_disk_file *file;
    int threads, random_threads;
    uint64_t file_bytes;         /* whole blocks */
    uint64_t random_write_bytes; /* at most */
    double budget_s, stop_rel;
    uint64_t seed;
};

nw_rc nw_disk_own(const struct nw_disk_plan *plan, struct nw_disk_result *result);
nw_rc nw_disk_fio(const struct nw_disk_plan *plan, const char *program,
                  struct nw_disk_result *result);
/* NW_ENODEV: no such program; its version to `version`. */
nw_rc nw_disk_fio_version(const char *program, char version[32]);

/* Wrong data and failed calls, worded once for both tools. */
nw_rc nw_disk_tell(struct nw_disk_result *result, const char *code, const char *remedy,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
