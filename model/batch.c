#include "model/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "model/batch_files.h"
#include "model/json_parts.h"
#include "model/platform.h"
#include "model/request_parts.h"

/* Of one line: numbers as text, and lists joined with commas. */
#define TEXTS_BYTES 16384

struct nw_batch {
    struct nw_model_request base;
    struct nw_curves base_curves; /* of `results`, with base.gpus_per_node and the next */
    double import_error;
    const struct nw_results *results;
    struct nw_batch_files files;
    char texts[TEXTS_BYTES];
    size_t text_length;
};

/* ---- one line as a request ----------------------------------------------------------------- */

/* Room in the line's texts; what was put there stays until the next line. */
static nw_rc put_text(struct nw_batch *batch, const char *text, const char **text_out)
{
    const size_t length = strlen(text) + 1;

    if (length > sizeof batch->texts - batch->text_length)
        return nw_fail(NW_EUSAGE, "the line has more than %d bytes of numbers and lists",
                       TEXTS_BYTES);
    memcpy(batch->texts + batch->text_length, text, length);
    *text_out = batch->texts + batch->text_length;
    batch->text_length += length;
    return NW_OK;
}

static nw_rc scalar_text(struct nw_batch *batch, const char *key, const json_t *value,
                         const char **text_out)
{
    char number[48];

    if (json_is_string(value)) {
        *text_out = json_string_value(value);
        return NW_OK;
    }
    if (json_is_boolean(value)) {
        *text_out = json_is_true(value) ? "yes" : "no";
        return NW_OK;
    }
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, sizeof number, "%.17g", json_real_value(value));
    else
        return nw_fail(NW_EUSAGE,
                       "key %.60s: this value is not understood; accepted: a string, a number, "
                       "true or false",
                       key);
    return put_text(batch, number, text_out);
}

/* [1, 2, 4] as "1,2,4". */
static nw_rc list_text(struct nw_batch *batch, const char *key, const json_t *list,
                       const char **text_out)
{
    char joined[512] = "";
    size_t length = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const size_t before = batch->text_length;
        const char *word;

        NW_TRY(scalar_text(batch, key, json_array_get(list, i), &word));
        const int added =
            snprintf(joined + length, sizeof joined - length, "%s%s", i > 0 ? "," : "", word);

        batch->text_length = before;
        if (added < 0 || (size_t)added >= sizeof joined - length)
            return nw_fail(NW_EUSAGE, "key %.60s: the list is longer than %zu characters", key,
                           sizeof joined - 1);
        length += (size_t)added;
    }
    return put_text(batch, joined, text_out);
}

static nw_rc unknown_key(const char *key)
{
    const char *names[160] = {NULL};
    size_t count = 0;

    for (size_t i = 0; i < nw_model_option_count && count < 159; i++)
        if (nw_model_options[i].name != NULL)
            names[count++] = nw_model_options[i].name;
    const char *near = nw_nearest_name(key, names);

    if (near != NULL)
        return nw_fail(NW_EUSAGE, "unknown key \"%.60s\"; did you mean \"%s\"?", key, near);
    return nw_fail(NW_EUSAGE,
                   "unknown key \"%.60s\"; accepted: id, results, and the options of predict "
                   "without their dashes",
                   key);
}

static nw_rc not_a_text(const json_t *value, const char *key)
{
    char *found = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    const nw_rc rc = nw_fail(NW_EUSAGE, "key %s: %.40s is not a text; accepted: a list of texts",
                             key, found != NULL ? found : "what stands there");

    free(found);
    return rc;
}

static nw_rc set_list(const struct nw_option *row, const json_t *value,
                      struct nw_model_request *request)
{
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;

    for (size_t i = 0; i < count; i++) {
        const char *text =
            json_string_value(json_is_array(value) ? json_array_get(value, i) : value);

        if (text == NULL)
            return not_a_text(json_is_array(value) ? json_array_get(value, i) : value, row->name);
        NW_TRY(nw_option_set(row, request, text, row->name));
    }
    return NW_OK;
}

