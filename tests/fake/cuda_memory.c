/* Device memory: each allocation is a memfd mapped twice. The address that is given out is the
 * mapping without any right, so that a host that uses it dies as it would with a GPU's; the double
 * itself works on the other one. Fresh memory reads as 0xA5, written where and when it is first
 * touched: an allocation of 80 GiB costs nothing. A memfd leaves nothing behind after a crash. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/fake/fake.h"
#include "tests/fake/fault.h"

#define POISON       0xa5
#define POISON_BYTES ((size_t)64 * 1024) /* touched at once */

struct block {
    unsigned char *address; /* what the program has */
    unsigned char *view;    /* what the double uses; device memory only */
    size_t bytes, mapped_bytes;
    fk_space space;
    int ordinal, fd;
    bool registered;        /* cuMemHostRegister: the program's own memory */
    bool opened;            /* another process's */
    bool shown;             /* to another process */
    uint64_t writes;        /* how often somebody asked for a view to write through */
    unsigned char *touched; /* bit for each POISON_BYTES; NULL: all */
};

static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks; /* sorted by address */
static size_t block_count, block_room;
static long alloc_calls;

/* The block that holds `address`, or the number of blocks below it. */
static size_t search(const void *address, struct block **found_out)
{
    size_t low = 0, high = block_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (blocks[middle].address <= (const unsigned char *)address)
            low = middle + 1;
        else
            high = middle;
    }
    struct block *below = low > 0 ? &blocks[low - 1] : NULL;
    const bool inside = below && (const unsigned char *)address < below->address + below->bytes;
    *found_out = inside ? below : NULL;
    return low;
}

static bool insert(const struct block *block)
{
    struct block *found;
    if (block_count == block_room) {
        const size_t room = block_room ? 2 * block_room : 64;
        struct block *more = realloc(blocks, room * sizeof *more);
        if (!more)
            return false;
        blocks = more;
        block_room = room;
    }
    const size_t at = search(block->address, &found);
    memmove(blocks + at + 1, blocks + at, (block_count - at) * sizeof *blocks);
    blocks[at] = *block;
    block_count++;
    return true;
}

struct fk_place fk_where(const void *address)
{
    struct fk_place place = {.space = FK_PAGEABLE, .ordinal = -1, .bytes = SIZE_MAX};
    struct block *block;
    pthread_mutex_lock(&blocks_lock);
    search(address, &block);
    if (block) {
        place.space = block->space;
        place.ordinal = block->ordinal;
        place.bytes = (size_t)(block->address + block->bytes - (const unsigned char *)address);
    }
    pthread_mutex_unlock(&blocks_lock);
    return place;
}

static void touch(struct block *block, size_t from, size_t bytes)
{
    if (!block->touched || bytes == 0)
        return;
    for (size_t k = from / POISON_BYTES; k <= (from + bytes - 1) / POISON_BYTES; k++) {
        if (block->touched[k / 8] >> k % 8 & 1)
            continue;
        const size_t at = k * POISON_BYTES, left = block->mapped_bytes - at;
        memset(block->view + at, POISON, left < POISON_BYTES ? left : POISON_BYTES);
        block->touched[k / 8] |= (unsigned char)(1u << k % 8);
    }
}

static void *view_of(const void *address, size_t bytes, const char *who, bool writes)
{
    struct block *block;
    void *view = (void *)(uintptr_t)address;
    pthread_mutex_lock(&blocks_lock);
    search(address, &block);
    if (block) {
        const size_t at = (size_t)((const unsigned char *)address - block->address);
        if (bytes > block->bytes - at) {
            fprintf(stderr,
                    "SIMULATED GPUs: %s uses %zu bytes at byte %zu of an allocation of %zu\n", who,
                    bytes, at, block->bytes);
            view = NULL;
        } else if (block->space == FK_DEVICE) {
            touch(block, at, bytes);
            view = block->view + at;
        }
        block->writes += writes;
    }
    pthread_mutex_unlock(&blocks_lock);
    return view;
}

void *fk_view(const void *address, size_t bytes, const char *who)
{
    return view_of(address, bytes, who, true);
}

const void *fk_look(const void *address, size_t bytes, const char *who)
{
    return view_of(address, bytes, who, false);
}

uint64_t fk_writes(const void *address)
{
    struct block *block;
    pthread_mutex_lock(&blocks_lock);
    search(address, &block);
    const bool known = block && block->space == FK_DEVICE && !block->opened && !block->shown;
    const uint64_t writes = known ? block->writes + 1 : 0;
    pthread_mutex_unlock(&blocks_lock);
    return writes;
}

