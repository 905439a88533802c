/* What the model says a collective costs, for tests/truth/curves.py: one JSON object a line in, one
 * out, in order.
 *
 *     {"gpu": "H100 SXM", "gpus_per_node": 8, "nic_gbps": 3200, "nic_count": 8,
 *      "assume": ["LINK_SHARE=0.8"],
 *      "curves": [{"collective": "all_reduce", "ranks": 8, "hosts": 1,
 *                  "points": [[1024, 15600], …]}],
 *      "ask": [{"collective": "all_gather", "ranks": 16, "hosts": 2, "sharing": 1,
 *               "bytes": [1048576, …]}]}
 *     {"answers": [{"how": 32, "time_ns": […], "low_ns": […], "high_ns": […]}]}
 *
 * bytes as nccl-tests counts them, times in ns. An answer that is not known is {"error": "…"}. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/curve.h"

static nw_rc add_points(const json_t *curve, struct nw_run *run)
{
    const json_t *points = json_object_get(curve, "points"), *point;
    const char *collective = NULL;
    int ranks = 0, hosts = 0;
    size_t i;

    NW_TRY(nw_json_get_text(curve, "curve", "collective", true, &collective));
    NW_TRY(nw_json_get_int(curve, "curve", "ranks", true, &ranks));
    NW_TRY(nw_json_get_int(curve, "curve", "hosts", true, &hosts));
    json_array_foreach(points, i, point)
    {
        struct nw_record record;

        nw_record_init(&record);
        snprintf(record.case_name, sizeof record.case_name, "coll");
        snprintf(record.collective, sizeof record.collective, "%s", collective);
        snprintf(record.lane, sizeof record.lane, "auto");
        record.rank_count = ranks;
        record.host_count = hosts;
        record.bytes = (uint64_t)json_number_value(json_array_get(point, 0));
        record.time_ns = nw_stats_single(json_number_value(json_array_get(point, 1)));
        NW_TRY(nw_run_add_record(run, &record));
    }
    return NW_OK;
}

static nw_rc read_fabric(const json_t *request, struct nw_curves *curves, struct nw_fabric *fabric)
{
    const json_t *list = json_object_get(request, "curves"), *curve;
    const char *gpu_name = NULL, *link = NULL;
    const json_t *assume = json_object_get(request, "assume"), *text;
    static struct nw_assumptions assumptions;
    double nic_gbps = NAN;
    struct nw_results results = {0};
    nw_rc rc = NW_OK;
    size_t i;

    *fabric = (struct nw_fabric){.curves = curves,
                                 .intra_busbw_bytes_per_s = NAN,
                                 .inter_busbw_bytes_per_s = NAN,
                                 .link_bytes_per_s = NAN,
                                 .wire_bytes_per_s = NAN};
    nw_assumptions_reset(&assumptions);
    json_array_foreach(assume, i, text)
        NW_TRY(nw_assumptions_set(&assumptions, json_string_value(text)));
    fabric->assumptions = &assumptions;
    NW_TRY(nw_json_get_int(request, "request", "gpus_per_node", true, &fabric->gpus_per_node));
    NW_TRY(nw_json_get_int(request, "request", "nic_count", false, &fabric->nic_count));
    NW_TRY(nw_json_get_real(request, "request", "nic_gbps", false, &nic_gbps));
    NW_TRY(nw_json_get_text(request, "request", "gpu", false, &gpu_name));
    NW_TRY(nw_json_get_text(request, "request", "link", false, &link));
    fabric->wire_bytes_per_s = nic_gbps * 1e9 / 8;
    if (gpu_name != NULL) {
        const struct nw_gpu *gpu;

        NW_TRY(nw_gpu_find(gpu_name, &gpu));
        NW_TRY(nw_fabric_take_gpu(fabric, gpu, link));
    }
    struct nw_run *run = nw_results_add_run(&results);

    json_array_foreach(list, i, curve) if (rc == NW_OK) rc = add_points(curve, run);
    if (rc == NW_OK)
        rc = nw_curves_add(curves, &results, fabric->gpus_per_node);
    nw_results_free(&results);
    return rc;
}

static nw_rc answer(const struct nw_fabric *fabric, const json_t *ask, json_t *out)
{
    const json_t *sizes = json_object_get(ask, "bytes"), *size;
    json_t *times = json_array(), *lows = json_array(), *highs = json_array();
    const char *collective = NULL;
    struct nw_group group = {.host_count = 1};
    struct nw_line line;
    unsigned how = 0;
    size_t i;

    json_object_set_new(out, "time_ns", times);
    json_object_set_new(out, "low_ns", lows);
    json_object_set_new(out, "high_ns", highs);
    NW_TRY(nw_json_get_text(ask, "ask", "collective", true, &collective));
    NW_TRY(nw_json_get_int(ask, "ask", "ranks", true, &group.rank_count));
    NW_TRY(nw_json_get_int(ask, "ask", "hosts", true, &group.host_count));
    NW_TRY(nw_json_get_int(ask, "ask", "sharing", false, &group.sharing));
    NW_TRY(nw_fabric_prepare(fabric, collective, group, NULL, &line));
    json_array_foreach(sizes, i, size)
    {
        const struct nw_cost cost = nw_line_cost(&line, json_number_value(size));

        how |= cost.how;
        json_array_append_new(times, json_real(cost.time_ns));
        json_array_append_new(lows, json_real(cost.low_ns));
        json_array_append_new(highs, json_real(cost.high_ns));
    }
    return nw_json_set_int(out, "how", how);
}

static void answer_line(const char *text)
{
    json_t *request = json_loads(text, 0, NULL), *out = json_object(), *answers = json_array();
    const json_t *asks = json_object_get(request, "ask"), *ask;
    struct nw_curves curves = {0};
    struct nw_fabric fabric;
    size_t i;

    if (request == NULL || read_fabric(request, &curves, &fabric) != NW_OK)
        json_object_set_new(out, "error",
                            json_string(request == NULL ? "no JSON" : nw_last_error()->text));
    else
        json_array_foreach(asks, i, ask)
        {
            json_t *one = json_object();

            if (answer(&fabric, ask, one) != NW_OK)
                json_object_set_new(one, "error", json_string(nw_last_error()->text));
            json_array_append_new(answers, one);
        }
    json_object_set_new(out, "answers", answers);
    json_dumpf(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    nw_curves_free(&curves);
    json_decref(out);
    json_decref(request);
}

int main(void)
{
    char *text = NULL;
    size_t size = 0;

    while (getline(&text, &size, stdin) > 0)
        answer_line(text);
    free(text);
    return 0;
}
