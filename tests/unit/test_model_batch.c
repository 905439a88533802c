#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "model/batch.h"

static int files_read;

/* Sixteen GPUs on two nodes at a rate that tells the path: "fast…" 300 GB/s, else 3; "bare…":
 * without intervals. */
static nw_rc read_made_up(const char *path, struct nw_results *results)
{
    files_read++;
    if (strncmp(path, "missing", 7) == 0)
        return nw_fail(NW_EIO, "%s: cannot open for reading: none such", path);
    struct nw_run *run = nw_results_add_run(results);

    add_group(run, 16, 2, 20e3, strncmp(path, "fast", 4) == 0 ? 3e11 : 3e9);
    for (size_t i = 0; i < run->record_count && strncmp(path, "bare", 4) == 0; i++)
        run->records[i].time_ns = nw_stats_single(run->records[i].time_ns.median);
    return NW_OK;
}

static struct nw_batch *open_batch(void)
{
    const struct nw_model_request request = request_for(NULL);
    struct nw_batch *batch;

    files_read = 0;
    cr_assert(eq(int, nw_batch_open(&request, NULL, read_made_up, &batch), NW_OK));
    return batch;
}

static json_t *ask(struct nw_batch *batch, const char *line)
{
    json_t *answer = NULL;

    cr_assert(eq(int, nw_batch_answer(batch, line, strlen(line), 7, &answer), NW_OK));
    cr_assert(eq(int, json_typeof(answer), JSON_OBJECT));
    return answer;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

#define JOB "\"model\": \"gpt2-124m\", \"gpu\": \"a100-80\", \"seq\": 1024, \"micro-batch\": 4"

Test(batch, one_strategy_on_one_node_count_is_the_answer_itself_others_are_a_list)
{
    struct nw_batch *batch = open_batch();
    json_t *one = ask(batch, "{\"id\": [1, \"a\"], " JOB ", \"ranks\": 8, \"strategy\": \"ddp\"}");
    json_t *many = ask(batch, "{" JOB ", \"nodes\": [1], \"strategy\": [\"ddp\", \"fsdp\"]}");

    cr_expect(eq(sz, json_array_size(json_object_get(one, "id")), 2));
    cr_expect(gt(dbl, number(one, "step_ns"), 0));
    cr_expect(eq(int, (int)number(one, "ranks"), 8));
    cr_expect(gt(dbl, number(json_object_get(one, "memory"), "total_bytes"), 1e9));
    cr_expect(
        eq(str,
           (char *)json_string_value(json_object_get(json_object_get(one, "layout"), "framework")),
           "pytorch"));
    cr_expect(eq(int, (int)number(many, "line"), 7));
    cr_assert(eq(sz, json_array_size(json_object_get(many, "steps")), 2));
    cr_expect(eq(dbl, number(json_array_get(json_object_get(many, "steps"), 0), "step_ns"),
                 number(one, "step_ns")));
    json_decref(one);
    json_decref(many);
    nw_batch_close(batch);
}

Test(batch, what_cannot_be_answered_says_why_and_the_next_line_is_answered)
{
    static const struct {
        const char *line, *says;
        int rc;
    } cases[] = {
        {"{\"id\": 1", "line 7, column", 2},
        {"[1]", "not a JSON object", 2},
        {"{\"id\": 1, \"id\": 2}", "not valid JSON", 2},
        {"{\"modle\": \"x\"}", "did you mean \"model\"", 2},
        {"{" JOB ", \"ranks\": \"eight\"}", "key ranks", 2},
        {"{" JOB ", \"ranks\": {}}", "key ranks", 2},
        {"{" JOB ", \"tp\": 5, \"ranks\": 8}", "--tp 5", 2},
        {"{" JOB ", \"ranks\": 8, \"results\": \"missing.log\"}", "cannot open", 2},
        {"{" JOB ", \"ranks\": 8, \"results\": [1]}", "not a path", 2},
        {"{" JOB ", \"ranks\": 8, \"assume\": \"HBM_SHARE\"}", "KEY=VALUE", 2},
        {"{" JOB ", \"ranks\": 16, \"strategy\": \"ddp\"}", "nothing between nodes", 3},
        {"{" JOB ", \"ranks\": 8, \"assume\": [4]}", "assume: 4 is not a text", 2},
        {"{}", "no model", 2},
    };
    struct nw_batch *batch = open_batch();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *answer = ask(batch, cases[i].line);
        const char *error = json_string_value(json_object_get(answer, "error"));

        cr_expect(eq(int, (int)number(answer, "rc"), cases[i].rc), "%s", cases[i].line);
        cr_assert(ne(ptr, (void *)error, NULL), "%s", cases[i].line);
        cr_expect(ne(ptr, strstr(error, cases[i].says), NULL), "\"%s\" is not in: %s",
                  cases[i].says, error);
        json_decref(answer);
        answer = ask(batch, "{" JOB ", \"ranks\": 8, \"strategy\": \"ddp\"}");
        cr_expect(gt(dbl, number(answer, "step_ns"), 0), "after %s", cases[i].line);
        json_decref(answer);
    }
    nw_batch_close(batch);
}

