#include "results/anonymise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "topo/anonymise.h"
#include "topo/topo.h"

struct nw_anonymiser {
    struct nw_names names;
    char seed[64];
    bool sorted;
};

/* Keys whose texts are of the program or the maker of a device. */
static const char *const plain[] = {
    "schema",     "kind",  "tool",     "tool_version", "started",   "backend", "network", "case",
    "collective", "lane",  "features", "dtype",        "op",        "memory",  "stop",    "rc",
    "severity",   "code",  "pci",      "driver",       "gpu_model", "model",   "cpu",     "title",
    "left_out",   "nic_a", "nic_b",    "registered",   "library",   "kernel",  NULL};
/* Keys that hold nothing but the name of a host. */
static const char *const hosts[] = {"host_a", "host_b", "slowest_host", "host", NULL};
static const char *const serials[] = {"serial", "board_serial", "serial_number", NULL};

nw_rc nw_anonymiser_open(const char *seed, struct nw_anonymiser **anonymiser_out)
{
    struct nw_anonymiser *anonymiser = calloc(1, sizeof *anonymiser);
    uint64_t random[3];

    if (anonymiser == NULL)
        return nw_fail(NW_ENOMEM, "no memory for pseudonyms");
    if (seed != NULL) {
        snprintf(anonymiser->seed, sizeof anonymiser->seed, "%s", seed);
    } else if (getrandom(random, sizeof random, 0) == (ssize_t)sizeof random) {
        snprintf(anonymiser->seed, sizeof anonymiser->seed,
                 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, random[0], random[1], random[2]);
    } else {
        free(anonymiser);
        return nw_fail(NW_ELIB, "no random numbers for pseudonyms; give a seed");
    }
    anonymiser->names.key = nw_hash_key_of(anonymiser->seed);
    *anonymiser_out = anonymiser;
    return NW_OK;
}

void nw_anonymiser_free(struct nw_anonymiser *anonymiser)
{
    if (anonymiser == NULL)
        return;
    nw_hidden_free(&anonymiser->names);
    free(anonymiser);
}

/* ---- names -------------------------------------------------------------------------------------
 */

/* As nw_topo_anonymise does: "node1" and "node1.cluster.local" are one host. */
nw_rc nw_anonymiser_host(struct nw_anonymiser *anonymiser, const char *name)
{
    char first[256], replacement[32];

    if (name == NULL || name[0] == '\0')
        return NW_OK;
    snprintf(first, sizeof first, "%s", name);
    first[strcspn(first, ".")] = '\0';
    snprintf(
        replacement, sizeof replacement, "host-%08" PRIx32,
        (uint32_t)nw_hash_text(&anonymiser->names.key, "host", first[0] != '\0' ? first : name));
    NW_TRY(nw_hidden_add(&anonymiser->names, name, replacement));
    return nw_hidden_add(&anonymiser->names, first, replacement);
}

static nw_rc look_in_list(struct nw_anonymiser *anonymiser, const json_t *list, const char *key)
{
    size_t index;
    const json_t *item;

    for (index = 0; index < json_array_size(list); index++) {
        item = json_array_get(list, index);
        NW_TRY(nw_anonymiser_host(anonymiser, json_string_value(json_object_get(item, key))));
    }
    return NW_OK;
}

nw_rc nw_anonymiser_look(struct nw_anonymiser *anonymiser, const json_t *line)
{
    for (size_t i = 0; hosts[i] != NULL; i++)
        NW_TRY(nw_anonymiser_host(anonymiser, json_string_value(json_object_get(line, hosts[i]))));
    NW_TRY(look_in_list(anonymiser, json_object_get(line, "host_list"), "name"));
    return look_in_list(anonymiser, json_object_get(line, "topology"), "host");
}

/* ---- texts -------------------------------------------------------------------------------------
 */

static bool is_among(const char *key, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

static nw_rc set_text(json_t *string, const char *text)
{
    return json_string_set(string, text) == 0
               ? NW_OK
               : nw_fail(NW_ENOMEM, "no memory for a text without names");
}

static nw_rc rewrite_text(const struct nw_anonymiser *anonymiser, const char *key, json_t *string)
{
    const unsigned holds = NW_TEXT_ADDRESSES | NW_TEXT_PATHS;
    char *text;

    if (is_among(key, plain))
        text = nw_anonymous_text(&anonymiser->names, json_string_value(string), 0);
    else
        text = nw_anonymous_text(&anonymiser->names, json_string_value(string), holds);
    if (text == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a text without names");
    if (is_among(key, serials))
        nw_scramble(&anonymiser->names.key, "serial", text);
    const nw_rc rc = set_text(string, text);

    free(text);
    return rc;
}

/* A whole topology by its own rules. */
static nw_rc rewrite_topology(const struct nw_anonymiser *anonymiser, json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct nw_topo *topo = NULL;
        json_t *json = NULL;
        nw_rc rc = nw_topo_from_json(json_array_get(list, i), "topology", &topo);

        if (rc == NW_OK)
            rc = nw_topo_anonymise(topo, anonymiser->seed);
        if (rc == NW_OK)
            rc = nw_topo_to_json(topo, &json);
        nw_topo_free(topo);
        NW_TRY(rc);
        if (json_array_set_new(list, i, json) != 0)
            return nw_fail(NW_ENOMEM, "no memory for a topology without names");
    }
    return NW_OK;
}

static nw_rc rewrite(const struct nw_anonymiser *anonymiser, const char *key, json_t *value)
{
    const char *name;
    json_t *item;

    if (json_is_string(value))
        return rewrite_text(anonymiser, key, value);
    if (json_is_array(value) && strcmp(key, "topology") == 0)
        return rewrite_topology(anonymiser, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        NW_TRY(rewrite(anonymiser, key, json_array_get(value, i)));
    json_object_foreach(value, name, item)
    {
        NW_TRY(rewrite(anonymiser, name, item));
    }
    return NW_OK;
}

nw_rc nw_anonymiser_line(struct nw_anonymiser *anonymiser, json_t *line)
{
    if (!anonymiser->sorted)
        nw_hidden_sort(&anonymiser->names);
    anonymiser->sorted = true;
    return rewrite(anonymiser, "", line);
}
