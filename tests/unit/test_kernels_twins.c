/* The CPU twins of the GPU kernels, through the host device; and that test patterns on a device are
 * those of the collectives' oracle. */
#include <criterion/criterion.h>

#include "collectives/oracle.h"
#include "tests/gpu/kernel_cases.h"

Test(kernels_twins, agree_with_naive_references_at_odd_sizes_and_offsets)
{
    struct nw_dev *dev = NULL;
    cr_assert_eq(nw_dev_open("host", 0, &dev), NW_OK, "%s", nw_last_error()->text);
    for (size_t g = 0; g < KC_COUNT(kc_groups); g++) {
        const struct kc kc = kc_run(dev, g, false);
        cr_expect_eq(kc.failed, 0, "%s: %d of %d: %s", kc_groups[g].name, kc.failed, kc.checked,
                     kc.first);
        cr_expect_gt(kc.checked, 5, "%s: %d", kc_groups[g].name, kc.checked);
        cr_expect_eq(kc.skipped, 0);
    }
    nw_dev_close(dev);
}

/* A twin that computes something else must be found by the same table. */
static nw_rc wrong_copy(struct nw_stream *stream, void *to, const void *from, uint64_t bytes)
{
    nw_copy_host(to, from, bytes > 4096 ? bytes - 1 : bytes);
    (void)stream;
    return NW_OK;
}

Test(kernels_twins, the_table_finds_a_kernel_that_leaves_out_a_byte)
{
    struct nw_dev *dev = NULL;
    cr_assert_eq(nw_dev_open("host", 0, &dev), NW_OK);
    struct nw_dev_ops ops = *dev->ops;
    struct nw_dev broken = *dev;
    ops.kernel_copy = wrong_copy;
    broken.ops = &ops;
    const struct kc kc = kc_run(&broken, 0, false);
    cr_expect_gt(kc.failed, 0);
    cr_expect(strstr(kc.first, "4097 bytes"), "%s", kc.first);
    nw_dev_close(dev);
}

Test(kernels_twins, says_which_devices_there_are_and_why_others_are_not)
{
    struct nw_dev *dev = NULL;
    char why[512];
    cr_expect_eq(nw_dev_open("cpu", 0, &dev), NW_EUSAGE);
    cr_expect(strstr(nw_last_error()->text, "cuda, host"));
    cr_expect_eq(nw_dev_open("host", 1, &dev), NW_ENODEV);
    cr_expect_eq(nw_dev_count("host", why, sizeof why), 1);
    cr_expect_str_eq(why, "");
    cr_expect_eq(nw_dev_count("nonsense", why, sizeof why), 0);
    cr_expect(strstr(why, "nonsense"));
    cr_assert_eq(nw_dev_open("host", 0, &dev), NW_OK);
    cr_expect_str_eq(dev->ops->name, "host");
    cr_expect_gt(dev->memory_bytes, 0);
    cr_expect_gt(dev->sm_count, 0);
    cr_expect_neq(dev->name[0], '\0');
    nw_dev_close(dev);
    nw_dev_close(NULL);
}

/* Rebuilds the table from a chunk that the oracle filled: each element names its place, and a table
 * that is not one table contradicts itself. Then the twin must verify the oracle's data. */
Test(kernels_twins, patterns_are_those_of_the_oracle)
{
    static const struct {
        const char *coll;
        nw_dtype dtype;
    } rows[] = {{"all_reduce", NW_FLOAT},
                {"all_gather", NW_BFLOAT16},
                {"reduce", NW_INT8},
                {"sendrecv", NW_UINT64}};
    enum { count = 200 * NW_PATTERN_BLOCK + 77 };
    for (size_t r = 0; r < KC_COUNT(rows); r++) {
        const size_t size = nw_dtype_bytes(rows[r].dtype);
        const struct nw_coll *coll = nw_coll_find(rows[r].coll);
        cr_assert(coll);
        struct nw_call call = {.coll = coll, .dtype = rows[r].dtype, .op = NW_SUM};
        call.shape = coll->shape(count * size, size, 1);
        unsigned char *send = malloc(call.shape.send_bytes), *recv = malloc(call.shape.recv_bytes);
        unsigned char *table = calloc(NW_PATTERN_TABLE, size), *known = calloc(NW_PATTERN_TABLE, 1);
        cr_assert(send && recv && table && known);
        call.send = send;
        call.recv = recv;
        nw_oracle_fill(&call, 0, 1, 3);

        size_t contradictions = 0;
        for (uint64_t i = 0; i < call.shape.count; i++) {
            const uint32_t place = nw_pattern_place(i);
            if (!known[place])
                memcpy(table + place * size, send + i * size, size);
            else if (memcmp(table + place * size, send + i * size, size) != 0)
                contradictions++;
            known[place] = 1;
        }
        cr_expect_eq(contradictions, 0, "%s: %zu contradictions", rows[r].coll, contradictions);

        struct nw_verdict verdict = NW_VERDICT_CLEAN;
        const struct nw_pattern pattern = {.table = table, .element_bytes = (int32_t)size};
        nw_verify_host(send, call.shape.count, &pattern, &verdict);
        cr_expect_eq(verdict.wrong_count, 0);
        const uint64_t spoiled = call.shape.count - 5;
        send[spoiled * size] ^= 1;
        nw_verify_host(send, call.shape.count, &pattern, &verdict);
        cr_expect_eq(verdict.wrong_count, 1);
        cr_expect_eq(verdict.first_index, spoiled);
        free(send);
        free(recv);
        free(table);
        free(known);
    }
}
