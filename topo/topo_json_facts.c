/* Facts, stated classes and GIDs as JSON. All three keys may be missing: older files. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "topo/topo_json.h"

enum { MAX_FACTS = 1 << 20, MAX_STATED = 1 << 20, MAX_GIDS = 1 << 18 };

/* --- writing --- */

static nw_rc append_object(json_t *array, json_t **object_out)
{
    json_t *object = json_object();

    if (object == NULL || json_array_append_new(array, object) != 0)
        return nw_fail(NW_ENOMEM, "out of memory for the topology's JSON");
    *object_out = object;
    return NW_OK;
}

static nw_rc set_fact(json_t *object, const struct nw_fact *fact)
{
    const struct nw_fact_row *row = &nw_fact_rows[fact->id];

    NW_TRY(nw_json_set_int(object, "node", fact->node));
    NW_TRY(nw_json_set_text(object, "fact", row->key));
    switch (row->type) {
    case NW_FACT_TEXT:
        NW_TRY(nw_json_set_text(object, "value", fact->text));
        break;
    case NW_FACT_YES_NO:
        NW_TRY(nw_json_set_bool(object, "value", fact->number != 0));
        break;
    default:
        NW_TRY(nw_json_set_real(object, "value", fact->number));
    }
    return nw_json_set_text(object, "source", fact->source[0] != '\0' ? fact->source : NULL);
}

static nw_rc set_stated(json_t *object, const struct nw_topo_stated *stated)
{
    NW_TRY(nw_json_set_int(object, "a", stated->a));
    NW_TRY(nw_json_set_int(object, "b", stated->b));
    NW_TRY(nw_json_set_text(object, "class", nw_class_name(stated->class_id)));
    return stated->nvlinks > 0 ? nw_json_set_int(object, "nvlink_count", stated->nvlinks) : NW_OK;
}

static nw_rc set_gid(json_t *object, const struct nw_topo_gid *gid)
{
    NW_TRY(nw_json_set_int(object, "port", gid->port));
    NW_TRY(nw_json_set_int(object, "index", gid->index));
    NW_TRY(nw_json_set_text(object, "gid", gid->gid));
    NW_TRY(nw_json_set_text(object, "type", gid->type[0] != '\0' ? gid->type : NULL));
    NW_TRY(nw_json_set_text(object, "ip", gid->ip[0] != '\0' ? gid->ip : NULL));
    return nw_json_set_text(object, "interface", gid->interface[0] != '\0' ? gid->interface : NULL);
}

nw_rc nw_topo_json_set_facts(json_t *root, const struct nw_topo *topo)
{
    json_t *facts = json_array(), *object = NULL;

    NW_TRY(nw_json_set_new(root, "facts", facts));
    for (size_t i = 0; i < topo->fact_count; i++) {
        NW_TRY(append_object(facts, &object));
        NW_TRY(set_fact(object, &topo->facts[i]));
    }
    json_t *stated = json_array();

    NW_TRY(nw_json_set_new(root, "stated_classes", stated));
    for (size_t i = 0; i < topo->stated_count; i++) {
        NW_TRY(append_object(stated, &object));
        NW_TRY(set_stated(object, &topo->stated[i]));
    }
    json_t *gids = json_array();

    NW_TRY(nw_json_set_new(root, "gids", gids));
    for (size_t i = 0; i < topo->gid_count; i++) {
        NW_TRY(append_object(gids, &object));
        NW_TRY(set_gid(object, &topo->gids[i]));
    }
    return NW_OK;
}

/* --- reading --- */

static nw_rc check_keys(const json_t *object, const char *what, const char *const *known)
{
    char list[160];
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return nw_fail(NW_EUSAGE, "%s: expected an object", what);
    json_object_foreach((json_t *)object, key, value)
    {
        bool found = false;

        for (size_t i = 0; known[i] != NULL; i++)
            found |= strcmp(known[i], key) == 0;
        if (!found)
            return nw_fail(NW_EUSAGE, "%s: unknown key \"%.40s\". Accepted: %s", what, key,
                           nw_join_names(list, sizeof list, known));
    }
    return NW_OK;
}

static nw_rc get_node(const json_t *object, const char *what, const char *key,
                      const struct nw_topo *topo, int *node_out)
{
    NW_TRY(nw_json_get_int(object, what, key, true, node_out));
    if (*node_out < 0 || (size_t)*node_out >= topo->node_count)
        return nw_fail(NW_EUSAGE, "%s: key \"%s\" is %d; expected a node of 0 to %zu", what, key,
                       *node_out, topo->node_count - 1);
    return NW_OK;
}

