/* The presets by name: rows of the families' tables. */
#include "model/presets.h"

#include <stdio.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

static const struct family {
    const struct nw_preset *presets;
    const size_t *count;
} families[] = {
#define FAMILY(name) {nw_presets_##name, &nw_presets_##name##_count},
    NW_PRESET_FAMILIES(FAMILY)
#undef FAMILY
};
#define FAMILY_COUNT (sizeof families / sizeof families[0])

const struct nw_preset *nw_preset_at(size_t index)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        if (index < *families[i].count)
            return &families[i].presets[index];
        index -= *families[i].count;
    }
    return NULL;
}

size_t nw_preset_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < FAMILY_COUNT; i++)
        count += *families[i].count;
    return count;
}

/* "meta-llama/Llama-2-7b-hf" and "Llama-2-7b-hf" name what that checkpoint is. */
static bool is_hub_name(const char *source, const char *name)
{
    if (strncmp(source, HUB, strlen(HUB)) != 0)
        return false;
    const char *owner = source + strlen(HUB);
    const char *model = strchr(owner, '/');

    return strcasecmp(owner, name) == 0 || (model != NULL && strcasecmp(model + 1, name) == 0);
}

/* "llama2-7b", "gpt-3-175b" and "Llama_2_7B" are names that people write. */
static bool is_spelled_alike(const char *a, const char *b)
{
    static const char signs[] = "-_ ";

    for (;; a++, b++) {
        a += strspn(a, signs);
        b += strspn(b, signs);
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

static const struct nw_preset *preset_named(const char *name)
{
    const struct nw_preset *preset;

    for (size_t i = 0; (preset = nw_preset_at(i)) != NULL; i++)
        if (strcasecmp(preset->net.name, name) == 0)
            return preset;
    for (size_t i = 0; (preset = nw_preset_at(i)) != NULL; i++)
        if (is_spelled_alike(preset->net.name, name))
            return preset;
    for (size_t i = 0; (preset = nw_preset_at(i)) != NULL; i++)
        if (is_hub_name(preset->source, name))
            return preset;
    return NULL;
}

static bool is_path(const char *text)
{
    const size_t length = strlen(text);

    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".json") == 0);
}

/* Those that begin as `name` does, up to its first digit or dash: "llama-2-7b, llama-2-13b, …". */
static void say_relatives(const char *name, char *text, size_t size)
{
    const size_t stem = strcspn(name, "-0123456789.");
    const struct nw_preset *preset;
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; stem > 0 && (preset = nw_preset_at(i)) != NULL; i++)
        if (strncasecmp(preset->net.name, name, stem) == 0 &&
            used + strlen(preset->net.name) + 3 < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     preset->net.name);
}

static nw_rc unknown(const char *name)
{
    const char *names[512] = {NULL};
    const struct nw_preset *preset;
    char relatives[300];

    for (size_t i = 0; i < 511 && (preset = nw_preset_at(i)) != NULL; i++)
        names[i] = preset->net.name;
    const char *nearest = nw_nearest_name(name, names);

    say_relatives(nearest != NULL ? nearest : name, relatives, sizeof relatives);
    return nw_fail(NW_EUSAGE,
                   "unknown model \"%.80s\"%s%s%s Accepted: %s%sany of \"nodeworth list models\", "
                   "or the path of a Hugging Face config.json",
                   name, nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "\"?" : ".", relatives, relatives[0] != '\0' ? "; " : "");
}

nw_rc nw_transformer_find(const char *name_or_path, struct nw_transformer *net_out)
{
    const struct nw_preset *preset = preset_named(name_or_path);

    if (preset == NULL)
        return is_path(name_or_path) ? nw_transformer_read_config(name_or_path, net_out)
                                     : unknown(name_or_path);
    *net_out = preset->net;
    return NW_OK;
}
