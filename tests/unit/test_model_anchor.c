#include "model_support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/training_log.h"

static nw_rc open_with(const struct nw_model_request *request, struct nw_model *model)
{
    return nw_model_open(request, NULL, model);
}

static struct nw_step step_of(const struct nw_model_request *request)
{
    struct nw_model model;
    struct nw_steps steps;
    struct nw_step step;

    cr_assert(eq(int, open_with(request, &model), NW_OK), "%s", nw_last_error()->text);
    cr_assert(eq(int, nw_predict_all(&model, &steps), NW_OK), "%s", nw_last_error()->text);
    step = steps.items[0];
    nw_steps_free(&steps);
    nw_model_close(&model);
    return step;
}

static struct nw_model_request a_request(const char *strategy)
{
    struct nw_model_request request = request_for("llama-3-8b");

    request.gpu = "h100-sxm";
    request.strategy = strategy;
    request.micro_batch = 1;
    request.global_batch = 128;
    request.nic_gbit_per_s = 400;
    request.ranks = 8;
    return request;
}

Test(anchor, the_measured_step_is_met_where_it_was_measured)
{
    static const char *const strategies[] = {"ddp", "zero1", "zero3", "fsdp"};

    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        for (int ranks = 8; ranks <= 16; ranks += 8) {
            struct nw_model_request request = a_request(strategies[i]);
            double last = INFINITY;

            request.ranks = ranks;
            const double alone = step_of(&request).step_ns;

            for (double times = 3; times > 0.9; times *= 0.8) {
                struct nw_model model;

                request.measured_step_ns = times * alone;
                request.measured_ranks = ranks;
                cr_expect(epsilon_eq(dbl, step_of(&request).step_ns / (times * alone), 1, 1e-5),
                          "%s on %d", strategies[i], ranks);
                cr_assert(eq(int, open_with(&request, &model), NW_OK));
                cr_expect(lt(dbl, model.anchor.factor, last));
                cr_expect(epsilon_eq(dbl, model.anchor.predicted_ns, alone, 1e-6 * alone));
                last = model.anchor.factor;
                nw_model_close(&model);
            }
        }
    }
}

/* The range around it is narrower than without, where it was measured and on more nodes. There the
 * step grows by less: wires between nodes are not what the factor is about. */
Test(anchor, it_narrows_the_range_and_carries_over_to_more_nodes)
{
    struct nw_model_request request = a_request("fsdp");

    request.ranks = 32;
    const struct nw_step alone = step_of(&request);

    request.measured_step_ns = 2 * 4 * alone.step_ns;
    request.measured_ranks = 8;
    const struct nw_step anchored = step_of(&request);

    cr_expect(lt(dbl, (anchored.high_ns - anchored.low_ns) / anchored.step_ns,
                 (alone.high_ns - alone.low_ns) / alone.step_ns));
    cr_expect(gt(dbl, anchored.step_ns, alone.step_ns));
    cr_expect(lt(dbl, anchored.step_ns, 3 * alone.step_ns));

    request.ranks = 8;
    const struct nw_step anchored_here = step_of(&request);

    request.measured_step_ns = request.measured_ranks = 0;
    const struct nw_step here = step_of(&request);

    cr_expect(lt(dbl, (anchored_here.high_ns - anchored_here.low_ns) / anchored_here.step_ns,
                 (here.high_ns - here.low_ns) / here.step_ns));
    cr_expect(lt(dbl, anchored.step_ns / alone.step_ns, anchored_here.step_ns / here.step_ns));
    cr_expect(ge(dbl, (alone.high_ns - alone.low_ns) / alone.step_ns, 0.3999));
}

Test(anchor, tokens_per_second_and_an_earlier_factor_say_the_same)
{
    struct nw_model_request request = a_request("zero1");
    struct nw_model model;

    request.measured_step_ns = 9e9;
    request.measured_ranks = 8;
    const double by_step = step_of(&request).step_ns;

    cr_assert(eq(int, open_with(&request, &model), NW_OK));
    const double factor = model.anchor.factor;

    nw_model_close(&model);
    request.measured_step_ns = 0;
    request.measured_tokens_per_s = 128 * 4096 / 9.0;
    cr_expect(epsilon_eq(dbl, step_of(&request).step_ns, by_step, 1e-6 * by_step));
    request.measured_tokens_per_s = 0;
    request.measured_ranks = 0;
    request.time_factor = factor;
    cr_expect(epsilon_eq(dbl, step_of(&request).step_ns, by_step, 1e-6 * by_step));
}

