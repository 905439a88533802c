/* A topology that can be shown to strangers: what is secret is collected, then every text is
 * written anew without it. */
#include "topo/anonymise.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/read.h"

enum { MAX_NAMES = 8192 }; /* of one machine */

/* --- names --- */

static nw_rc no_memory(void)
{
    return nw_fail(NW_ENOMEM, "out of memory for making a topology anonymous");
}

static bool is_known(const struct nw_names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcasecmp(names->items[i].text, text) == 0)
            return true;
    return false;
}

nw_rc nw_hidden_add(struct nw_names *names, const char *text, const char *replacement)
{
    struct nw_name name = {.length = strlen(text)};

    if (name.length < 2 || is_known(names, text))
        return NW_OK; /* one letter would be found everywhere */
    if (names->count == MAX_NAMES)
        return nw_fail(NW_EUSAGE, "more than %d names to hide: no machine has that many",
                       (int)MAX_NAMES);
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity > 0 ? 2 * names->capacity : 16;
        struct nw_name *items = realloc(names->items, capacity * sizeof *items);

        if (items == NULL)
            return no_memory();
        names->items = items;
        names->capacity = capacity;
    }
    name.text = strdup(text);
    name.replacement = strdup(replacement);
    if (name.text == NULL || name.replacement == NULL) {
        free(name.text);
        free(name.replacement);
        return no_memory();
    }
    names->items[names->count++] = name;
    return NW_OK;
}

static int by_first_byte(const void *a, const void *b)
{
    const struct nw_name *x = a, *y = b;

    return tolower((unsigned char)x->text[0]) - tolower((unsigned char)y->text[0]);
}

void nw_hidden_sort(struct nw_names *names)
{
    size_t i = 0;

    if (names->count > 1)
        qsort(names->items, names->count, sizeof *names->items, by_first_byte);
    for (int byte = 0; byte <= 256; byte++) {
        while (i < names->count && tolower((unsigned char)names->items[i].text[0]) < byte)
            i++;
        names->first[byte] = i;
    }
}

void nw_hidden_free(struct nw_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i].text);
        free(names->items[i].replacement);
    }
    free(names->items);
}

/* --- what is secret --- */

static bool names_a_device(const struct nw_topo *topo, const char *text)
{
    for (size_t i = 0; i < topo->node_count; i++)
        if (strcasecmp(topo->nodes[i].name, text) == 0)
            return true;
    return false;
}

/* "node1" and "node1.cluster.local" are one host. */
static nw_rc add_host(struct nw_names *names, const struct nw_topo *topo, char replacement[32])
{
    char name[sizeof topo->host];

    replacement[0] = '\0';
    if (topo->host[0] == '\0')
        return NW_OK;
    snprintf(name, sizeof name, "%s", topo->host);
    name[strcspn(name, ".")] = '\0';
    snprintf(replacement, 32, "host-%08" PRIx32,
             (uint32_t)nw_hash_text(&names->key, "host", name[0] != '\0' ? name : topo->host));
    NW_TRY(nw_hidden_add(names, topo->host, replacement));
    /* A host that is called as one of its devices: the devices' names stay, the host's field is
     * replaced all the same. */
    return names_a_device(topo, name) ? NW_OK : nw_hidden_add(names, name, replacement);
}

static bool is_said_openly(const char *source)
{
    return source[0] == '\0' || strcmp(source, "live") == 0 ||
           strcmp(source, "standard input") == 0 || strcmp(source, "…") == 0;
}

/* Paths of files, whole and without their folders: "a/b/smi.txt + live". */
static nw_rc add_files(struct nw_names *names, const char *source)
{
    char part[256], replacement[32];

    while (*source != '\0') {
        const char *end = strstr(source, " + ");
        const size_t length = end != NULL ? (size_t)(end - source) : strlen(source);

        snprintf(part, sizeof part, "%.*s", (int)(length < 255 ? length : 255), source);
        if (!is_said_openly(part)) {
            const char *slash = strrchr(part, '/');
            const char *file = slash != NULL && slash[1] != '\0' ? slash + 1 : part;

            snprintf(replacement, sizeof replacement, "file-%08" PRIx32,
                     (uint32_t)nw_hash_text(&names->key, "file", part));
            NW_TRY(nw_hidden_add(names, part, replacement));
            if (strlen(file) >= 4)
                NW_TRY(nw_hidden_add(names, file, replacement));
        }
        source += length + (end != NULL ? 3 : 0);
    }
    return NW_OK;
}

