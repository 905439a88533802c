#include "report/replay_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"

#define CPU_SHARE_LEAST 0.95

struct part {
    const char *title;
    double predicted_ns, replayed_ns;
};
enum { PARTS_MAX = 4 + NW_STREAM_COUNT };

static const char *const exposed_titles[NW_STREAM_COUNT] = {
    [NW_STREAM_GRADIENTS] = "waiting for reduced gradients",
    [NW_STREAM_WEIGHTS] = "waiting for gathered weights",
    [NW_STREAM_TENSOR] = "waiting for tensor-parallel messages",
    [NW_STREAM_CONTEXT] = "waiting for context-parallel messages",
    [NW_STREAM_PIPELINE] = "waiting for messages between stages",
    [NW_STREAM_COPIES] = "waiting for copies to and from the host",
};

static size_t list_parts(const struct nw_replay_result *result, struct part parts[PARTS_MAX])
{
    const struct nw_stage_sums *predicted = &result->predicted_sums, *replayed = &result->sums;
    size_t count = 0;

    parts[count++] = (struct part){"computation", predicted->compute_ns, replayed->compute_ns};
    parts[count++] = (struct part){"optimizer update", predicted->update_ns, replayed->update_ns};
    for (int stream = 1; stream < NW_STREAM_COUNT; stream++)
        parts[count++] = (struct part){exposed_titles[stream], predicted->stream_exposed_ns[stream],
                                       replayed->stream_exposed_ns[stream]};
    parts[count++] = (struct part){"pipeline bubble", predicted->bubble_ns, replayed->bubble_ns};
    parts[count++] = (struct part){"what overlap costs", result->predicted.overlap_loss_ns, 0};
    return count;
}

static const char *difference(char text[32], double predicted, double replayed)
{
    snprintf(text, 32, "%+.1f %%", 100 * (replayed / predicted - 1));
    return predicted > 0 ? text : "–";
}

static void add_step(struct nw_table *table, const struct nw_replay_result *result)
{
    const double predicted = result->predicted.step_ns;
    char times[3][32], ends[80], error[32];

    nw_format_ns(times[0], predicted);
    nw_format_ns(times[1], result->step_ns.median);
    if (isfinite(result->step_ns.low))
        nw_print_to(ends, sizeof ends, "%s [%s, %s]", times[1],
                    nw_format_sig(times[2], result->step_ns.low / 1e6, 4),
                    nw_format_sig((char[32]){0}, result->step_ns.high / 1e6, 4));
    else
        nw_print_to(ends, sizeof ends, "%s", times[1]);
    nw_table_row(table, (const char *[]){"step", times[0], ends,
                                         difference(error, predicted, result->step_ns.median)});
}

static nw_rc print_table(FILE *stream, const struct nw_replay_result *result)
{
    static const struct nw_column columns[] = {
        {"", NW_LEFT},
        {"predicted", NW_RIGHT},
        {"replayed [95 %, ms]", NW_RIGHT},
        {"difference", NW_RIGHT},
    };
    struct part parts[PARTS_MAX];
    const size_t count = list_parts(result, parts);
    struct nw_table *table;

    NW_TRY(nw_table_open(columns, 4, &table));
    add_step(table, result);
    for (size_t i = 0; i < count; i++) {
        char predicted[32], replayed[32], error[32];

        if (parts[i].predicted_ns < 0.0005 * result->predicted.step_ns &&
            parts[i].replayed_ns < 0.0005 * result->step_ns.median)
            continue;
        nw_table_tree_row(
            table, 0,
            (const char *[]){parts[i].title, nw_format_ns(predicted, parts[i].predicted_ns),
                             nw_format_ns(replayed, parts[i].replayed_ns),
                             difference(error, parts[i].predicted_ns, parts[i].replayed_ns)});
    }
    return nw_table_print(table, stream);
}

/* Where most of the difference comes from. */
static void print_cause(FILE *stream, const struct nw_replay_result *result)
{
    struct part parts[PARTS_MAX];
    const size_t count = list_parts(result, parts);
    const struct part *most = &parts[0];
    char text[256], time[32];

    for (size_t i = 1; i < count; i++)
        if (fabs(parts[i].replayed_ns - parts[i].predicted_ns) >
            fabs(most->replayed_ns - most->predicted_ns))
            most = &parts[i];
    const double ns = most->replayed_ns - most->predicted_ns;

    if (fabs(ns) < 0.01 * result->predicted.step_ns)
        return;
    nw_print_to(text, sizeof text, "They part most in: %s, %s%s.", most->title, ns > 0 ? "+" : "-",
                nw_format_ns(time, fabs(ns)));
    nw_print_wrapped(stream, "", "", text);
}

nw_rc nw_report_replay(FILE *stream, const struct nw_replay_result *result)
{
    const bool is_virtual = !(result->unit_ns > 0);
    char text[512], skew[32], bytes[32];

    NW_TRY(print_table(stream, result));
    print_cause(stream, result);
    if (is_virtual) {
        nw_print_wrapped(
            stream, "", "",
            "SIMULATED: virtual time; each event took what it was predicted to take. "
            "This shows that the schedule is the simulated one, and measures nothing.");
        return NW_OK;
    }
    nw_print_to(
        text, sizeof text,
        "Median of %d steps%s; skew between ranks %s, slowest rank %d; message buffers %s a "
        "rank at most.",
        result->step_count, result->enough ? "" : nw_tr(" (the interval is wider than asked for)"),
        nw_format_ns(skew, result->skew_ns), result->slowest_rank,
        nw_format_bytes(bytes, result->buffer_bytes));
    nw_print_wrapped(stream, "", "", text);
    if (result->cpu_share < CPU_SHARE_LEAST) {
        nw_print_to(
            text, sizeof text,
            "WARNING: the computation had its core for %.0f %% of its time only: other work "
            "runs on these cores, the messages' own included. Give each rank two cores, or "
            "stop the other work, and run again.",
            100 * result->cpu_share);
        nw_print_wrapped(stream, "", "", text);
    }
    if (result->wrong_elements > 0)
        nw_print_to(text, sizeof text, "WRONG DATA: %lld elements of %llu verified calls.",
                    (long long)result->wrong_elements, (unsigned long long)result->checked_calls);
    else
        nw_print_to(text, sizeof text,
                    "Every element of %llu messages of a first step was verified: none was wrong.",
                    (unsigned long long)result->checked_calls);
    nw_print_wrapped(stream, "", "", text);
    return NW_OK;
}
