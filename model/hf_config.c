/* Hugging Face config.json: the reader. Which keys an architecture has: model/hf_config_table.c. */
#include "model/hf_config.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"

#define MAX_CONFIG_BYTES  (1u << 20)
#define MAX_ARCHITECTURES 64
#define MAX_NUMBERS                                                                                \
    (sizeof nw_hf_architectures[0].numbers / sizeof nw_hf_architectures[0].numbers[0])

static bool is_named(const char *const *names, const char *name)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* "LlamaForCausalLM" is of "Llama", "Qwen2MoeForCausalLM" not of "Qwen2". */
static bool is_class_of(const struct nw_hf_architecture *architecture, const char *name)
{
    static const char *const tails[] = {"For", "LMHead", "Model"};

    for (size_t i = 0; architecture->classes[i] != NULL; i++) {
        const size_t length = strlen(architecture->classes[i]);

        if (strncmp(architecture->classes[i], name, length) != 0)
            continue;
        for (size_t tail = 0; tail < sizeof tails / sizeof tails[0]; tail++)
            if (strncmp(name + length, tails[tail], strlen(tails[tail])) == 0)
                return true;
    }
    return false;
}

static const char *accepted_types(char *text, size_t size)
{
    const char *names[MAX_ARCHITECTURES + 1] = {NULL};

    for (size_t i = 0; i < nw_hf_architecture_count && i < MAX_ARCHITECTURES; i++)
        names[i] = nw_hf_architectures[i].model_types[0];
    return nw_join_names(text, size, names);
}

/* By model_type; by the class in "architectures" where that is absent or unknown. */
static nw_rc find_architecture(const json_t *root, const char *what,
                               const struct nw_hf_architecture **architecture_out)
{
    const char *type = NULL, *class = nw_hf_class(root);
    char accepted[600];

    if (!json_is_object(root))
        return nw_fail(NW_EUSAGE, "%s: a JSON object is expected (Hugging Face config.json)", what);
    NW_TRY(nw_json_get_text(root, what, "model_type", false, &type));
    for (size_t i = 0; i < nw_hf_architecture_count; i++) {
        if (type != NULL && is_named(nw_hf_architectures[i].model_types, type)) {
            *architecture_out = &nw_hf_architectures[i];
            return NW_OK;
        }
    }
    for (size_t i = 0; i < nw_hf_architecture_count; i++) {
        if (class != NULL && is_class_of(&nw_hf_architectures[i], class)) {
            *architecture_out = &nw_hf_architectures[i];
            return NW_OK;
        }
    }
    accepted_types(accepted, sizeof accepted);
    if (type == NULL && class == NULL)
        return nw_fail(NW_EUSAGE, "%s: key \"model_type\" is missing; accepted: %s", what,
                       accepted);
    return nw_fail(NW_EUSAGE, "%s: %s \"%.60s\" is not supported; accepted: %s", what,
                   type != NULL ? "model_type" : "architecture", type != NULL ? type : class,
                   accepted);
}

/* The key of a row that the config has; NULL: none, or null. */
static const char *given_key(const json_t *root, const struct nw_hf_number *row)
{
    const char *const keys[] = {row->key, row->other_key};

    for (size_t i = 0; i < 2; i++) {
        const json_t *value = keys[i] != NULL ? json_object_get(root, keys[i]) : NULL;

        if (value != NULL && !json_is_null(value))
            return keys[i];
    }
    return NULL;
}

/* Every missing key in one sentence. */
static nw_rc check_present(const json_t *root, const struct nw_hf_architecture *architecture,
                           const char *what)
{
    const char *missing[MAX_NUMBERS + 1] = {NULL};
    size_t count = 0;
    char text[400];

    for (const struct nw_hf_number *row = architecture->numbers; row->key != NULL; row++)
        if (!row->optional && given_key(root, row) == NULL)
            missing[count++] = row->key;
    if (count == 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s: a %s config needs %s \"%s\"", what, architecture->model_types[0],
                   count == 1 ? "key" : "the keys", nw_join_names(text, sizeof text, missing));
}

