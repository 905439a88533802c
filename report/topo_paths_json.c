#include "report/topo_paths.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "topo/ceiling.h"

static nw_rc add_matrix(const struct nw_topo *topo, const struct nw_path_devices *devices,
                        json_t *root)
{
    json_t *matrix = json_object(), *names = json_array(), *rows = json_array();
    nw_rc rc = nw_json_set_new(matrix, "devices", names);
    char cell[16];

    if (rc == NW_OK)
        rc = nw_json_set_new(matrix, "rows", rows);
    else
        json_decref(rows);
    for (int i = 0; i < devices->count && rc == NW_OK; i++) {
        json_t *row = json_array();

        if (json_array_append_new(names, nw_json_text(topo->nodes[devices->nodes[i]].name)) != 0)
            rc = NW_ENOMEM;
        for (int j = 0; j < devices->count && rc == NW_OK; j++)
            if (json_array_append_new(row, json_string(nw_report_path_cell(
                                               topo, devices->nodes[i], devices->nodes[j], cell))))
                rc = NW_ENOMEM;
        if (json_array_append_new(rows, row) != 0)
            rc = NW_ENOMEM;
    }
    if (rc != NW_OK) {
        json_decref(matrix);
        return nw_fail(NW_ENOMEM, "out of memory for the matrix of paths");
    }
    return nw_json_set_new(root, "matrix", matrix);
}

static nw_rc set_range(json_t *object, double low, double high, const char *source)
{
    NW_TRY(nw_json_set_real(object, "expected_low_bytes_per_s", low));
    NW_TRY(nw_json_set_real(object, "expected_high_bytes_per_s", high));
    return source[0] != '\0' ? nw_json_set_text(object, "expected_source", source) : NW_OK;
}

static nw_rc fill_pair(const struct nw_topo *topo, int a, int b, json_t *object)
{
    struct nw_ceiling ceiling;

    nw_ceiling_pair(topo, a, b, &ceiling);
    NW_TRY(nw_json_set_text(object, "a", topo->nodes[a].name));
    NW_TRY(nw_json_set_text(object, "b", topo->nodes[b].name));
    if (ceiling.class_id != NW_CLASS_UNKNOWN)
        NW_TRY(nw_json_set_text(object, "class", nw_class_name(ceiling.class_id)));
    NW_TRY(nw_json_set_text(object, "link", nw_link_kind_key(ceiling.link)));
    if (ceiling.lane_count > 0)
        NW_TRY(nw_json_set_int(object, "lane_count", ceiling.lane_count));
    NW_TRY(nw_json_set_real(object, "ceiling_bytes_per_s", ceiling.bytes_per_s));
    NW_TRY(set_range(object, ceiling.low, ceiling.high, ceiling.source));
    NW_TRY(nw_json_set_real(object, "socket_bytes_per_s", ceiling.socket_bytes_per_s));
    if (ceiling.by[0] != '\0')
        NW_TRY(nw_json_set_text(object, "limited_by", ceiling.by));
    return ceiling.why[0] != '\0' ? nw_json_set_text(object, "note", ceiling.why) : NW_OK;
}

static nw_rc append(json_t *list, json_t *object, nw_rc rc)
{
    if (rc != NW_OK) {
        json_decref(object);
        return rc;
    }
    return json_array_append_new(list, object) == 0
               ? NW_OK
               : nw_fail(NW_ENOMEM, "out of memory for the ceilings");
}

static nw_rc add_pairs(const struct nw_topo *topo, const struct nw_path_devices *devices,
                       json_t *ceilings)
{
    json_t *pairs = json_array();

    NW_TRY(nw_json_set_new(ceilings, "pairs", pairs));
    for (int i = 0; i < devices->gpu_count; i++)
        for (int j = i + 1; j < devices->count; j++) {
            json_t *pair = json_object();

            NW_TRY(
                append(pairs, pair, fill_pair(topo, devices->nodes[i], devices->nodes[j], pair)));
        }
    return NW_OK;
}

static nw_rc fill_network(const struct nw_ceiling_network *network, json_t *object)
{
    NW_TRY(nw_json_set_real(object, "ceiling_bytes_per_s", network->bytes_per_s));
    NW_TRY(nw_json_set_int(object, "port_count", network->port_count));
    if (network->ports[0] != '\0')
        NW_TRY(nw_json_set_text(object, "ports", network->ports));
    if (network->left_out[0] != '\0')
        NW_TRY(nw_json_set_text(object, "not_counted", network->left_out));
    return network->why[0] != '\0' ? nw_json_set_text(object, "note", network->why) : NW_OK;
}

static nw_rc fill_collective(const struct nw_ceiling_collective *ceiling, json_t *object)
{
    NW_TRY(nw_json_set_text(object, "collective", ceiling->collective));
    NW_TRY(nw_json_set_text(object, "algorithm", ceiling->algorithm));
    NW_TRY(nw_json_set_int(object, "host_count", ceiling->host_count));
    NW_TRY(nw_json_set_int(object, "gpu_count", ceiling->gpu_count));
    NW_TRY(nw_json_set_real(object, "ceiling_busbw_bytes_per_s", ceiling->bus_bytes_per_s));
    NW_TRY(set_range(object, ceiling->low, ceiling->high, ceiling->source));
    if (ceiling->bound[0] != '\0')
        NW_TRY(nw_json_set_text(object, "bound_by", ceiling->bound));
    return ceiling->why[0] != '\0' ? nw_json_set_text(object, "note", ceiling->why) : NW_OK;
}

static nw_rc add_collectives(const struct nw_topo *topo, const struct nw_ceiling_network *network,
                             json_t *ceilings)
{
    json_t *list = json_array();

    NW_TRY(nw_json_set_new(ceilings, "collectives", list));
    for (int hosts = 1; hosts <= 2; hosts++)
        for (const struct nw_ceiling_coll_row *row = nw_ceiling_collectives;
             row->collective != NULL; row++) {
            struct nw_ceiling_collective ceiling;
            json_t *object;

            if (nw_ceiling_collective(topo, network, row->collective, row->algorithm, hosts,
                                      &ceiling) != NW_OK) {
                nw_clear_error();
                continue;
            }
            object = json_object();
            NW_TRY(append(list, object, fill_collective(&ceiling, object)));
        }
    return NW_OK;
}

static nw_rc fill_ceilings(const struct nw_topo *topo, const struct nw_path_devices *devices,
                           json_t *ceilings)
{
    struct nw_ceiling_network network;
    json_t *object = json_object();

    nw_ceiling_network(topo, &network);
    NW_TRY(nw_json_set_new(ceilings, "network", object));
    NW_TRY(fill_network(&network, object));
    NW_TRY(add_pairs(topo, devices, ceilings));
    return add_collectives(topo, &network, ceilings);
}

nw_rc nw_report_paths_json(const struct nw_topo *topo, json_t *root)
{
    struct nw_path_devices devices = {0};
    json_t *ceilings = json_object();
    nw_rc rc = nw_report_path_devices(topo, &devices);

    if (rc == NW_OK)
        rc = add_matrix(topo, &devices, root);
    if (rc == NW_OK)
        rc = fill_ceilings(topo, &devices, ceilings);
    free(devices.nodes);
    if (rc != NW_OK) {
        json_decref(ceilings);
        return rc;
    }
    return nw_json_set_new(root, "ceilings", ceilings);
}