Test(anchor, contradictions_are_refused_with_the_figure)
{
    static const struct {
        double step_ns, tokens_per_s, factor;
        int ranks, nodes;
        const char *strategy, *says;
    } cases[] = {
        {1e9, 0, 0, 0, 0, "fsdp", "--on"},
        {0, 0, 0, 8, 0, "fsdp", "what was measured"},
        {0, 0, 0, 0, 2, "fsdp", "--measured-nodes needs"},
        {1e9, 5e4, 0, 8, 0, "fsdp", "one of them"},
        {1e9, 0, 1.2, 8, 0, "fsdp", "--time-factor"},
        {1e9, 0, 0, 8, 3, "fsdp", "on each of 3 nodes"},
        {1e9, 0, 0, 8, 0, NULL, "--strategy"},
        {1e6, 0, 0, 8, 0, "fsdp", "times the peak of H100"},
        {5e9, 0, 0, 24, 0, "fsdp", "multiple of 24"},
        {1e15, 0, 0, 8, 0, "fsdp", "times as long as the"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_model_request request = a_request(cases[i].strategy);
        struct nw_model model;

        request.measured_step_ns = cases[i].step_ns;
        request.measured_tokens_per_s = cases[i].tokens_per_s;
        request.time_factor = cases[i].factor;
        request.measured_ranks = cases[i].ranks;
        request.measured_nodes = cases[i].nodes;
        cr_assert(eq(int, open_with(&request, &model), NW_EUSAGE), "%s", cases[i].says);
        cr_expect(ne(ptr, strstr(nw_last_error()->text, cases[i].says), NULL),
                  "\"%s\" is not in: %s", cases[i].says, nw_last_error()->text);
    }
}

static const char *file_to_remove;

static void remove_file(void) /* after a failed assertion too */
{
    if (file_to_remove != NULL)
        remove(file_to_remove);
}

/* A log says of which run it is: its GPUs and batch are taken, other options must agree. */
Test(anchor, a_log_of_another_job_is_refused, .fini = remove_file)
{
    static char path[] = "/tmp/nodeworth-log-XXXXXX";
    struct nw_model_request request = a_request("fsdp");
    struct nw_model model;
    const int descriptor = mkstemp(path);
    FILE *log = fdopen(descriptor, "w");

    cr_assert(ne(ptr, log, NULL));
    fprintf(log, "  world_size ................ 16\n  global_batch_size ......... 64\n"
                 "  seq_length ................ 4096\n  tensor_model_parallel_size  ... 1\n"
                 "  micro_batch_size .......... 1\n");
    for (int i = 1; i < 10; i++)
        fprintf(log, "iteration %d/ 9 | elapsed time per iteration (ms): 4000.0 |\n", i);
    fclose(log);
    file_to_remove = path;
    request.measured_log = path;
    request.sequence = 4096;
    request.global_batch = 0;
    cr_assert(eq(int, open_with(&request, &model), NW_OK), "%s", nw_last_error()->text);
    cr_expect(eq(int, model.anchor.rank_count, 16));
    cr_expect(eq(int, model.anchor.node_count, 2));
    cr_expect(eq(u64, model.anchor.global_batch, 64));
    cr_expect(eq(dbl, model.anchor.step_ns, 4e9));
    nw_model_close(&model);
    request.sequence = 8192;
    cr_expect(eq(int, open_with(&request, &model), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--seq 4096, here it is 8192"), NULL), "%s",
              nw_last_error()->text);
    request.sequence = 4096;
    request.measured_ranks = 8;
    cr_expect(eq(int, open_with(&request, &model), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "--on 16, here it is 8"), NULL), "%s",
              nw_last_error()->text);
    request.measured_ranks = 0;
    request.global_batch = 128;
    cr_expect(eq(int, open_with(&request, &model), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "global batch of 64, here it is 128"), NULL),
              "%s", nw_last_error()->text);
    request.global_batch = 0;
    request.grad_accum = 2;
    cr_expect(eq(int, open_with(&request, &model), NW_EUSAGE));
    cr_expect(ne(ptr, strstr(nw_last_error()->text, "global batch of 64, here it is 32"), NULL),
              "%s", nw_last_error()->text);
    request.grad_accum = 4;
    cr_expect(eq(int, open_with(&request, &model), NW_OK), "%s", nw_last_error()->text);
    nw_model_close(&model);
}

