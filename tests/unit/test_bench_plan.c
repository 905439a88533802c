#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/plan.h"

static void set(struct nw_plan *plan, const char *name, const char *value)
{
    const struct nw_option *row = nw_option_find(nw_plan_rows, nw_plan_row_count, name);

    cr_assert_not_null(row, "no option %s", name);
    cr_assert_eq(nw_option_set(row, plan, value, "test"), NW_OK, "%s", nw_last_error()->text);
}

static struct nw_plan fresh(void)
{
    struct nw_plan plan;

    memset(&plan, 0x5a, sizeof plan);
    cr_assert_eq(nw_options_reset(nw_plan_rows, nw_plan_row_count, &plan), NW_OK, "%s",
                 nw_last_error()->text);
    return plan;
}

Test(bench_plan, the_letters_are_those_of_nccl_tests)
{
    static const struct {
        int key;
        const char *name;
    } rows[] = {{'b', "minbytes"}, {'e', "maxbytes"},     {'f', "stepfactor"}, {'i', "stepbytes"},
                {'n', "iters"},    {'w', "warmup_iters"}, {'c', "check"},      {'d', "datatype"},
                {'o', "op"},       {'r', "root"},         {'J', "json-file"},  {'T', "timeout"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(nw_option_find(nw_plan_rows, nw_plan_row_count, rows[i].name)->key,
                     rows[i].key, "%s", rows[i].name);
}

Test(bench_plan, sizes_step_as_in_nccl_tests)
{
    static const struct {
        const char *min, *max, *factor, *step;
        size_t count;
        uint64_t last;
    } rows[] = {
        {"8", "64M", NULL, NULL, 24, 64 << 20}, {"8", "64M", "4", NULL, 12, 32 << 20},
        {"1M", "10M", "1", NULL, 10, 10 << 20}, {"1M", "10M", NULL, "3M", 4, 10 << 20},
        {"1M", "10M", "2", "3M", 4, 8 << 20},   {"1K", "1K", NULL, NULL, 1, 1024},
        {"3", "100", "3", NULL, 4, 81},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_plan plan = fresh();
        uint64_t *sizes;
        size_t count;

        set(&plan, "minbytes", rows[i].min);
        set(&plan, "maxbytes", rows[i].max);
        if (rows[i].factor != NULL)
            set(&plan, "stepfactor", rows[i].factor);
        if (rows[i].step != NULL)
            set(&plan, "stepbytes", rows[i].step);
        cr_assert_eq(nw_plan_resolve(&plan), NW_OK, "row %zu: %s", i, nw_last_error()->text);
        cr_assert_eq(nw_plan_sizes(&plan, &sizes, &count), NW_OK);
        cr_expect_eq(count, rows[i].count, "row %zu: %zu sizes", i, count);
        cr_expect_eq(sizes[count - 1], rows[i].last, "row %zu: last %llu", i,
                     (unsigned long long)sizes[count - 1]);
        free(sizes);
    }
}

Test(bench_plan, what_makes_no_sense_is_refused_with_what_does)
{
    static const struct {
        const char *name, *value, *name2, *value2, *said;
    } rows[] = {
        {"minbytes", "128M", NULL, NULL, "-e (--maxbytes)"},
        {"collectives", "all_reduce,all_redcue", NULL, NULL, "all_reduce"},
        {"collectives", "all_reduce,,reduce", NULL, NULL, "empty item"},
        {"collectives", "", NULL, NULL, "empty item"},
        {"datatype", "flaot", NULL, NULL, "bfloat16"},
        {"op", "xor", NULL, NULL, "prod"},
        {"cases", "coll,apirs", NULL, NULL, "pairs, scaling"},
        {"ranks", "4", NULL, NULL, "mpirun -np"},
        {"backend", "local", "hosts", "3", NULL},
        {"json-file", "x", "out", "y", "--out"},
        {"resume", NULL, NULL, NULL, "-J FILE"},
        {"stepbytes", "1", NULL, NULL, "larger step"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_plan plan = fresh();
        nw_rc rc;

        set(&plan, rows[i].name, rows[i].value);
        if (rows[i].name2 != NULL)
            set(&plan, rows[i].name2, rows[i].value2);
        rc = nw_plan_resolve(&plan);
        if (rows[i].said == NULL) {
            cr_expect_eq(rc, NW_OK, "row %zu: %s", i, nw_last_error()->text);
            continue;
        }
        cr_expect_eq(rc, NW_EUSAGE, "%s %s was taken", rows[i].name, rows[i].value);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].said), "%s: %s", rows[i].name,
                           nw_last_error()->text);
    }
}

