/* What is done with the comparison of hosts: JSON, the list of hosts to leave out, the hostfile. */
#include <math.h>
#include <stdio.h>

#include "base/finding_json.h"
#include "base/io.h"
#include "base/json.h"
#include "results/fleet.h"

static nw_rc end_to_json(const struct nw_fleet_level *level, int index, json_t *list)
{
    const struct nw_fleet_end *end = &level->scores.ends[index];
    json_t *json = json_object();

    if (json == NULL || json_array_append_new(list, json) != 0)
        return nw_fail(NW_ENOMEM, "no memory for the JSON of %s", level->ends[index]);
    NW_TRY(nw_json_set_text(json, "name", level->ends[index]));
    NW_TRY(nw_json_set_text(json, "state", nw_fleet_state_name(end->state)));
    NW_TRY(nw_json_set_real(json, "share", end->share));
    NW_TRY(nw_json_set_real(json, "z", end->z));
    NW_TRY(nw_json_set_text(json, "class", end->class >= 0 ? level->classes[end->class] : NULL));
    NW_TRY(nw_json_set_u64(json, "pairs", end->pair_count));
    NW_TRY(nw_json_set_u64(json, "slow_pairs", end->slow_count));
    NW_TRY(nw_json_set_u64(json, "failed_pairs", end->failed_count));
    return nw_json_set_real(json, "bad_pairs_z", end->bad_z);
}

static nw_rc pair_to_json(const struct nw_fleet_level *level, size_t index, json_t *list)
{
    const struct nw_fleet_edge *edge = &level->edges[index];
    const struct nw_fleet_pair_score *score = &level->scores.pairs[index];
    json_t *json = json_object();

    if (json == NULL || json_array_append_new(list, json) != 0)
        return nw_fail(NW_ENOMEM, "no memory for the JSON of the pairs");
    NW_TRY(nw_json_set_text(json, "a", level->ends[edge->a]));
    NW_TRY(nw_json_set_text(json, "b", level->ends[edge->b]));
    NW_TRY(nw_json_set_text(json, "class", level->classes[edge->class]));
    NW_TRY(nw_json_set_text(json, "state", nw_fleet_state_name(score->state)));
    NW_TRY(nw_json_set_real(json, "bytes_per_s", edge->bytes_per_s));
    NW_TRY(nw_json_set_real(json, "expected_bytes_per_s", score->expected_bytes_per_s));
    NW_TRY(nw_json_set_real(json, "share", score->share));
    return nw_json_set_real(json, "z", score->z);
}

static nw_rc class_to_json(const struct nw_fleet_level *level, int index, json_t *list)
{
    const struct nw_fleet_class *row = &level->scores.classes[index];
    json_t *json = json_object();

    if (json == NULL || json_array_append_new(list, json) != 0)
        return nw_fail(NW_ENOMEM, "no memory for the JSON of the classes");
    NW_TRY(nw_json_set_text(json, "name", level->classes[index]));
    NW_TRY(nw_json_set_u64(json, "pairs", row->pair_count));
    NW_TRY(nw_json_set_u64(json, "failed_pairs", row->failed_count));
    NW_TRY(nw_json_set_u64(json, "slow_pairs", row->slow_count));
    NW_TRY(nw_json_set_real(json, "median_bytes_per_s", row->median_bytes_per_s));
    NW_TRY(nw_json_set_real(json, "usual_bytes_per_s", row->usual_bytes_per_s));
    NW_TRY(nw_json_set_real(json, "named_below_share", row->detect_share));
    NW_TRY(nw_json_set_bool(json, "two_clusters", row->two_clusters));
    NW_TRY(nw_json_set_bool(json, "divided", row->divided));
    if (!row->two_clusters)
        return NW_OK;
    NW_TRY(nw_json_set_u64(json, "low_count", row->clusters.low_count));
    NW_TRY(nw_json_set_real(json, "low_bytes_per_s", row->clusters.low_mean));
    NW_TRY(nw_json_set_u64(json, "high_count", row->clusters.high_count));
    return nw_json_set_real(json, "high_bytes_per_s", row->clusters.high_mean);
}

static nw_rc level_to_json(const struct nw_fleet_level *level, json_t *root)
{
    json_t *json = json_object(), *ends = json_array(), *pairs = json_array();
    json_t *classes = json_array();
    nw_rc rc = nw_json_set_new(root, level->kind[0] == 'n' ? "nics" : level->kinds, json);

    if (rc == NW_OK)
        rc = nw_json_set_new(json, "classes", classes);
    if (rc == NW_OK)
        rc = nw_json_set_new(json, "ends", ends);
    else
        json_decref(ends);
    if (rc == NW_OK)
        rc = nw_json_set_new(json, "pairs", pairs);
    else
        json_decref(pairs);
    for (int i = 0; i < level->fleet.class_count && rc == NW_OK; i++)
        rc = class_to_json(level, i, classes);
    for (int i = 0; i < level->fleet.end_count && rc == NW_OK; i++)
        rc = end_to_json(level, i, ends);
    for (size_t i = 0; i < level->fleet.edge_count && rc == NW_OK; i++)
        rc = pair_to_json(level, i, pairs);
    return rc;
}

