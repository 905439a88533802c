/* Memory of a GPU for a NIC, by the project's own device layer: whole pages of it as a file, and
 * where in that the memory begins. */
#include "kernels/dev.h"
#include "tests/fake/tests/gpus.h"

#define BYTES (3 * 4096 + 100)

static struct gpus g;

static void share(struct nw_dev *dev, const unsigned char *memory, const unsigned char *pattern)
{
    static const struct {
        uint64_t at, bytes;
    } rows[] = {{0, 4096}, {0, BYTES}, {256, 10}, {4000, 200}, {4096, 4096}, {8200, 4096}};
    unsigned char found[BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t offset = 0;
        int fd = -1;
        EXPECT(dev->ops->share(dev, memory + rows[i].at, rows[i].bytes, &fd, &offset) == NW_OK,
               "row %zu: %s", i, nw_last_error()->text);
        EXPECT(offset == rows[i].at % 4096, "row %zu: begins at %llu", i,
               (unsigned long long)offset);
        const off_t first = lseek(fd, 0, SEEK_CUR); /* of the double: where the pages are */
        const ssize_t got = pread(fd, found, rows[i].bytes, first + (off_t)offset);
        EXPECT(got == (ssize_t)rows[i].bytes &&
                   memcmp(found, pattern + rows[i].at, rows[i].bytes) == 0,
               "row %zu: another memory", i);
        close(fd);
    }
}

/* What the driver refuses, and the sentence that comes of it. */
static void refused(struct nw_dev *dev, const unsigned char *memory)
{
    const nw_cu_ptr address = (nw_cu_ptr)(uintptr_t)memory;
    uint64_t offset;
    int fd;

    EXPECT(g.cu.cuMemGetHandleForAddressRange(&fd, address + 256, 4096, 1, 0) == 1, "no page");
    EXPECT(g.cu.cuMemGetHandleForAddressRange(&fd, address, 100, 1, 0) == 1, "no whole page");
    EXPECT(g.cu.cuMemGetHandleForAddressRange(&fd, address, 5 * 4096, 1, 0) == 1, "too much");
    EXPECT(dev->ops->share(dev, memory, 5 * 4096, &fd, &offset) != NW_OK, "too much");
    EXPECT(strstr(nw_last_error()->text, "its memory cannot be shared as a dma-buf") != NULL, "%s",
           nw_last_error()->text);
}

int main(void)
{
    struct nw_dev *dev;
    struct CUstream_st *stream;
    unsigned char pattern[BYTES];
    void *address;

    gpus_open(&g);
    address = symbol(g.cuda, "cuMemGetHandleForAddressRange", true);
    memcpy(&g.cu.cuMemGetHandleForAddressRange, &address, sizeof address);
    if (nw_dev_open("cuda", 0, &dev) != NW_OK) {
        printf("%s\n", nw_last_error()->text);
        return 1;
    }
    gpus_use(&g, 0);
    MUST(g.cu.cuStreamCreate(&stream, 1));
    for (size_t i = 0; i < BYTES; i++)
        pattern[i] = (unsigned char)(i * 31 >> 3);
    void *memory = gpus_alloc(&g, BYTES);
    gpus_copy(&g, stream, memory, pattern, BYTES);
    share(dev, memory, pattern);
    refused(dev, memory);
    gpus_free(&g, memory);
    nw_dev_close(dev);
    printf("dma-buf: %d wrong\n", failures);
    return failures > 0;
}