static nw_rc read_numbers(const json_t *root, const struct nw_hf_architecture *architecture,
                          const char *what, struct nw_hf_shape *shape)
{
    for (const struct nw_hf_number *row = architecture->numbers; row->key != NULL; row++) {
        const char *key = given_key(root, row);
        uint64_t value;

        if (key == NULL)
            continue;
        NW_TRY(nw_json_get_u64(root, what, key, true, &value));
        NW_TRY(nw_transformer_check_field(row->offset, value, what, key));
        memcpy((char *)shape + row->offset, &value, sizeof value);
    }
    return NW_OK;
}

static nw_rc read_flags(const json_t *root, const struct nw_hf_architecture *architecture,
                        const char *what, struct nw_hf_shape *shape)
{
    for (const struct nw_hf_flag *row = architecture->flags; row->key != NULL; row++) {
        const json_t *given = json_object_get(root, row->key);
        bool value = false;

        if (given == NULL || json_is_null(given))
            continue;
        NW_TRY(nw_json_get_bool(root, what, row->key, true, &value));
        value ^= row->inverted;
        for (size_t i = 0; i < row->count; i++)
            memcpy((char *)shape + row->fields[i], &value, sizeof value);
    }
    return NW_OK;
}

/* What every config leaves to be concluded. */
static nw_rc complete(const struct nw_hf_architecture *architecture, const char *what,
                      struct nw_transformer *net)
{
    if (net->ffn == 0)
        net->ffn = architecture->ffn_of_hidden * net->hidden;
    if (net->kv_heads == 0)
        net->kv_heads = net->heads;
    if (net->max_positions == 0)
        net->max_positions = net->positions;
    if (net->head_size == 0 && net->hidden % net->heads != 0)
        return nw_fail(NW_EUSAGE,
                       "%s: %llu attention heads do not divide the hidden size %llu; accepted: a "
                       "divisor, or \"head_dim\"",
                       what, (unsigned long long)net->heads, (unsigned long long)net->hidden);
    if (net->head_size == 0)
        net->head_size = net->hidden / net->heads;
    return nw_transformer_check(net, what);
}

static nw_rc read_config(const json_t *root, const char *what, struct nw_transformer *net_out)
{
    /* A model that also sees has the language model in an object of its own. */
    const json_t *language = json_object_get(root, "text_config");
    const json_t *keys = json_is_object(language) ? language : root;
    const struct nw_hf_architecture *architecture = NULL;

    NW_TRY(find_architecture(keys, what, &architecture));
    NW_TRY(check_present(keys, architecture, what));
    struct nw_hf_shape shape = architecture->fixed;

    NW_TRY(read_numbers(keys, architecture, what, &shape));
    NW_TRY(read_flags(keys, architecture, what, &shape));
    if (architecture->derive != NULL)
        NW_TRY(architecture->derive(keys, what, &shape));
    NW_TRY(nw_json_get_field(root, what, "_name_or_path", false, shape.net.name,
                             sizeof shape.net.name));
    if (shape.net.name[0] == '\0')
        snprintf(shape.net.name, sizeof shape.net.name, "%s", architecture->model_types[0]);
    NW_TRY(complete(architecture, what, &shape.net));
    *net_out = shape.net;
    return NW_OK;
}

nw_rc nw_transformer_parse_config(const char *text, size_t length, const char *what,
                                  struct nw_transformer *net_out)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL)
        return nw_fail(NW_EUSAGE, "%s:%d: not valid JSON: %s", what,
                       error.line > 0 ? error.line : 1, error.text);
    const nw_rc rc = read_config(root, what, net_out);

    json_decref(root);
    return rc;
}

nw_rc nw_transformer_read_config(const char *path, struct nw_transformer *net_out)
{
    json_t *root;

    NW_TRY(nw_json_load(path, MAX_CONFIG_BYTES, &root));
    const nw_rc rc = read_config(root, path, net_out);

    json_decref(root);
    return rc;
}
