#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "collectives/comm.h"

Test(collectives_coll, every_name_is_found_and_nccl_tests_binaries_too)
{
    cr_assert_eq(nw_coll_count, NW_COLL_COUNT);
    for (size_t i = 0; i < nw_coll_count; i++) {
        const struct nw_coll *coll = NULL;
        char binary[64];
        cr_expect_eq((size_t)nw_colls[i].id, i);
        cr_expect_str_eq(nw_coll_names[i], nw_colls[i].name);
        snprintf(binary, sizeof binary, "%s_perf", nw_colls[i].name);
        cr_assert_eq(nw_coll_parse(binary, &coll), NW_OK);
        cr_expect_eq(coll, &nw_colls[i]);
        cr_expect_eq(nw_coll_find(nw_colls[i].name), &nw_colls[i]);
    }
    cr_expect_null(nw_coll_names[nw_coll_count]);
    cr_expect_null(nw_coll_find("all_reduce_perf"));
}

Test(collectives_coll, an_unknown_name_is_refused_with_the_accepted_ones)
{
    const char *const bad[] = {
        "",           "_perf",
        "allreduce",  "all_reduce_perf_perf",
        "ALL_REDUCE", "a_name_that_is_much_longer_than_any_of_the_accepted_ones_perf"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct nw_coll *coll = NULL;
        cr_expect_eq(nw_coll_parse(bad[i], &coll), NW_EUSAGE, "%s", bad[i]);
        cr_expect(strstr(nw_last_error()->text, "reduce_scatter"), "%s", nw_last_error()->text);
        cr_expect_null(coll);
    }
}

Test(collectives_coll, bus_factors_are_those_of_nccl_tests)
{
    static const struct {
        const char *name;
        double one, two, eight;
    } rows[] = {
        {"all_reduce", 0, 1, 1.75},
        {"all_gather", 0, 0.5, 0.875},
        {"reduce_scatter", 0, 0.5, 0.875},
        {"alltoall", 0, 0.5, 0.875},
        {"gather", 0, 0.5, 0.875},
        {"scatter", 0, 0.5, 0.875},
        {"broadcast", 1, 1, 1},
        {"reduce", 1, 1, 1},
        {"sendrecv", 1, 1, 1},
    };
    cr_assert_eq(sizeof rows / sizeof *rows, nw_coll_count);
    for (size_t i = 0; i < nw_coll_count; i++) {
        const struct nw_coll *coll = nw_coll_find(rows[i].name);
        cr_expect_eq(coll->bus_factor(1), rows[i].one, "%s", rows[i].name);
        cr_expect_eq(coll->bus_factor(2), rows[i].two, "%s", rows[i].name);
        cr_expect_eq(coll->bus_factor(8), rows[i].eight, "%s", rows[i].name);
    }
}

/* Expected by hand from nccl-tests' …GetCollByteCount: count/n rounded down to 16 bytes. */
Test(collectives_coll, shapes_are_those_of_nccl_tests)
{
    static const struct {
        const char *name;
        uint64_t bytes;
        nw_dtype dtype;
        int ranks;
        uint64_t reported, count, send, recv;
    } rows[] = {
        {"all_reduce", 1030, NW_FLOAT, 8, 1028, 257, 1028, 1028},
        {"all_reduce", 8, NW_FLOAT, 8, 8, 2, 8, 8},
        {"all_reduce", 3, NW_FLOAT, 8, 0, 0, 0, 0},
        {"all_gather", 1000, NW_FLOAT, 8, 896, 28, 112, 896},
        {"all_gather", 127, NW_FLOAT, 8, 0, 0, 0, 0},
        {"all_gather", 128, NW_FLOAT, 8, 128, 4, 16, 128},
        {"reduce_scatter", 1000, NW_INT8, 3, 960, 320, 960, 320},
        {"reduce_scatter", 100, NW_DOUBLE, 2, 96, 6, 96, 48},
        {"alltoall", 1ull << 40, NW_BFLOAT16, 16, 1ull << 40, 1ull << 35, 1ull << 40, 1ull << 40},
        {"gather", 4096, NW_HALF, 3, 4080, 680, 1360, 4080},
        {"scatter", 4096, NW_UINT64, 3, 4080, 170, 4080, 1360},
        {"broadcast", 12345, NW_HALF, 5, 12344, 6172, 12344, 12344},
        {"reduce", 0, NW_DOUBLE, 5, 0, 0, 0, 0},
        {"sendrecv", 100, NW_INT32, 7, 100, 25, 100, 100},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nw_shape shape =
            nw_coll_shape(nw_coll_find(rows[i].name), rows[i].bytes, rows[i].dtype, rows[i].ranks);
        cr_expect_eq(shape.bytes, rows[i].reported, "row %zu", i);
        cr_expect_eq(shape.count, rows[i].count, "row %zu", i);
        cr_expect_eq(shape.send_bytes, rows[i].send, "row %zu", i);
        cr_expect_eq(shape.recv_bytes, rows[i].recv, "row %zu", i);
    }
}

Test(collectives_coll, places_are_those_of_nccl_tests)
{
    char a[896], b[896];
    static const struct {
        const char *name;
        bool in_place;
        int send_at, recv_at; /* for rank 2: x in b; or -2 - x: x in a */
    } rows[] = {
        {"all_reduce", false, -2, 0},
        {"all_reduce", true, 0, 0},
        {"all_gather", false, -2, 0},
        {"all_gather", true, 2 * 112, 0},
        {"reduce_scatter", true, -2, -2 - 2 * 112},
        {"scatter", true, -2, -2 - 2 * 112},
        {"gather", true, 2 * 112, 0},
        {"broadcast", true, 0, 0},
        {"sendrecv", false, -2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_call call = {
            .coll = nw_coll_find(rows[i].name), .dtype = NW_FLOAT, .in_place = rows[i].in_place};
        call.shape = nw_coll_shape(call.coll, 1000, NW_FLOAT, 8);
        nw_call_place(&call, 2, a, b);
        const char *send = rows[i].send_at < 0 ? a - 2 - rows[i].send_at : b + rows[i].send_at;
        const char *recv = rows[i].recv_at < 0 ? a - 2 - rows[i].recv_at : b + rows[i].recv_at;
        cr_expect_eq(call.send, send, "%s: send at %td", rows[i].name, (char *)call.send - b);
        cr_expect_eq(call.recv, recv, "%s: recv at %td", rows[i].name, (char *)call.recv - b);
    }
}

Test(collectives_coll, buffers_are_aligned_and_zero)
{
    static const uint64_t sizes[] = {0, 1, 4096, 4097, 5u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *buffer = nw_comm_alloc(sizes[i]);
        cr_assert_not_null(buffer);
        cr_expect_eq((uintptr_t)buffer % 4096, 0);
        for (uint64_t at = 0; at < sizes[i]; at += 1021)
            cr_expect_eq(buffer[at], 0);
        if (sizes[i] > 0)
            buffer[sizes[i] - 1] = 1;
        nw_comm_free(buffer, sizes[i]);
    }
    nw_comm_free(NULL, 1);
    cr_expect_null(nw_comm_alloc(UINT64_MAX));
    cr_expect_null(nw_comm_alloc(1ull << 60));
}
