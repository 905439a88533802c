#include "cli/predict_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inputs.h"
#include "model/batch.h"

/* One line without its newline; what is beyond `size` is passed over. false: the file has ended. */
static bool next_line(FILE *file, char *line, size_t size, size_t *length_out, bool *too_long_out)
{
    size_t length = 0;
    int c;

    *too_long_out = false;
    while ((c = getc_unlocked(file)) != EOF && c != '\n') {
        if (length < size)
            line[length++] = (char)c;
        else
            *too_long_out = true;
    }
    *length_out = length;
    return c == '\n' || length > 0;
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

static nw_rc print_line(json_t *answer)
{
    const int failed = json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);

    json_decref(answer);
    if (failed != 0 || putchar('\n') == EOF)
        return nw_fail(NW_EIO, "standard output: cannot write the answers");
    return nw_cli_finish_stdout(); /* who asks line by line waits for each */
}

static nw_rc answer_all(FILE *file, const char *path, struct nw_batch *batch, char *line)
{
    size_t length;
    bool too_long;

    for (uint64_t number = 1; next_line(file, line, NW_BATCH_LINE_MAX, &length, &too_long);
         number++) {
        json_t *answer;

        if (is_blank(line, length))
            continue;
        if (too_long) {
            nw_fail(NW_EUSAGE, "line %llu: longer than %u bytes", (unsigned long long)number,
                    NW_BATCH_LINE_MAX);
            NW_TRY(nw_batch_refuse(number, &answer));
        } else {
            NW_TRY(nw_batch_answer(batch, line, length, number, &answer));
        }
        NW_TRY(print_line(answer));
    }
    if (ferror(file))
        return nw_fail(NW_EIO, "%s: cannot be read to its end: %s", path, strerror(errno));
    return NW_OK;
}

static nw_rc answer_file(FILE *file, const struct nw_model_args *args,
                         const struct nw_results *results)
{
    char *line = malloc(NW_BATCH_LINE_MAX);
    struct nw_batch *batch;

    if (line == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a line");
    nw_rc rc = nw_batch_open(&args->request, results->run_count > 0 ? results : NULL,
                             nw_cli_read_measured, &batch);

    if (rc == NW_OK) {
        rc = answer_all(file, args->batch_path, batch, line);
        nw_batch_close(batch);
    }
    free(line);
    return rc;
}

nw_rc nw_cli_predict_batch(const struct nw_model_args *args, const struct nw_results *results)
{
    if (strcmp(args->batch_path, "-") == 0)
        return answer_file(stdin, args, results);
    FILE *file = fopen(args->batch_path, "r");

    if (file == NULL)
        return nw_fail(NW_EIO, "%s: cannot open for reading: %s", args->batch_path,
                       strerror(errno));
    const nw_rc rc = answer_file(file, args, results);

    fclose(file);
    return rc;
}