static nw_rc set_key(struct nw_batch *batch, const char *key, const json_t *value,
                     struct nw_model_request *request)
{
    const struct nw_option *row = nw_option_find(nw_model_options, nw_model_option_count, key);
    const char *text;
    char source[80];

    if (row == NULL)
        return unknown_key(key);
    if (json_is_null(value)) /* as if it were not there */
        return NW_OK;
    if (row->type == NW_OPTION_LIST)
        return set_list(row, value, request);
    if (json_is_array(value) && row->type == NW_OPTION_TEXT)
        NW_TRY(list_text(batch, key, value, &text));
    else
        NW_TRY(scalar_text(batch, key, value, &text));
    snprintf(source, sizeof source, "key %s", row->name);
    return nw_option_set(row, request, text, source);
}

static nw_rc read_line(struct nw_batch *batch, json_t *line, struct nw_model_request *request)
{
    const char *key;
    json_t *value;

    *request = batch->base;
    batch->text_length = 0;
    json_object_foreach(line, key, value)
    {
        if (strcmp(key, "id") != 0 && strcmp(key, "results") != 0)
            NW_TRY(set_key(batch, key, value, request));
    }
    return NW_OK;
}

/* ---- the answer ---------------------------------------------------------------------------- */

static nw_rc add_assumed(json_t *answer, const struct nw_model *model, nw_assumed assumed)
{
    json_t *constants = json_object(), *defaults = json_object();

    NW_TRY(nw_json_set_new(answer, "assumed", constants));
    for (int i = 0; i < NW_CONSTANT_COUNT; i++)
        if ((assumed & (nw_assumed)1 << i) != 0)
            NW_TRY(nw_json_set_real(constants, nw_constants[i].key,
                                    model->platform.assumptions.value[i]));
    NW_TRY(nw_json_set_new(answer, "defaults", defaults));
    for (size_t i = 0; i < model->defaults.count; i++)
        NW_TRY(nw_json_set_text(defaults, model->defaults.items[i].option,
                                model->defaults.items[i].value));
    return NW_OK;
}

/* The first step's fields themselves, or a list under "steps". */
static nw_rc add_steps(json_t *answer, const struct nw_model *model, const struct nw_steps *steps)
{
    const bool single = model->node_count_count == 1 && model->strategies[1] == NULL;
    nw_assumed assumed = 0;
    json_t *list = NULL;

    if (!single) {
        NW_TRY(nw_json_add_list(answer, "steps", &list));
        NW_TRY(nw_steps_json_left_out(steps, answer));
    }
    for (size_t i = 0; i < steps->count; i++) {
        json_t *step;

        assumed |= steps->items[i].assumed;
        NW_TRY(nw_model_step_to_json(model, &steps->items[i], &step));
        if (!single) {
            if (json_array_append_new(list, step) != 0)
                return nw_fail(NW_ENOMEM, "JSON: no memory");
            continue;
        }
        const int failed = json_object_update(answer, step);

        json_decref(step);
        if (failed != 0)
            return nw_fail(NW_ENOMEM, "JSON: no memory");
    }
    return add_assumed(answer, model, assumed);
}

static nw_rc answer_model(const struct nw_model *model, json_t *answer)
{
    struct nw_steps steps;

    NW_TRY(nw_predict_all(model, &steps));
    nw_rc rc =
        nw_json_set_u64(answer, "parameters", nw_transformer_parameter_count(&model->job.net));

    if (rc == NW_OK && model->platform.anchored)
        rc = nw_json_set_real(answer, "step_time_factor", model->platform.step_time_factor);
    if (rc == NW_OK)
        rc = add_steps(answer, model, &steps);
    nw_steps_free(&steps);
    return rc;
}

