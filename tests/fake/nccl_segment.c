/* The file that the ranks of a communicator share. Its name is gone as soon as all have it open, so
 * nothing is left when they die later; with-gpus removes its folder in any case. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fake/nccl_comm.h"

#define SHM_BYTES 4096

static size_t header_bytes(void)
{
    return (sizeof(struct fk_segment) + 4095) / 4096 * 4096;
}

static void segment_path(const ncclComm_t comm, char *path, size_t size)
{
    snprintf(path, size, "%s/%s-nccl-%s", fk_job_folder(), fk_job_prefix(), comm->id);
}

/* FAKE_SHM=1: a file in /dev/shm beside, named as NCCL's own, that a process which is killed leaves
 * behind. Each rank has one for its communicator. */
static void shm_path(const ncclComm_t comm, char path[64])
{
    const char *id = strpbrk(comm->id, "0123456789abcdef");
    snprintf(path, 64, "/dev/shm/nccl-%.6s%d", id ? id : "", comm->rank);
}

static void shm_open_beside(ncclComm_t comm)
{
    const char *wanted = getenv("FAKE_SHM");
    char path[64];
    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    shm_path(comm, path);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, SHM_BYTES) == 0)
        map = mmap(NULL, SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    comm->shm = map != MAP_FAILED ? map : NULL;
}

static void shm_close_beside(ncclComm_t comm)
{
    char path[64];
    if (!comm->shm)
        return;
    munmap(comm->shm, SHM_BYTES);
    comm->shm = NULL;
    shm_path(comm, path);
    unlink(path);
}

ncclResult_t fk_segment_open(ncclComm_t comm)
{
    const size_t n = (size_t)comm->rank_count;
    char path[512];
    segment_path(comm, path, sizeof path);
    comm->segment_bytes = header_bytes() + (n + 1) * FK_SLOT_BYTES + n * n * sizeof(struct fk_mail);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)comm->segment_bytes) != 0) {
        const int error = errno;
        if (fd >= 0)
            close(fd);
        return fk_nccl_fail(comm, ncclSystemError, "%s: %s", path, strerror(error));
    }
    void *map = mmap(NULL, comm->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return fk_nccl_fail(comm, ncclSystemError, "%s: %s", path, strerror(errno));
    comm->segment = map;
    shm_open_beside(comm);
    return ncclSuccess;
}

void fk_segment_forget(ncclComm_t comm)
{
    char path[512];
    segment_path(comm, path, sizeof path);
    unlink(path);
}

void fk_segment_close(ncclComm_t comm)
{
    shm_close_beside(comm);
    if (comm->segment)
        munmap(comm->segment, comm->segment_bytes);
    comm->segment = NULL;
}

unsigned char *fk_slot(const ncclComm_t comm, int rank)
{
    return (unsigned char *)comm->segment + header_bytes() + (size_t)rank * FK_SLOT_BYTES;
}

struct fk_mail *fk_mail(const ncclComm_t comm, int from, int to)
{
    void *first = fk_slot(comm, comm->rank_count + 1);
    return (struct fk_mail *)first + (size_t)from * (size_t)comm->rank_count + to;
}

bool fk_barrier(ncclComm_t comm, struct fk_barrier *barrier)
{
    const uint32_t round = atomic_load(&barrier->round);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == (uint32_t)comm->rank_count) {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->round, 1);
        syscall(SYS_futex, &barrier->round, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
    while (atomic_load(&barrier->round) == round) {
        if (atomic_load(&comm->aborted))
            return false;
        const struct timespec soon = {.tv_nsec = 20000000};
        syscall(SYS_futex, &barrier->round, FUTEX_WAIT, round, &soon, NULL, 0);
    }
    fk_progress();
    return !atomic_load(&comm->aborted);
}

void fk_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000}, NULL);
}
