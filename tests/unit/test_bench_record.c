#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record.h"

static struct nw_record sample(void)
{
    struct nw_record record;

    nw_record_init(&record);
    strcpy(record.case_name, "coll");
    strcpy(record.collective, "all_reduce");
    strcpy(record.lane, "host");
    strcpy(record.dtype, "float");
    strcpy(record.op, "sum");
    record.rank_count = 4;
    record.host_count = 2;
    record.bytes = 1024;
    return record;
}

Test(bench_record, a_fresh_record_knows_nothing_and_says_no_zero)
{
    struct nw_record record;
    struct nw_context context;

    nw_record_init(&record);
    cr_expect(isnan(record.time_ns.median) && isnan(record.skew_ns) &&
              isnan(record.algbw_bytes_per_s) && isnan(record.busbw_bytes_per_s) &&
              isnan(record.ceiling_bytes_per_s) && isnan(record.slowest_share));
    cr_expect(record.slowest_rank == -1 && record.wrong_elements == -1 && record.root == -1 &&
              record.peer_a == -1 && record.peer_b == -1);
    cr_expect_eq(record.time_ns.count, 0);
    nw_context_init(&context);
    cr_expect(isnan(context.printed_average_bytes_per_s));
    cr_expect_eq(context.schema, NW_SCHEMA_VERSION);
}

Test(bench_record, identity_is_what_makes_two_results_comparable)
{
    const struct nw_record a = sample();

    for (int change = 0; change <= 17; change++) {
        struct nw_record b = sample();

        b.busbw_bytes_per_s = 7; /* a result, no identity */
        b.wrong_elements = 3;
        strcpy(b.host_a, "elsewhere");
        switch (change) {
        case 1:
            strcpy(b.case_name, "scaling");
            break;
        case 2:
            strcpy(b.collective, "reduce");
            break;
        case 3:
            strcpy(b.lane, "local");
            break;
        case 4:
            strcpy(b.dtype, "half");
            break;
        case 5:
            strcpy(b.op, "max");
            break;
        case 6:
            b.root = 0;
            break;
        case 7:
            b.rank_count = 8;
            break;
        case 8:
            b.host_count = 1;
            break;
        case 9:
            b.bytes = 2048;
            break;
        case 10:
            b.in_place = true;
            break;
        case 11:
            b.peer_a = 0;
            break;
        case 12:
            b.peer_b = 1;
            break;
        case 13:
            b.piece_bytes = 512;
            break;
        case 14:
            b.count = 999;
            break;
        case 15:
            strcpy(b.nic_a, "mlx5_1/1");
            break;
        case 16:
            strcpy(b.nic_b, "mlx5_1/1");
            break;
        case 17:
            strcpy(b.memory, "gpu");
            break;
        }
        cr_expect_eq(nw_record_same_identity(&a, &b), change == 0 || change == 14, "change %d",
                     change);
    }
}

Test(bench_record, a_copy_owns_its_samples_and_warnings)
{
    const double values[] = {3, 1, 2};
    struct nw_record a = sample(), b;

    cr_assert_eq(nw_stats_of(values, 3, &a.time_ns), NW_OK);
    a.samples_ns = malloc(sizeof values);
    memcpy(a.samples_ns, values, sizeof values);
    cr_assert_eq(nw_findings_add(&a.warnings, NW_FINDING_WARN, "drift", "here", NULL, "x"), NW_OK);
    cr_assert_eq(nw_record_copy(&b, &a), NW_OK);
    nw_record_free(&a);
    cr_expect_null(a.samples_ns);
    cr_expect_eq(b.samples_ns[0], 3);
    cr_assert_eq(b.warnings.count, 1);
    cr_expect_str_eq(b.warnings.items[0].code, "drift");
    nw_record_free(&b);
}