static nw_rc get_fact(const json_t *object, const char *what, struct nw_topo *topo)
{
    static const char *const known[] = {"node", "fact", "value", "source", NULL};
    const char *key = NULL, *source = "", *text = NULL;
    double number = NAN;
    bool yes = false;
    int node = 0;

    NW_TRY(check_keys(object, what, known));
    NW_TRY(get_node(object, what, "node", topo, &node));
    NW_TRY(nw_json_get_text(object, what, "fact", true, &key));
    NW_TRY(nw_json_get_text(object, what, "source", false, &source));
    const int id = nw_fact_find(key);

    if (id < 0)
        return nw_fail(NW_EUSAGE, "%s: no fact is named \"%.40s\" (docs/schema.md lists them)",
                       what, key);
    switch (nw_fact_rows[id].type) {
    case NW_FACT_TEXT:
        NW_TRY(nw_json_get_text(object, what, "value", true, &text));
        return nw_topo_set_text(topo, node, (nw_fact_id)id, text, source);
    case NW_FACT_YES_NO:
        NW_TRY(nw_json_get_bool(object, what, "value", true, &yes));
        return nw_topo_set_number(topo, node, (nw_fact_id)id, yes, source);
    default:
        NW_TRY(nw_json_get_real(object, what, "value", true, &number));
        if (!nw_fact_is_possible((nw_fact_id)id, number))
            return nw_fail(NW_EUSAGE, "%s: %s is %g, which no machine has", what, key, number);
        return nw_topo_set_number(topo, node, (nw_fact_id)id, number, source);
    }
}

static nw_rc get_stated(const json_t *object, const char *what, struct nw_topo *topo)
{
    static const char *const known[] = {"a", "b", "class", "nvlink_count", NULL};
    const char *names[NW_CLASS_COUNT + 1] = {NULL};
    const char *class_name = NULL;
    int a = 0, b = 0, nvlinks = 0;
    char list[160];

    NW_TRY(check_keys(object, what, known));
    NW_TRY(get_node(object, what, "a", topo, &a));
    NW_TRY(get_node(object, what, "b", topo, &b));
    NW_TRY(nw_json_get_text(object, what, "class", true, &class_name));
    NW_TRY(nw_json_get_int(object, what, "nvlink_count", false, &nvlinks));
    if (nvlinks < 0 || nvlinks > 1000)
        return nw_fail(NW_EUSAGE, "%s: key \"nvlink_count\" is %d; expected 0 to 1000", what,
                       nvlinks);
    for (int i = 0; i < NW_CLASS_COUNT; i++) {
        names[i] = nw_class_name((nw_class)i);
        if (strcmp(names[i], class_name) == 0)
            return nw_topo_state(topo, a, b, (nw_class)i, nvlinks);
    }
    return nw_fail(NW_EUSAGE, "%s: key \"class\" is \"%.40s\"; accepted: %s", what, class_name,
                   nw_join_names(list, sizeof list, names));
}

static nw_rc get_gid(const json_t *object, const char *what, struct nw_topo *topo)
{
    static const char *const known[] = {"port", "index", "gid", "type", "ip", "interface", NULL};
    struct nw_topo_gid gid = {.port = 0};

    NW_TRY(check_keys(object, what, known));
    NW_TRY(get_node(object, what, "port", topo, &gid.port));
    NW_TRY(nw_json_get_int(object, what, "index", true, &gid.index));
    if (gid.index < 0 || gid.index > 65535)
        return nw_fail(NW_EUSAGE, "%s: key \"index\" is %d; expected 0 to 65535", what, gid.index);
    NW_TRY(nw_json_get_field(object, what, "gid", true, gid.gid, sizeof gid.gid));
    NW_TRY(nw_json_get_field(object, what, "type", false, gid.type, sizeof gid.type));
    NW_TRY(nw_json_get_field(object, what, "ip", false, gid.ip, sizeof gid.ip));
    NW_TRY(
        nw_json_get_field(object, what, "interface", false, gid.interface, sizeof gid.interface));
    return nw_topo_add_gid(topo, &gid);
}

nw_rc nw_topo_json_get_facts(const json_t *root, const char *what, struct nw_topo *topo)
{
    static const struct {
        const char *key;
        size_t max;
        nw_rc (*get)(const json_t *object, const char *what, struct nw_topo *topo);
    } lists[] = {{"facts", MAX_FACTS, get_fact},
                 {"stated_classes", MAX_STATED, get_stated},
                 {"gids", MAX_GIDS, get_gid}};
    char where[400];

    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        const json_t *array = json_object_get(root, lists[l].key);

        if (array == NULL)
            continue;
        if (!json_is_array(array) || json_array_size(array) > lists[l].max)
            return nw_fail(NW_EUSAGE, "%s: key \"%s\": expected an array of at most %zu objects",
                           what, lists[l].key, lists[l].max);
        for (size_t i = 0; i < json_array_size(array); i++) {
            snprintf(where, sizeof where, "%.256s: %s[%zu]", what, lists[l].key, i);
            NW_TRY(lists[l].get(json_array_get(array, i), where, topo));
        }
    }
    return NW_OK;
}