/* ---- logs ---------------------------------------------------------------------------------- */

static nw_rc scan(const char *text, struct nw_training_log *log)
{
    FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    const nw_rc rc = nw_training_log_scan(stream, "train.log", log);

    fclose(stream);
    return rc;
}

Test(training_log, each_writer_is_understood)
{
    static const struct {
        const char *line, *writer;
        nw_log_unit unit;
        double value;
    } cases[] = {
        {" [2024-01-01] iteration       10/     100 | consumed samples:         1280 | elapsed "
         "time "
         "per iteration (ms): 12905.3 | throughput per GPU (TFLOP/s/GPU): 411.2 |",
         "Megatron-LM", NW_LOG_NS, 12905.3e6},
        {"Epoch 0: :   4%| | 2/50 [00:30<12:00, v_num=0, global_step=1.0, train_step_timing in "
         "s=9.118]",
         "NeMo", NW_LOG_NS, 9.118e9},
        {"Step Time : 12.91s GPU utilization: 700.1MODEL_TFLOP/s/GPU", "Megatron-Bridge", NW_LOG_NS,
         12.91e9},
        {"steps: 20 loss: 6.8 iter time (s): 0.520 samples/sec: 61.5", "DeepSpeed pipeline",
         NW_LOG_NS, 0.52e9},
        {"[INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, "
         "RunningAvgSamplesPerSec=12.1, CurrSamplesPerSec=12.5, MemAllocated=21.3GB",
         "DeepSpeed", NW_LOG_SAMPLES_PER_S, 12.5},
        {"\x1b[31mstep: 10  \x1b[32mloss:  7.1\x1b[39m  memory: 47.0GiB(59%)  \x1b[34mtps: "
         "7,512\x1b[39m  mfu: 43.5%",
         "torchtitan", NW_LOG_TOKENS_PER_S_PER_GPU, 7512},
        {"Step 12 | loss:1.41 lr:2e-05 tokens_per_second_per_gpu:3050.25 peak_memory_active:20.1",
         "torchtune", NW_LOG_TOKENS_PER_S_PER_GPU, 3050.25},
        {"completed step: 7, seconds: 3.205, TFLOP/s/device: 410.1, Tokens/s/device: 9000, loss: 2",
         "MaxText", NW_LOG_NS, 3.205e9},
        {"tflops=190.2 step=5 loss=6.9 tgs (tokens/gpu/second)=4058.2 lr=1e-4", "InternEvo",
         NW_LOG_TOKENS_PER_S_PER_GPU, 4058.2},
        {"step   20/19560 | loss 7.1 (+0.1z)| norm 1.2 (+0.0z)| lr 1e-05 | 1365.12 ms | 38.9% bf16 "
         "MFU | 384012 tok/s",
         "llm.c", NW_LOG_NS, 1365.12e6},
        {"iter 100: loss 3.1415, time 135.21ms, mfu 41.20%", "nanoGPT", NW_LOG_NS, 135.21e6},
        {"loss: 7.1, interval_runtime: 3.6, interval_steps_per_second: 0.25, progress: 1",
         "PaddleNLP", NW_LOG_NS, 4e9},
        {"Train throughput/batches_per_sec: 0.2500", "MosaicML Composer", NW_LOG_NS, 4e9},
        {" 10%|#         | 100/1000 [01:40<15:00,  1.25s/it]", "tqdm", NW_LOG_NS, 1.25e9},
        {" 10%|#         | 100/1000 [00:25<03:45,  4.00it/s]", "tqdm", NW_LOG_NS, 0.25e9},
        {"{'train_runtime': 400.0, 'train_samples_per_second': 8.0, 'train_steps_per_second': 0.5}",
         "Hugging Face Trainer", NW_LOG_SAMPLES_PER_S, 8},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nw_training_log log;

        cr_assert(eq(int, scan(cases[i].line, &log), NW_OK), "%s", cases[i].line);
        cr_expect(eq(str, (char *)log.writer, (char *)cases[i].writer), "%s", cases[i].line);
        cr_expect(eq(int, (int)log.unit, (int)cases[i].unit), "%s", cases[i].line);
        cr_expect(epsilon_eq(dbl, log.value.median, cases[i].value, 1e-9 * cases[i].value), "%s",
                  cases[i].line);
    }
}