/* Facts whose secret is found by its form, wherever it stands. */
static bool has_form(nw_fact_id id)
{
    static const nw_fact_id ids[] = {NW_FACT_UUID,      NW_FACT_NODE_GUID, NW_FACT_SYSTEM_GUID,
                                     NW_FACT_PORT_GUID, NW_FACT_MAC,       NW_FACT_IP,
                                     NW_FACT_HOST_HASH, NW_FACT_CARD};

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* All secret facts but addresses are names: whole, wherever they stand. */
static nw_rc add_fact(struct nw_names *names, const struct nw_fact *fact)
{
    char text[sizeof fact->text];
    char *formed = NULL;
    bool found;

    if ((nw_fact_rows[fact->id].flags & NW_FACT_SECRET) == 0 || fact->text[0] == '\0')
        return NW_OK;
    if (has_form(fact->id)) {
        formed =
            nw_anonymous_text(&(struct nw_names){.key = names->key}, fact->text, NW_TEXT_ADDRESSES);
        if (formed == NULL)
            return no_memory();
        found = strcmp(formed, fact->text) != 0;
        free(formed);
        if (found)
            return NW_OK;
    }
    snprintf(text, sizeof text, "%s", fact->text);
    nw_scramble(&names->key, nw_fact_rows[fact->id].key, text);
    return nw_hidden_add(names, fact->text, text);
}

/* Texts that are a secret as a whole: what a cable leads to, where data lie. */
static nw_rc add_whole(struct nw_names *names, const struct nw_fact *fact)
{
    static const struct {
        nw_fact_id id;
        const char *prefix;
    } whole[] = {{NW_FACT_PEER, "peer-"}, {NW_FACT_DATA_PATH, "/path-"}};
    char text[64];

    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (whole[i].id == fact->id) {
            snprintf(text, sizeof text, "%s%08" PRIx32, whole[i].prefix,
                     (uint32_t)nw_hash_text(&names->key, whole[i].prefix, fact->text));
            return nw_hidden_add(names, fact->text, text);
        }
    return NW_OK;
}

static nw_rc collect(struct nw_names *names, const struct nw_topo *topo, char host[32])
{
    NW_TRY(add_host(names, topo, host));
    NW_TRY(add_files(names, topo->source));
    for (size_t i = 0; i < topo->fact_count; i++) {
        NW_TRY(add_fact(names, &topo->facts[i]));
        NW_TRY(add_whole(names, &topo->facts[i]));
        if (strpbrk(topo->facts[i].source, "/.") != NULL)
            NW_TRY(add_files(names, topo->facts[i].source));
    }
    return NW_OK;
}

/* --- every text anew --- */

static nw_rc rewrite(const struct nw_names *names, char *field, size_t size, unsigned holds)
{
    char *text;

    if (field[0] == '\0')
        return NW_OK;
    text = nw_anonymous_text(names, field, holds);
    if (text == NULL)
        return no_memory();
    snprintf(field, size, "%s", text);
    nw_clean_text(field); /* where it was cut */
    free(text);
    return NW_OK;
}

#define REWRITE(field, holds) NW_TRY(rewrite(names, field, sizeof(field), holds))

static nw_rc rewrite_nodes(const struct nw_names *names, struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->node_count; i++) {
        struct nw_topo_node *node = &topo->nodes[i];

        REWRITE(node->name, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
        REWRITE(node->model, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
        REWRITE(node->os_names, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
        REWRITE(node->fabric, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
    }
    for (size_t i = 0; i < topo->gid_count; i++) {
        REWRITE(topo->gids[i].gid, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
        REWRITE(topo->gids[i].ip, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
        REWRITE(topo->gids[i].interface, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
    }
    return NW_OK;
}

/* A version may look like an address ("24.07.0.6"). */
static unsigned fact_holds(nw_fact_id id)
{
    return strstr(nw_fact_rows[id].key, "version") != NULL ? NW_TEXT_IDS | NW_TEXT_PATHS
                                                           : NW_TEXT_ADDRESSES | NW_TEXT_PATHS;
}

static nw_rc rewrite_facts(const struct nw_names *names, struct nw_topo *topo)
{
    for (size_t i = 0; i < topo->fact_count; i++) {
        REWRITE(topo->facts[i].text, fact_holds(topo->facts[i].id));
        REWRITE(topo->facts[i].source, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
    }
    return NW_OK;
}

static nw_rc rewrite_text(const struct nw_names *names, char **text)
{
    char *anew;

    if (*text == NULL)
        return NW_OK;
    anew = nw_anonymous_text(names, *text, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
    if (anew == NULL)
        return no_memory();
    free(*text);
    *text = anew;
    return NW_OK;
}

static nw_rc rewrite_findings(const struct nw_names *names, struct nw_findings *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct nw_finding *finding = &list->items[i];

        NW_TRY(rewrite_text(names, &finding->where));
        NW_TRY(rewrite_text(names, &finding->text));
        NW_TRY(rewrite_text(names, &finding->remedy));
        NW_TRY(rewrite_text(names, &finding->effect));
    }
    return NW_OK;
}

static nw_rc rewrite_all(const struct nw_names *names, struct nw_topo *topo, const char *host)
{
    REWRITE(topo->source, NW_TEXT_ADDRESSES | NW_TEXT_PATHS);
    REWRITE(topo->os, NW_TEXT_IDS | NW_TEXT_PATHS);
    if (topo->host[0] != '\0')
        snprintf(topo->host, sizeof topo->host, "%s", host);
    NW_TRY(rewrite_nodes(names, topo));
    NW_TRY(rewrite_facts(names, topo));
    return rewrite_findings(names, &topo->findings);
}

nw_rc nw_topo_anonymise(struct nw_topo *topo, const char *seed)
{
    struct nw_names names = {.key = nw_hash_key_of(seed)};
    char host[32];
    nw_rc rc = collect(&names, topo, host);

    nw_hidden_sort(&names);
    if (rc == NW_OK)
        rc = rewrite_all(&names, topo, host);
    nw_hidden_free(&names);
    return rc;
}

nw_rc nw_topo_save_anonymous(const struct nw_topo *topo, const char *seed, const char *path)
{
    struct nw_topo *copy = NULL;
    json_t *json = NULL;
    nw_rc rc;

    NW_TRY(nw_topo_to_json(topo, &json));
    rc = nw_topo_from_json(json, path, &copy);
    json_decref(json);
    if (rc == NW_OK)
        rc = nw_topo_anonymise(copy, seed);
    if (rc == NW_OK)
        rc = nw_topo_save(copy, path);
    nw_topo_free(copy);
    return rc;
}