static nw_rc answer_line(struct nw_batch *batch, json_t *line, json_t *answer)
{
    const json_t *paths = json_object_get(line, "results");
    const struct nw_results *results = batch->results;
    const struct nw_curves *curves = NULL;
    struct nw_assumptions assumptions;
    struct nw_model_request request;
    struct nw_model model;

    NW_TRY(read_line(batch, line, &request));
    NW_TRY(nw_platform_assume(&request, &assumptions));
    const double import_error = assumptions.value[NW_CONSTANT_IMPORT_ERROR];

    if (paths != NULL && !json_is_null(paths)) {
        const struct nw_batch_set *set = NULL;

        NW_TRY(
            nw_batch_files_find(&batch->files, paths, request.gpus_per_node, import_error, &set));
        results = &set->view;
        curves = &set->curves;
    } else if (request.gpus_per_node == batch->base.gpus_per_node &&
               import_error == batch->import_error) {
        curves = &batch->base_curves;
    }
    NW_TRY(nw_model_open_on(&request, results, curves, &model));
    const nw_rc rc = answer_model(&model, answer);

    nw_model_close(&model);
    return rc;
}

static nw_rc add_error(json_t *answer)
{
    const struct nw_err *error = nw_last_error();

    NW_TRY(nw_json_set_int(answer, "rc", nw_rc_exit_code(error->rc)));
    return nw_json_set_text(answer, "error", error->text);
}

static nw_rc name_answer(const json_t *id, uint64_t number, json_t **answer_out)
{
    json_t *answer = json_object();
    const nw_rc rc = id != NULL
                         ? nw_json_set_new(answer, "id", json_incref((json_t *)(uintptr_t)id))
                         : nw_json_set_u64(answer, "line", number);

    if (rc != NW_OK) {
        json_decref(answer);
        return rc;
    }
    *answer_out = answer;
    return NW_OK;
}

static nw_rc refuse(const json_t *id, uint64_t number, json_t **answer_out)
{
    json_t *answer;

    NW_TRY(name_answer(id, number, &answer));
    const nw_rc rc = add_error(answer);

    if (rc != NW_OK) {
        json_decref(answer);
        return rc;
    }
    *answer_out = answer;
    return NW_OK;
}

nw_rc nw_batch_refuse(uint64_t number, json_t **answer_out)
{
    return refuse(NULL, number, answer_out);
}

nw_rc nw_batch_answer(struct nw_batch *batch, const char *line, size_t length, uint64_t number,
                      json_t **answer_out)
{
    json_error_t error;
    json_t *question = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    json_t *answer = NULL;
    nw_rc rc;

    if (!json_is_object(question)) {
        if (question == NULL)
            nw_fail(NW_EUSAGE, "line %llu, column %d: not valid JSON: %s",
                    (unsigned long long)number, error.column > 0 ? error.column : 1, error.text);
        else
            nw_fail(NW_EUSAGE, "line %llu: not a JSON object; accepted: {\"model\": …}",
                    (unsigned long long)number);
        json_decref(question);
        return nw_batch_refuse(number, answer_out);
    }
    const json_t *id = json_object_get(question, "id");

    rc = name_answer(id, number, &answer);
    if (rc == NW_OK)
        rc = answer_line(batch, question, answer);
    if (rc == NW_OK) {
        *answer_out = answer;
    } else {
        json_decref(answer); /* half filled */
        rc = refuse(id, number, answer_out);
    }
    json_decref(question);
    return rc;
}

/* ---- open and close ------------------------------------------------------------------------ */

nw_rc nw_batch_open(const struct nw_model_request *base, const struct nw_results *results,
                    nw_batch_reader *reader, struct nw_batch **batch_out)
{
    struct nw_batch *batch = calloc(1, sizeof *batch);
    struct nw_assumptions assumptions;
    nw_rc rc;

    if (batch == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the batch");
    batch->base = *base;
    batch->results = results;
    batch->files.reader = reader;
    rc = nw_platform_assume(base, &assumptions);
    batch->import_error = assumptions.value[NW_CONSTANT_IMPORT_ERROR];
    if (rc == NW_OK && results != NULL)
        rc = nw_curves_add_with(&batch->base_curves, results, base->gpus_per_node,
                                batch->import_error);
    if (rc != NW_OK) {
        nw_batch_close(batch);
        return rc;
    }
    *batch_out = batch;
    return NW_OK;
}

void nw_batch_close(struct nw_batch *batch)
{
    if (batch == NULL)
        return;
    nw_batch_files_forget(&batch->files);
    nw_curves_free(&batch->base_curves);
    free(batch);
}