Test(training_log, the_start_is_left_out_and_the_spread_is_kept)
{
    char text[8192] = "  world_size ...................................... 16\n"
                      "  global_batch_size ............................... 256\n";
    static const double ms[] = {30000, 14000, 1000, 1010, 990,  1005,
                                995,   1000,  1020, 980,  1000, 1001};
    struct nw_training_log log;

    for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 " iteration %zu/ 50 | elapsed time per iteration (ms): %.1f |\r\n", i + 1, ms[i]);
    cr_assert(eq(int, scan(text, &log), NW_OK));
    cr_expect(eq(sz, log.lines, 12));
    cr_expect(eq(sz, log.value.count, 10));
    cr_expect(eq(dbl, log.value.median, 1e9));
    cr_expect(log.value.low >= 0.98e9 && log.value.high <= 1.02e9 &&
              log.value.low < log.value.high);
    cr_expect(eq(u64, log.stated[NW_LOG_RANKS], 16));
    cr_expect(eq(u64, log.stated[NW_LOG_GLOBAL_BATCH], 256));
    cr_expect(eq(u64, log.stated[NW_LOG_TP], 0));
}

Test(training_log, what_tells_no_step_is_refused)
{
    static const char *const texts[] = {
        "\n",
        "hello\nworld\n",
        "iteration 5 | elapsed time per iteration (ms): nan |\n",
        "elapsed time per iteration (ms): 0\n",
        "elapsed time per iteration (ms): 1e400\n",
        "tps: 100 without the word\n",
        "time 12ms\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct nw_training_log log;

        cr_expect(eq(int, scan(texts[i], &log), NW_EUSAGE), "%s", texts[i]);
    }
}

/* ---- without end --------------------------------------------------------------------------- */

static ssize_t no_end(void *cookie, char *buffer, size_t size)
{
    const char **start = cookie; /* once, then for ever: its last character */
    size_t length = 0;

    while (length < size && (*start)[1] != '\0')
        buffer[length++] = *(*start)++;
    memset(buffer + length, **start, size - length);
    return (ssize_t)size;
}

/* The reader stops by itself, inside a colour too. */
Test(training_log, a_stream_without_end_ends_with_a_message, .timeout = 120)
{
    static const char *const texts[] = {"\033[0", "\n", "iteration 0"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *at = texts[i];
        FILE *stream = fopencookie(&at, "r", (cookie_io_functions_t){.read = no_end});
        struct nw_training_log log;

        cr_assert(ne(ptr, stream, NULL));
        cr_expect(eq(int, nw_training_log_scan(stream, "train.log", &log), NW_EUSAGE));
        cr_expect(ne(ptr, strstr(nw_last_error()->text, "goes on after 256 MiB"), NULL), "%s",
                  nw_last_error()->text);
        fclose(stream);
    }
}

/* A progress bar whose colour has no letter ends with its state, not with the line. */
Test(training_log, a_torn_colour_ends_with_the_state_of_the_bar)
{
    struct nw_training_log log;

    cr_assert(eq(int, scan("\033[31\r 10%| 100/1000 [01:40<15:00,  1.25s/it]\r\n", &log), NW_OK),
              "%s", nw_last_error()->text);
    cr_expect(epsilon_eq(dbl, log.value.median, 1.25e9, 1));
}