Test(bench_plan, lists_and_all_are_resolved_without_doubles)
{
    struct nw_plan plan = fresh();
    unsigned every_case = 0;

    set(&plan, "collectives", "reduce,all,all_reduce_perf");
    set(&plan, "datatype", "all,float");
    set(&plan, "op", "max,max");
    set(&plan, "cases", "all");
    cr_assert_eq(nw_plan_resolve(&plan), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(plan.coll_count, nw_coll_count);
    cr_expect_str_eq(plan.colls[0]->name, "reduce");
    cr_expect_eq(plan.dtype_count, (size_t)NW_DTYPE_COUNT);
    cr_expect_eq(plan.op_count, 1);
    cr_expect_eq(plan.ops[0], NW_MAX);
    for (size_t i = 0; nw_bench_case_name(i) != NULL; i++)
        every_case |= 1u << i;
    cr_expect_eq(plan.cases, every_case);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

Test(bench_plan, a_seed_shuffles_the_same_way_each_time_and_loses_nothing)
{
    struct nw_plan plan = fresh();
    uint64_t *sizes, order[2][24];
    size_t count;

    cr_assert_eq(nw_plan_resolve(&plan), NW_OK);
    cr_assert_eq(nw_plan_sizes(&plan, &sizes, &count), NW_OK);
    cr_assert_eq(count, 24);
    plan.shuffle = true;
    for (int i = 0; i < 2; i++) {
        memcpy(order[i], sizes, sizeof order[i]);
        nw_plan_order(&plan, order[i], count);
    }
    cr_expect_arr_eq(order[0], order[1], sizeof order[0]);
    cr_expect_arr_neq(order[0], sizes, sizeof order[0]);
    plan.seed++;
    nw_plan_order(&plan, order[1], count);
    cr_expect_arr_neq(order[0], order[1], sizeof order[0]);
    qsort(order[0], count, sizeof *sizes, compare);
    cr_expect_arr_eq(order[0], sizes, sizeof order[0]);
    free(sizes);
}

Test(bench_plan, the_echo_and_the_hash_are_about_what_is_measured)
{
    struct nw_plan plan = fresh(), other = fresh();
    json_t *json;

    cr_assert_eq(nw_plan_resolve(&plan), NW_OK);
    set(&other, "json-file", "x.jsonl");
    set(&other, "progress", "off");
    cr_assert_eq(nw_plan_resolve(&other), NW_OK);
    cr_expect_eq(nw_plan_hash(&plan), nw_plan_hash(&other));
    other.budget_ns *= 2;
    cr_expect_neq(nw_plan_hash(&plan), nw_plan_hash(&other));
    cr_assert_eq(nw_plan_to_json(&plan, &json), NW_OK);
    cr_expect_eq(json_integer_value(json_object_get(json, "maxbytes")), 64 << 20);
    cr_expect_str_eq(json_string_value(json_object_get(json, "collectives")), "all_reduce");
    cr_expect_null(json_object_get(json, "json-file"));
    json_decref(json);
}

Test(bench_plan, shapes_of_products)
{
    static const struct {
        const char *text;
        size_t count; /* 0: refused */
    } rows[] = {{"8192x4096x14336", 1}, {"128x128x64,256x1000x520", 2},
                {"8192x4096", 0},       {"8192x4096x14336x2", 0},
                {"100x4096x4096", 0},   {"128x4097x4096", 0},
                {"128x4096x-8", 0},     {"", 0},
                {"128x128x64,", 0},     {"128x128x1000000000", 0},
                {"axbxc", 0},           {"128x128x99999999999999999999", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_plan plan = fresh();

        set(&plan, "gemm-shapes", rows[i].text);
        const nw_rc rc = nw_plan_resolve(&plan);

        cr_expect_eq(rc, rows[i].count > 0 ? NW_OK : NW_EUSAGE, "%s", rows[i].text);
        if (rc == NW_OK)
            cr_expect_eq(plan.shape_count, rows[i].count, "%s", rows[i].text);
        else
            cr_expect_not_null(strstr(nw_last_error()->text, "--gemm-shapes"), "%s: %s",
                               rows[i].text, nw_last_error()->text);
    }
}