Test(batch, a_file_is_read_once_and_each_line_stands_on_its_own_curves)
{
    static const char *const lines[] = {
        "{" JOB ", \"ranks\": 16, \"strategy\": \"ddp\", \"results\": \"fast.log\"}",
        "{" JOB ", \"ranks\": 16, \"strategy\": \"ddp\", \"results\": \"slow.log\"}",
        "{" JOB ", \"ranks\": 16, \"strategy\": \"ddp\", \"results\": [\"fast.log\"]}",
    };
    struct nw_batch *batch = open_batch();
    double step_ns[3];

    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 3; i++) {
            json_t *answer = ask(batch, lines[i]);

            step_ns[i] = number(answer, "step_ns");
            json_decref(answer);
        }
    }
    cr_expect(eq(int, files_read, 2));
    cr_expect(lt(dbl, step_ns[0], step_ns[1]));
    cr_expect(eq(dbl, step_ns[0], step_ns[2]));
    nw_batch_close(batch);
}

/* More files than are kept: they are read anew, and nothing is lost or mixed up. */
Test(batch, more_files_than_are_kept_are_read_again)
{
    struct nw_batch *batch = open_batch();
    double first = NAN;

    for (int i = 0; i < 600; i++) {
        char line[256];

        snprintf(line, sizeof line,
                 "{" JOB ", \"ranks\": 16, \"strategy\": \"ddp\", \"results\": [\"fast-%d.log\"]}",
                 i % 300);
        json_t *answer = ask(batch, line);

        if (i == 0)
            first = number(answer, "step_ns");
        cr_assert(eq(dbl, number(answer, "step_ns"), first), "line %d", i);
        json_decref(answer);
    }
    cr_expect(gt(int, files_read, 300));
    nw_batch_close(batch);
}

Test(batch, options_of_one_line_do_not_reach_the_next)
{
    struct nw_batch *batch = open_batch();
    const char *plain = "{" JOB ", \"ranks\": 8, \"strategy\": \"fsdp\"}";
    json_t *before = ask(batch, plain);
    json_t *changed =
        ask(batch, "{" JOB ", \"ranks\": 8, \"strategy\": \"fsdp\", \"recompute\": \"full\", "
                   "\"assume\": [\"hbm_share=0.4\"], \"tied\": true}");
    json_t *after = ask(batch, plain);

    cr_expect(gt(dbl, number(changed, "step_ns"), number(before, "step_ns")));
    cr_expect(eq(dbl, number(after, "step_ns"), number(before, "step_ns")));
    cr_expect(eq(dbl, number(json_object_get(changed, "assumed"), "HBM_SHARE"), 0.4));
    json_decref(before);
    json_decref(changed);
    json_decref(after);
    nw_batch_close(batch);
}

Test(batch, node_counts_that_are_left_out_are_told)
{
    struct nw_batch *batch = open_batch();
    json_t *answer = ask(batch, "{" JOB ", \"nodes\": [1, 2], \"strategy\": \"ddp\"}");

    cr_expect(eq(sz, json_array_size(json_object_get(answer, "steps")), 1));
    cr_expect(eq(dbl, number(answer, "node_counts_without_measurement"), 1));
    cr_expect(eq(dbl, number(answer, "node_counts_without_even_batch"), 0));
    json_decref(answer);
    answer = ask(batch, "{" JOB ", \"nodes\": [1, 3], \"global-batch\": 512, \"inter-node\": 20, "
                        "\"strategy\": \"ddp\"}");
    cr_expect(eq(sz, json_array_size(json_object_get(answer, "steps")), 1));
    cr_expect(eq(dbl, number(answer, "node_counts_without_even_batch"), 1));
    json_decref(answer);
    nw_batch_close(batch);
}

/* Curves of a file are kept for lines that assume the same of them. */
Test(batch, an_assumed_import_error_is_that_of_its_line)
{
    static const char *const assumes[] = {"[]", "[\"IMPORT_ERROR=0.8\"]", "[]"};
    struct nw_batch *batch = open_batch();
    double width[3];

    for (int i = 0; i < 3; i++) {
        char line[256];

        snprintf(line, sizeof line,
                 "{" JOB ", \"ranks\": 16, \"strategy\": \"ddp\", \"overlap\": \"none\", "
                 "\"results\": \"bare.log\", \"assume\": %s}",
                 assumes[i]);
        json_t *answer = ask(batch, line);

        width[i] = number(answer, "step_high_ns") / number(answer, "step_ns");
        json_decref(answer);
    }
    cr_expect(gt(dbl, width[1], 1.05 * width[0]));
    cr_expect(eq(dbl, width[2], width[0]));
    cr_expect(eq(int, files_read, 1));
    nw_batch_close(batch);
}