static bool map_twice(struct block *block, int fd)
{
    block->fd = fd;
    block->address = mmap(NULL, block->mapped_bytes, PROT_NONE, MAP_SHARED, fd, 0);
    block->view = mmap(NULL, block->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return block->address != MAP_FAILED && block->view != MAP_FAILED;
}

static void unmap(struct block *block)
{
    if (block->address && block->address != MAP_FAILED)
        munmap(block->address, block->mapped_bytes);
    if (block->view && block->view != MAP_FAILED)
        munmap(block->view, block->mapped_bytes);
    if (block->fd >= 0)
        close(block->fd);
    free(block->touched);
}

/* One file descriptor an allocation. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static fk_result take(struct CUctx_st *context, size_t bytes, fk_ptr *pointer_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, allow_many_files);
    const size_t page = 4096;
    struct block block = {.bytes = bytes,
                          .mapped_bytes = (bytes + page - 1) / page * page,
                          .space = FK_DEVICE,
                          .ordinal = context->ordinal,
                          .fd = -1};
    block.touched = calloc(block.mapped_bytes / POISON_BYTES / 8 + 1, 1);
    const int fd = memfd_create("simulated GPU memory", MFD_CLOEXEC);
    if (!block.touched || fd < 0 || ftruncate(fd, (off_t)block.mapped_bytes) != 0 ||
        !map_twice(&block, fd) || !insert(&block)) {
        if (fd >= 0 && block.fd < 0)
            close(fd);
        unmap(&block);
        return CU_OUT_OF_MEMORY;
    }
    context->allocated_bytes += bytes;
    *pointer_out = (fk_ptr)(uintptr_t)block.address;
    return CU_OK;
}

static size_t room(const struct CUctx_st *context)
{
    const struct fk_gpu *gpu = fk_gpu_of(context);
    return gpu->memory_bytes - gpu->reserved_bytes - context->allocated_bytes;
}

FK_EXPORT fk_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    const struct CUctx_st *context = fk_context();
    if (!context)
        return CU_INVALID_CONTEXT;
    *free_bytes = room(context);
    *total_bytes = fk_gpu_of(context)->memory_bytes;
    return CU_OK;
}

FK_EXPORT fk_result cuMemAlloc_v2(fk_ptr *pointer, size_t bytes)
{
    struct CUctx_st *context = fk_context();
    if (!context)
        return CU_INVALID_CONTEXT;
    if (bytes == 0)
        return CU_INVALID_VALUE;
    fk_host_spend(fk_machine()->launch_us);
    pthread_mutex_lock(&blocks_lock);
    const struct fk_faults faults = fk_faults_of("alloc", fk_process_rank(), ++alloc_calls, 0);
    fk_result code = CU_OUT_OF_MEMORY;
    if (!fk_fault_has(&faults, FK_FAULT_OOM) && bytes <= room(context))
        code = take(context, bytes, pointer);
    pthread_mutex_unlock(&blocks_lock);
    return code;
}

/* Takes the block that begins at `address` out of the table. */
static bool take_out(const void *address, fk_space space, struct block *block_out)
{
    struct block *block;
    pthread_mutex_lock(&blocks_lock);
    search(address, &block);
    const bool found = block && block->address == address && block->space == space;
    if (found) {
        *block_out = *block;
        if (space == FK_DEVICE && !block->opened)
            fk_context_at(block->ordinal)->allocated_bytes -= block->bytes;
        const size_t at = (size_t)(block - blocks);
        memmove(block, block + 1, (block_count - at - 1) * sizeof *blocks);
        block_count--;
    }
    pthread_mutex_unlock(&blocks_lock);
    return found;
}

FK_EXPORT fk_result cuMemFree_v2(fk_ptr pointer)
{
    struct block block;
    const struct CUctx_st *context = fk_context();
    if (!context)
        return CU_INVALID_CONTEXT;
    if (pointer == 0)
        return CU_OK;
    fk_wait_context(context); /* as the driver does: work may still use it */
    if (!take_out((const void *)(uintptr_t)pointer, FK_DEVICE, &block))
        return CU_INVALID_VALUE;
    unmap(&block);
    return CU_OK;
}

FK_EXPORT fk_result cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    if (!fk_context())
        return CU_INVALID_CONTEXT;
    struct block block = {.bytes = bytes, .space = FK_PINNED, .ordinal = -1, .fd = -1};
    block.mapped_bytes = (bytes + 4095) / 4096 * 4096;
    block.address =
        mmap(NULL, block.mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == 0 || block.address == MAP_FAILED)
        return bytes == 0 ? CU_INVALID_VALUE : CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&blocks_lock);
    const bool kept = insert(&block);
    pthread_mutex_unlock(&blocks_lock);
    if (!kept) {
        munmap(block.address, block.mapped_bytes);
        return CU_OUT_OF_MEMORY;
    }
    *pointer = block.address;
    return CU_OK;
}

FK_EXPORT fk_result cuMemFreeHost(void *pointer)
{
    struct block block;
    const struct CUctx_st *context = fk_context();
    if (!context)
        return CU_INVALID_CONTEXT;
    fk_wait_context(context);
    if (!take_out(pointer, FK_PINNED, &block))
        return CU_INVALID_VALUE;
    munmap(block.address, block.mapped_bytes);
    return CU_OK;
}

FK_EXPORT fk_result cuMemHostGetDevicePointer_v2(fk_ptr *device_pointer, void *pointer,
                                                 unsigned flags)
{
    if (fk_where(pointer).space != FK_PINNED || flags != 0)
        return CU_INVALID_VALUE;
    *device_pointer = (fk_ptr)(uintptr_t)pointer;
    return CU_OK;
}