static nw_rc names_to_json(const struct nw_fleet_report *report, const char *key, bool suspects,
                           json_t *root)
{
    const struct nw_fleet_level *hosts = &report->levels[NW_FLEET_HOSTS];
    json_t *list = json_array();

    NW_TRY(nw_json_set_new(root, key, list));
    for (int i = 0; i < hosts->fleet.end_count; i++)
        if ((suspects ? nw_fleet_is_suspect(&hosts->scores.ends[i]) : report->leave_out[i]) &&
            json_array_append_new(list, nw_json_text(hosts->ends[i])) != 0)
            return nw_fail(NW_ENOMEM, "no memory for the JSON of the hosts");
    return NW_OK;
}

static nw_rc fill_json(const struct nw_fleet_report *report, json_t *root)
{
    json_t *findings;

    NW_TRY(nw_json_set_int(root, "schema", NW_SCHEMA_VERSION));
    NW_TRY(nw_json_set_bool(root, "simulated", report->simulated));
    NW_TRY(nw_json_set_u64(root, "retests", report->retest_count));
    NW_TRY(names_to_json(report, "exclude_hosts", true, root));
    NW_TRY(names_to_json(report, "without_bad_pairs_exclude", false, root));
    for (int i = 0; i < NW_FLEET_LEVELS; i++)
        if (report->levels[i].fleet.edge_count > 0)
            NW_TRY(level_to_json(&report->levels[i], root));
    NW_TRY(nw_findings_to_json(&report->findings, &findings));
    return nw_json_set_new(root, "findings", findings);
}

nw_rc nw_fleet_to_json(const struct nw_fleet_report *report, json_t **json_out)
{
    json_t *root = json_object();
    nw_rc rc = root != NULL ? fill_json(report, root)
                            : nw_fail(NW_ENOMEM, "no memory for the JSON of the hosts");

    if (rc == NW_OK)
        *json_out = root;
    else
        json_decref(root);
    return rc;
}

/* ---- hostfiles ---------------------------------------------------------------------------------
 */

static void write_excluded(const struct nw_fleet_report *report, FILE *stream)
{
    const struct nw_fleet_level *hosts = &report->levels[NW_FLEET_HOSTS];

    fprintf(stream, "# Hosts to leave out, by their pairs with all others: %zu of %d\n",
            report->suspect_count, hosts->fleet.end_count);
    for (int i = 0; i < hosts->fleet.end_count; i++) {
        const struct nw_fleet_end *end = &hosts->scores.ends[i];

        if (!nw_fleet_is_suspect(end))
            continue;
        fprintf(stream, "# %s: %s", hosts->ends[i], nw_fleet_state_name(end->state));
        if (end->lost)
            fprintf(stream, ", lost in mid-run\n");
        else if (end->state == NW_FLEET_SLOW)
            fprintf(stream, ", %.0f %% of the usual\n", 100 * end->share);
        else
            fprintf(stream, ", %zu of %zu pairs bad\n", end->slow_count + end->failed_count,
                    end->pair_count);
        fprintf(stream, "%s\n", hosts->ends[i]);
    }
}

static void write_hosts(const struct nw_fleet_report *report, FILE *stream)
{
    const struct nw_fleet_level *hosts = &report->levels[NW_FLEET_HOSTS];

    fprintf(stream, "# Hosts without those to leave out: mpirun --hostfile\n");
    for (int i = 0; i < hosts->fleet.end_count; i++) {
        if (nw_fleet_is_suspect(&hosts->scores.ends[i]))
            continue;
        fprintf(stream, "%s", hosts->ends[i]);
        if (report->rank_count_of_host[i] > 0)
            fprintf(stream, " slots=%d", report->rank_count_of_host[i]);
        fputc('\n', stream);
    }
}

static nw_rc write_file(const struct nw_fleet_report *report, const char *path,
                        void (*write)(const struct nw_fleet_report *report, FILE *stream))
{
    struct nw_atomic_file *file;

    NW_TRY(nw_atomic_open(path, &file));
    write(report, nw_atomic_stream(file));
    return nw_atomic_commit(file);
}

nw_rc nw_fleet_write_excluded(const struct nw_fleet_report *report, const char *path)
{
    return write_file(report, path, write_excluded);
}

nw_rc nw_fleet_write_hosts(const struct nw_fleet_report *report, const char *path)
{
    return write_file(report, path, write_hosts);
}
