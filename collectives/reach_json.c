#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "collectives/reach.h"

static const char *const keys[] = {
#define X(state, key) key,
    NW_REACH_STATE_MAP(X)
#undef X
};

static nw_rc address_to_json(const struct nw_reach_address *address, json_t **json_out)
{
    json_t *json = json_object();
    nw_rc rc = NW_OK;

    NW_TRY_GOTO(nw_json_set_text(json, "interface", address->interface), out);
    NW_TRY_GOTO(nw_json_set_text(json, "ip", address->ip), out);
    NW_TRY_GOTO(nw_json_set_int(json, "prefix", address->prefix), out);
    NW_TRY_GOTO(nw_json_set_bool(json, "chosen", address->chosen), out);
    if (address->mtu > 0)
        NW_TRY_GOTO(nw_json_set_int(json, "mtu_bytes", address->mtu), out);
    if (address->bits_per_s > 0)
        NW_TRY_GOTO(nw_json_set_real(json, "rate_bits_per_s", address->bits_per_s), out);
    *json_out = json;
    return NW_OK;
out:
    json_decref(json);
    return rc;
}

nw_rc nw_reach_end_to_json(const struct nw_reach_end *end, json_t **json_out)
{
    json_t *json = json_object(), *addresses = json_array();
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < end->address_count; i++) {
        json_t *item;

        NW_TRY_GOTO(address_to_json(&end->addresses[i], &item), out);
        json_array_append_new(addresses, item);
    }
    NW_TRY_GOTO(nw_json_set_text(json, "host", end->host), out);
    NW_TRY_GOTO(nw_json_set_int(json, "port", end->port), out);
    if (end->filter[0] != '\0')
        NW_TRY_GOTO(nw_json_set_text(json, "filter", end->filter), out);
    if (end->left_out[0] != '\0')
        NW_TRY_GOTO(nw_json_set_text(json, "left_out", end->left_out), out);
    if (end->link_local[0] != '\0')
        NW_TRY_GOTO(nw_json_set_text(json, "link_local", end->link_local), out);
    rc = nw_json_set_new(json, "addresses", addresses);
    addresses = NULL;
    if (rc == NW_OK) {
        *json_out = json;
        return NW_OK;
    }
out:
    json_decref(addresses);
    json_decref(json);
    return rc;
}

static nw_rc address_from_json(const json_t *json, const char *what,
                               struct nw_reach_address *address)
{
    NW_TRY(nw_json_get_field(json, what, "interface", true, address->interface,
                             sizeof address->interface));
    NW_TRY(nw_json_get_field(json, what, "ip", true, address->ip, sizeof address->ip));
    NW_TRY(nw_json_get_int(json, what, "prefix", true, &address->prefix));
    NW_TRY(nw_json_get_bool(json, what, "chosen", true, &address->chosen));
    NW_TRY(nw_json_get_int(json, what, "mtu_bytes", false, &address->mtu));
    return nw_json_get_real(json, what, "rate_bits_per_s", false, &address->bits_per_s);
}

nw_rc nw_reach_end_from_json(const json_t *json, const char *what, struct nw_reach_end *end_out)
{
    const json_t *addresses = json_object_get(json, "addresses");
    struct nw_reach_end end = {.port = 0};

    NW_TRY(nw_json_get_field(json, what, "host", true, end.host, sizeof end.host));
    NW_TRY(nw_json_get_int(json, what, "port", true, &end.port));
    NW_TRY(nw_json_get_field(json, what, "filter", false, end.filter, sizeof end.filter));
    NW_TRY(nw_json_get_field(json, what, "left_out", false, end.left_out, sizeof end.left_out));
    NW_TRY(
        nw_json_get_field(json, what, "link_local", false, end.link_local, sizeof end.link_local));
    if (!json_is_array(addresses) || json_array_size(addresses) > NW_REACH_ADDRESSES_MAX ||
        end.port < 0 || end.port > 65535)
        return nw_fail(NW_EUSAGE,
                       "%s: accepted: a port of 0 to 65535 and a list of up to %d addresses", what,
                       NW_REACH_ADDRESSES_MAX);
    for (size_t i = 0; i < json_array_size(addresses); i++)
        NW_TRY(address_from_json(json_array_get(addresses, i), what,
                                 &end.addresses[end.address_count++]));
    *end_out = end;
    return NW_OK;
}

