#include "model/training_log.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define LINE_BYTES    8192   /* what is longer is cut: the numbers stand in front */
#define SHORTEST_LINE 5u     /* "1s/it" */
#define VALUES_MAX    65536u /* the last ones are kept */
#define NUMBER_BYTES  40
#define LOG_MIB       256u /* a million lines of Megatron-LM; a stream without end ends here */
#define LOG_BYTES     ((uint64_t)LOG_MIB << 20)

/* What stands before the number (behind it blanks, '=', ':' and quotes are passed over), or behind
 * it; and what the line must have beside. The first row that a log knows speaks for it. */
struct pattern {
    const char *writer, *before, *after, *also;
    nw_log_unit unit;
    double scale;  /* of the number, to ns or per second */
    bool inverted; /* the number is steps per second */
};
static const struct pattern patterns[] = {
    {"Megatron-LM", "elapsed time per iteration (ms)", NULL, NULL, NW_LOG_NS, 1e6, false},
    {"Megatron-LM", "elapsed time per iteration (s)", NULL, NULL, NW_LOG_NS, 1e9, false},
    {"NeMo", "train_step_timing in s", NULL, NULL, NW_LOG_NS, 1e9, false},
    {"Megatron-Bridge", "Step Time", "s", NULL, NW_LOG_NS, 1e9, false},
    {"DeepSpeed pipeline", "iter time (s)", NULL, NULL, NW_LOG_NS, 1e9, false},
    {"DeepSpeed", "CurrSamplesPerSec", NULL, NULL, NW_LOG_SAMPLES_PER_S, 1, false},
    {"MaxText", "seconds", NULL, "completed step", NW_LOG_NS, 1e9, false},
    {"torchtitan", "tps", NULL, "step", NW_LOG_TOKENS_PER_S_PER_GPU, 1, false},
    {"torchtune", "tokens_per_second_per_gpu", NULL, NULL, NW_LOG_TOKENS_PER_S_PER_GPU, 1, false},
    {"InternEvo", "tgs (tokens/gpu/second)", NULL, NULL, NW_LOG_TOKENS_PER_S_PER_GPU, 1, false},
    {"llm.c", NULL, " ms | ", "step ", NW_LOG_NS, 1e6, false},
    {"nanoGPT", "time", "ms", "iter ", NW_LOG_NS, 1e6, false},
    {"PaddleNLP", "interval_steps_per_second", NULL, NULL, NW_LOG_NS, 1e9, true},
    {"MosaicML Composer", "throughput/batches_per_sec", NULL, NULL, NW_LOG_NS, 1e9, true},
    {"fairseq", "\"ups\"", NULL, NULL, NW_LOG_NS, 1e9, true},
    {"tqdm", NULL, "s/it", NULL, NW_LOG_NS, 1e9, false},
    {"tqdm", NULL, "it/s", NULL, NW_LOG_NS, 1e9, true},
    /* Steps per second have three decimals, of 50 s a step one digit: samples first. */
    {"Hugging Face Trainer", "train_samples_per_second", NULL, NULL, NW_LOG_SAMPLES_PER_S, 1,
     false},
    {"Hugging Face Trainer", "train_steps_per_second", NULL, NULL, NW_LOG_NS, 1e9, true},
};
#define PATTERN_COUNT (sizeof patterns / sizeof patterns[0])

struct series { /* of one pattern: a ring of the last values */
    double *values;
    size_t count, room; /* count: of all lines */
};

struct scan {
    struct series series[PATTERN_COUNT];
    uint64_t stated[NW_LOG_STATED_COUNT];
};

/* ---- one line ------------------------------------------------------------------------------ */

/* "12,905.3" as 12905.3; false: no number stands here. */
static bool read_number(const char *text, double *value_out)
{
    char digits[NUMBER_BYTES];
    size_t length = 0;

    while (length + 1 < sizeof digits && *text != '\0' && strchr("0123456789.,+-eE", *text)) {
        if (*text == ',' && !isdigit((unsigned char)text[1]))
            break;
        if (*text != ',')
            digits[length++] = *text;
        text++;
    }
    while (length > 0 && !isdigit((unsigned char)digits[length - 1]))
        length--;
    digits[length] = '\0';
    if (length == 0 || nw_parse_double(digits, 0, 1e15, value_out) != NW_OK) {
        nw_clear_error();
        return false;
    }
    return *value_out > 0;
}