FK_EXPORT fk_result cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    if (!fk_context())
        return CU_INVALID_CONTEXT;
    if (!pointer || bytes == 0 || fk_where(pointer).space != FK_PAGEABLE)
        return CU_INVALID_VALUE;
    const struct block block = {.address = pointer,
                                .bytes = bytes,
                                .space = FK_PINNED,
                                .ordinal = -1,
                                .fd = -1,
                                .registered = true};
    pthread_mutex_lock(&blocks_lock);
    const bool kept = insert(&block);
    pthread_mutex_unlock(&blocks_lock);
    return kept ? CU_OK : CU_OUT_OF_MEMORY;
}

FK_EXPORT fk_result cuMemHostUnregister(void *pointer)
{
    struct block block;
    return take_out(pointer, FK_PINNED, &block) ? CU_OK : CU_INVALID_VALUE;
}

/* A part of the memory for other devices' drivers: whole pages of one allocation, as a file that is
 * positioned where the part begins (a dma-buf itself has no such position). */
FK_EXPORT fk_result cuMemGetHandleForAddressRange(void *handle, fk_ptr address, size_t bytes,
                                                  unsigned type, unsigned long long flags)
{
    const size_t page = 4096, dma_buf = 1;
    struct block *block;
    char path[64];
    int fd = -1;
    if (!fk_context())
        return CU_INVALID_CONTEXT;
    if (address % page != 0 || bytes % page != 0 || bytes == 0 || type != dma_buf || flags != 0)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&blocks_lock);
    search((const void *)(uintptr_t)address, &block);
    const size_t at = block ? (size_t)(address - (fk_ptr)(uintptr_t)block->address) : 0;
    if (block && block->space == FK_DEVICE && !block->opened && bytes <= block->mapped_bytes - at) {
        touch(block, at, bytes);
        block->shown = true;
        snprintf(path, sizeof path, "/proc/self/fd/%d", block->fd); /* a position of its own */
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd >= 0)
            lseek(fd, (off_t)at, SEEK_SET);
    }
    pthread_mutex_unlock(&blocks_lock);
    if (fd < 0)
        return CU_INVALID_VALUE;
    memcpy(handle, &fd, sizeof fd);
    return CU_OK;
}

/* Memory of one process in another: 64 bytes that are passed on somehow. */
struct handle {
    char magic[8];
    int pid, fd, gpu;
    size_t bytes, mapped_bytes;
};
_Static_assert(sizeof(struct handle) <= 64, "CUipcMemHandle");

FK_EXPORT fk_result cuIpcGetMemHandle(void *handle_out, fk_ptr pointer)
{
    struct handle handle = {.magic = "SIMULAT"};
    struct block *block;
    pthread_mutex_lock(&blocks_lock);
    search((const void *)(uintptr_t)pointer, &block);
    const bool can = block && block->space == FK_DEVICE && !block->opened;
    if (can) {
        touch(block, 0, block->mapped_bytes); /* the other process cannot know what is untouched */
        block->shown = true;
        handle.pid = getpid();
        handle.fd = block->fd;
        handle.gpu = fk_context_at(block->ordinal)->gpu;
        handle.bytes = block->bytes;
        handle.mapped_bytes = block->mapped_bytes;
    }
    pthread_mutex_unlock(&blocks_lock);
    if (!can)
        return CU_INVALID_VALUE;
    memset(handle_out, 0, 64);
    memcpy(handle_out, &handle, sizeof handle);
    return CU_OK;
}

struct ipc_bytes {
    char reserved[64]; /* CUipcMemHandle, which is passed by value */
};

FK_EXPORT fk_result cuIpcOpenMemHandle_v2(fk_ptr *pointer, struct ipc_bytes bytes, unsigned flags)
{
    struct handle handle;
    char path[64];
    (void)flags;
    memcpy(&handle, bytes.reserved, sizeof handle);
    if (memcmp(handle.magic, "SIMULAT", 8) != 0 || handle.pid == getpid())
        return CU_INVALID_VALUE;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.pid, handle.fd);
    struct block block = {.bytes = handle.bytes,
                          .mapped_bytes = handle.mapped_bytes,
                          .space = FK_DEVICE,
                          .ordinal = fk_context()->ordinal,
                          .fd = -1,
                          .opened = true};
    for (int i = 0; fk_context_of_ordinal(i); i++)
        if (fk_context_of_ordinal(i)->gpu == handle.gpu)
            block.ordinal = i;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&blocks_lock);
    const bool kept = map_twice(&block, fd) && insert(&block);
    pthread_mutex_unlock(&blocks_lock);
    if (!kept) {
        unmap(&block);
        return CU_OUT_OF_MEMORY;
    }
    *pointer = (fk_ptr)(uintptr_t)block.address;
    return CU_OK;
}

FK_EXPORT fk_result cuIpcCloseMemHandle(fk_ptr pointer)
{
    struct block block;
    fk_wait_context(fk_context());
    if (!take_out((const void *)(uintptr_t)pointer, FK_DEVICE, &block))
        return CU_INVALID_VALUE;
    unmap(&block);
    return CU_OK;
}