nw_rc nw_reach_tries_to_json(const struct nw_reach_try *tries, size_t count, json_t **array_out)
{
    json_t *array = json_array();
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object();

        if (json_array_append_new(array, item) != 0)
            rc = nw_fail(NW_ENOMEM, "no memory for %zu connections", count);
        if (rc == NW_OK)
            rc = nw_json_set_int(item, "to", tries[i].to);
        if (rc == NW_OK)
            rc = nw_json_set_int(item, "address", tries[i].address);
        if (rc == NW_OK)
            rc = nw_json_set_text(item, "state", keys[tries[i].state]);
        if (rc == NW_OK && tries[i].error != 0)
            rc = nw_json_set_int(item, "errno", tries[i].error);
        if (rc == NW_OK && tries[i].from[0] != '\0')
            rc = nw_json_set_text(item, "from", tries[i].from);
        if (rc == NW_OK)
            rc = nw_json_set_real(item, "time_ns", tries[i].took_ns);
        if (rc != NW_OK) {
            json_decref(array);
            return rc;
        }
    }
    *array_out = array;
    return NW_OK;
}

static nw_rc try_from_json(const json_t *json, const char *what, const struct nw_reach_end *ends,
                           size_t end_count, struct nw_reach_try *out)
{
    const char *state = "";

    *out = (struct nw_reach_try){.took_ns = NAN};
    NW_TRY(nw_json_get_int(json, what, "to", true, &out->to));
    NW_TRY(nw_json_get_int(json, what, "address", true, &out->address));
    NW_TRY(nw_json_get_text(json, what, "state", true, &state));
    NW_TRY(nw_json_get_int(json, what, "errno", false, &out->error));
    NW_TRY(nw_json_get_field(json, what, "from", false, out->from, sizeof out->from));
    NW_TRY(nw_json_get_real(json, what, "time_ns", false, &out->took_ns));
    if (out->to < 0 || (size_t)out->to >= end_count || out->address < 0 ||
        (size_t)out->address >= ends[out->to].address_count)
        return nw_fail(NW_EUSAGE, "%s: there is no address %d of host %d", what, out->address,
                       out->to);
    for (size_t i = 0; i < NW_REACH_STATE_COUNT; i++)
        if (strcmp(state, keys[i]) == 0) {
            out->state = (nw_reach_state)i;
            return NW_OK;
        }
    return nw_fail(NW_EUSAGE, "%s: unknown state \"%.40s\" of a connection", what, state);
}

nw_rc nw_reach_tries_from_json(const json_t *array, const char *what,
                               const struct nw_reach_end *ends, size_t end_count,
                               struct nw_reach_try **tries_out, size_t *count_out)
{
    const size_t count = json_array_size(array);
    struct nw_reach_try *tries;

    if (!json_is_array(array) || count > end_count * NW_REACH_ADDRESSES_MAX)
        return nw_fail(NW_EUSAGE, "%s: accepted: a list of connections, %d a host at most", what,
                       NW_REACH_ADDRESSES_MAX);
    tries = calloc(count + 1, sizeof *tries);
    if (tries == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu connections", count);
    for (size_t i = 0; i < count; i++) {
        const nw_rc rc = try_from_json(json_array_get(array, i), what, ends, end_count, &tries[i]);

        if (rc != NW_OK) {
            free(tries);
            return rc;
        }
    }
    *tries_out = tries;
    *count_out = count;
    return NW_OK;
}