/* `wanted` NULL: whatever follows. Blanks between number and unit are passed over. */
static bool is_followed_by(const char *number, const char *wanted)
{
    if (wanted == NULL)
        return true;
    number += strspn(number, "0123456789.,+-eE");
    number += strspn(number, " ");
    return strncmp(number, wanted, strlen(wanted)) == 0;
}

static bool number_behind(const char *line, const char *key, const char *after, double *value_out)
{
    for (const char *at = strstr(line, key); at != NULL; at = strstr(at + 1, key)) {
        const char *number = at + strlen(key);

        if (at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
            continue; /* part of another word */
        number += strspn(number, " \t:='\"");
        if (read_number(number, value_out) && is_followed_by(number, after))
            return true;
    }
    return false;
}

static bool number_before(const char *line, const char *unit, double *value_out)
{
    const char *at = strstr(line, unit), *number = at;

    if (at == NULL)
        return false;
    while (number > line && strchr("0123456789.,", number[-1]) != NULL)
        number--;
    return number < at && read_number(number, value_out);
}

static bool apply(const struct pattern *pattern, const char *line, double *value_out)
{
    double value;

    if (pattern->also != NULL && strstr(line, pattern->also) == NULL)
        return false;
    if (pattern->before != NULL ? !number_behind(line, pattern->before, pattern->after, &value)
                                : !number_before(line, pattern->after, &value))
        return false;
    value = pattern->inverted ? pattern->scale / value : pattern->scale * value;
    if (!(value > 0) || !isfinite(value))
        return false;
    *value_out = value;
    return true;
}

static nw_rc keep(struct series *series, double value)
{
    if (series->count == series->room && series->room < VALUES_MAX) {
        const size_t room = series->room > 0 ? 2 * series->room : 64;
        double *values = realloc(series->values, room * sizeof *values);

        if (values == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the steps of a log");
        series->values = values;
        series->room = room;
    }
    series->values[series->count++ % VALUES_MAX] = value;
    return NW_OK;
}

/* Megatron-LM prints its arguments: "  world_size ........ 16". */
static uint64_t argument(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    double value;

    if (at == NULL || (at > line && !isspace((unsigned char)at[-1])))
        return 0;
    at += strlen(key);
    if (strncmp(at, " ...", 4) != 0)
        return 0;
    at += strspn(at, " .");
    return read_number(at, &value) && value == floor(value) && value <= 1e9 ? (uint64_t)value : 0;
}

static nw_rc take_line(struct scan *scan, const char *line)
{
    static const char *const keys[NW_LOG_STATED_COUNT] = {
        [NW_LOG_RANKS] = "world_size",
        [NW_LOG_GLOBAL_BATCH] = "global_batch_size",
        [NW_LOG_MICRO_BATCH] = "micro_batch_size",
        [NW_LOG_SEQUENCE] = "seq_length",
        [NW_LOG_TP] = "tensor_model_parallel_size",
        [NW_LOG_PP] = "pipeline_model_parallel_size",
        [NW_LOG_CP] = "context_parallel_size",
    };
    double value;

    if (strlen(line) < SHORTEST_LINE)
        return NW_OK;
    for (int i = 0; i < NW_LOG_STATED_COUNT; i++) {
        const uint64_t stated = argument(line, keys[i]);

        if (stated > 0)
            scan->stated[i] = stated;
    }
    for (size_t i = 0; i < PATTERN_COUNT; i++)
        if (apply(&patterns[i], line, &value))
            NW_TRY(keep(&scan->series[i], value));
    return NW_OK;
}

/* ---- the stream ---------------------------------------------------------------------------- */

/* One line, or one state of a progress bar ('\r'); colours (ESC [ … letter) are left out. */
static bool next_line(FILE *stream, uint64_t *left, char line[LINE_BYTES])
{
    bool any = false, colour = false;
    size_t length = 0;
    int c = EOF;

    while (*left > 0 && (c = getc_unlocked(stream)) != EOF && c != '\n' && c != '\r') {
        any = true;
        *left -= 1;
        if (c == 27)
            colour = true;
        else if (colour)
            colour = !isalpha(c);
        else if (length + 1 < LINE_BYTES && c != '\0')
            line[length++] = (char)c;
    }
    *left -= c == '\n' || c == '\r';
    line[length] = '\0';
    return c != EOF || any;
}

/* How many values at the start are not steady: those above the median of the second half by more
 * than a twentieth, and the first in any case where there are others. Compilers, caches and
 * allocators settle in the first steps. Rates are below it instead. */
static size_t warm_up_of(const double *values, size_t count, bool rate)
{
    struct nw_stats half;
    size_t at = count > 2 ? 1 : 0;

    if (count < 4 || nw_stats_of(values + count / 2, count - count / 2, &half) != NW_OK) {
        nw_clear_error();
        return at;
    }
    while (at < count / 2 &&
           (rate ? values[at] < half.median / 1.05 : values[at] > half.median * 1.05))
        at++;
    return at;
}

static nw_rc tell(const struct scan *scan, const char *what, struct nw_training_log *log_out)
{
    size_t row = 0;

    while (row < PATTERN_COUNT && scan->series[row].count == 0)
        row++;
    if (row == PATTERN_COUNT)
        return nw_fail(
            NW_EUSAGE,
            "%s: no line tells how long a step takes; known: Megatron-LM, DeepSpeed, "
            "NeMo, torchtitan, torchtune, MaxText, InternEvo, llm.c, nanoGPT, PaddleNLP, "
            "Composer, fairseq, Hugging Face Trainer and other progress bars "
            "(or give --measured-step)",
            what);
    const struct series *series = &scan->series[row];
    struct nw_training_log log = {
        .writer = patterns[row].writer, .unit = patterns[row].unit, .lines = series->count};
    size_t count = series->count, start = 0;

    memcpy(log.stated, scan->stated, sizeof log.stated);
    if (count > VALUES_MAX) /* long past its start */
        count = VALUES_MAX;
    else
        start = warm_up_of(series->values, count, log.unit != NW_LOG_NS);
    NW_TRY(nw_stats_of(series->values + start, count - start, &log.value));
    *log_out = log;
    return NW_OK;
}

nw_rc nw_training_log_scan(FILE *stream, const char *what, struct nw_training_log *log_out)
{
    struct scan scan = {.stated = {0}};
    char line[LINE_BYTES];
    uint64_t left = LOG_BYTES;
    nw_rc rc = NW_OK;

    while (rc == NW_OK && next_line(stream, &left, line))
        rc = take_line(&scan, line);
    if (rc == NW_OK && ferror(stream))
        rc = nw_fail(NW_EIO, "%s: cannot be read: %s", what, strerror(errno));
    if (rc == NW_OK && left == 0 && getc_unlocked(stream) != EOF)
        rc = nw_fail(NW_EUSAGE,
                     "%s: the log goes on after %u MiB; accepted: up to that; give a part of it "
                     "(head -n 100000)",
                     what, LOG_MIB);
    if (rc == NW_OK)
        rc = tell(&scan, what, log_out);
    for (size_t i = 0; i < PATTERN_COUNT; i++)
        free(scan.series[i].values);
    return rc;
}

nw_rc nw_training_log_read(const char *path, struct nw_training_log *log_out)
{
    if (strcmp(path, "-") == 0)
        return nw_training_log_scan(stdin, "standard input", log_out);
    FILE *stream = fopen(path, "r");

    if (stream == NULL)
        return nw_fail(NW_EIO, "%s: cannot open for reading: %s", path, strerror(errno));
    const nw_rc rc = nw_training_log_scan(stream, path, log_out);

    fclose(stream);
    return rc;
}
