#include "bench/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "bench/case.h"

#define SIZES_MAX          10000
#define STEP_BYTES_DEFAULT (1u << 20) /* nccl-tests' own, for -f 1 without -i */

/* Where results go and how it is shown: not what is measured. */
static bool is_output(const struct nw_option *row)
{
    static const char *const names[] = {"json-file", "out", "resume", "json", "progress"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(row->name, names[i]) == 0)
            return true;
    return false;
}

typedef nw_rc (*add_item)(struct nw_plan *plan, const char *item);

/* Each item of a comma-separated list, through `add`; the error names the option. */
static nw_rc for_each_item(struct nw_plan *plan, const char *option, const char *list, add_item add)
{
    char item[64];

    for (const char *at = list;;) {
        const size_t length = strcspn(at, ",");

        if (length == 0 || length >= sizeof item)
            return nw_fail(NW_EUSAGE,
                           "option %s: \"%.80s\" has an %s item; accepted: names with "
                           "commas between them, or all",
                           option, list, length == 0 ? "empty" : "overlong");
        memcpy(item, at, length);
        item[length] = '\0';
        if (add(plan, item) != NW_OK)
            return nw_fail(NW_EUSAGE, "option %s: %s", option, nw_last_error()->text);
        if (at[length] == '\0')
            return NW_OK;
        at += length + 1;
    }
}

static nw_rc add_coll_row(struct nw_plan *plan, const struct nw_coll *coll)
{
    for (size_t i = 0; i < plan->coll_count; i++)
        if (plan->colls[i] == coll)
            return NW_OK;
    if (plan->coll_count == NW_PLAN_LIST_MAX)
        return nw_fail(NW_EUSAGE, "more than %d collectives", NW_PLAN_LIST_MAX);
    plan->colls[plan->coll_count++] = coll;
    return NW_OK;
}

static nw_rc add_coll(struct nw_plan *plan, const char *item)
{
    const struct nw_coll *coll;

    if (strcmp(item, "all") == 0) {
        for (size_t i = 0; i < nw_coll_count; i++)
            NW_TRY(add_coll_row(plan, &nw_colls[i]));
        return NW_OK;
    }
    NW_TRY(nw_coll_parse(item, &coll));
    return add_coll_row(plan, coll);
}

static void add_dtype_once(struct nw_plan *plan, nw_dtype type)
{
    for (size_t i = 0; i < plan->dtype_count; i++)
        if (plan->dtypes[i] == type)
            return;
    plan->dtypes[plan->dtype_count++] = type;
}

static nw_rc add_dtype(struct nw_plan *plan, const char *item)
{
    nw_dtype type;

    if (strcmp(item, "all") == 0) {
        for (int every = 0; every < NW_DTYPE_COUNT; every++)
            add_dtype_once(plan, (nw_dtype)every);
        return NW_OK;
    }
    NW_TRY(nw_dtype_parse(item, &type));
    add_dtype_once(plan, type);
    return NW_OK;
}

static void add_op_once(struct nw_plan *plan, nw_redop op)
{
    for (size_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i] == op)
            return;
    plan->ops[plan->op_count++] = op;
}

static nw_rc add_op(struct nw_plan *plan, const char *item)
{
    nw_redop op;

    if (strcmp(item, "all") == 0) {
        for (int every = 0; every < NW_REDOP_COUNT; every++)
            add_op_once(plan, (nw_redop)every);
        return NW_OK;
    }
    NW_TRY(nw_redop_parse(item, &op));
    add_op_once(plan, op);
    return NW_OK;
}

static nw_rc add_case(struct nw_plan *plan, const char *item)
{
    const char *names[NW_PLAN_LIST_MAX] = {NULL};
    char accepted[256];

    for (size_t i = 0; i < nw_case_count; i++) {
        names[i] = nw_cases[i].name;
        if (strcmp(item, "all") == 0 || strcmp(item, nw_cases[i].name) == 0)
            plan->cases |= 1u << i;
        if (strcmp(item, nw_cases[i].name) == 0)
            return NW_OK;
    }
    if (strcmp(item, "all") == 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "unknown case \"%s\"; accepted: %s, all", item,
                   nw_join_names(accepted, sizeof accepted, names));
}

static void add_lane_once(struct nw_plan *plan, const struct nw_lane *lane)
{
    for (size_t i = 0; i < plan->lane_count; i++)
        if (plan->lanes[i] == lane)
            return;
    plan->lanes[plan->lane_count++] = lane;
}

static nw_rc add_lane(struct nw_plan *plan, const char *item)
{
    const char *names[NW_PLAN_LIST_MAX] = {NULL};
    char accepted[256];
    const bool all = strcmp(item, "all") == 0;

    for (size_t i = 0; nw_lanes[i].name != NULL; i++) {
        names[i] = nw_lanes[i].name;
        if (all || strcmp(item, nw_lanes[i].name) == 0)
            add_lane_once(plan, &nw_lanes[i]);
    }
    if (all || nw_lane_find(item) != NULL)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "unknown lane \"%s\"; accepted: %s, all", item,
                   nw_join_names(accepted, sizeof accepted, names));
}

static nw_rc resolve_lanes(struct nw_plan *plan)
{
    const bool nccl = strcmp(plan->backend, "nccl") == 0 || strcmp(plan->backend, "auto") == 0;

    plan->lane_count = 0;
    if (plan->lanes_text != NULL && !nccl)
        return nw_fail(NW_EUSAGE,
                       "option --lanes: lanes are ways of NCCL's, --backend %s has one way only; "
                       "accepted with --backend nccl or auto",
                       plan->backend);
    return nccl ? for_each_item(plan, "--lanes",
                                plan->lanes_text != NULL ? plan->lanes_text : "auto", add_lane)
                : NW_OK;
}

static nw_rc resolve_nccl(struct nw_plan *plan)
{
    plan->nccl = (struct nw_nccl_wish){0};
    if (plan->nccl_text == NULL)
        return NW_OK;
    if (strcmp(plan->backend, "nccl") != 0 && strcmp(plan->backend, "auto") != 0)
        return nw_fail(NW_EUSAGE,
                       "option --nccl: it tells NCCL what to use, --backend %s has none; accepted "
                       "with --backend nccl or auto",
                       plan->backend);
    if (nw_nccl_wish_parse(plan->nccl_text, &plan->nccl) != NW_OK)
        return nw_fail(NW_EUSAGE, "option --nccl: %s", nw_last_error()->text);
    return NW_OK;
}

static nw_rc resolve_sizes(struct nw_plan *plan)
{
    char min[32], max[32];

    if (plan->min_bytes > plan->max_bytes)
        return nw_fail(NW_EUSAGE,
                       "option -b (--minbytes): %s is above -e (--maxbytes) %s; accepted: at most "
                       "the largest size",
                       nw_format_bytes(min, plan->min_bytes),
                       nw_format_bytes(max, plan->max_bytes));
    if (plan->step_factor == 0 && plan->step_bytes == 0)
        plan->step_factor = 2;
    if (plan->step_factor <= 1 && plan->step_bytes == 0)
        plan->step_bytes = STEP_BYTES_DEFAULT;
    if (plan->step_factor <= 1 &&
        (plan->max_bytes - plan->min_bytes) / plan->step_bytes >= SIZES_MAX)
        return nw_fail(NW_EUSAGE,
                       "option -i (--stepbytes): %llu bytes from %s to %s are more than %d sizes; "
                       "take a larger step",
                       (unsigned long long)plan->step_bytes, nw_format_bytes(min, plan->min_bytes),
                       nw_format_bytes(max, plan->max_bytes), SIZES_MAX);
    return NW_OK;
}

static nw_rc resolve_backend(struct nw_plan *plan)
{
    const bool local = strcmp(plan->backend, "local") == 0;

    if (!local && (plan->ranks > 0 || plan->hosts > 0))
        return nw_fail(NW_EUSAGE,
                       "option --%s is for --backend local; the ranks of --backend %s "
                       "are those of mpirun -np N",
                       plan->ranks > 0 ? "ranks" : "hosts", plan->backend);
    if (!local)
        return NW_OK;
    if (plan->ranks == 0)
        plan->ranks = plan->hosts > 2 ? plan->hosts : 2;
    if (plan->hosts == 0)
        plan->hosts = 1;
    if (plan->hosts > plan->ranks)
        return nw_fail(NW_EUSAGE, "option --hosts: %d hosts for %d ranks; accepted: 1 to %d",
                       plan->hosts, plan->ranks, plan->ranks);
    return NW_OK;
}

/* "8192x4096x14336". The largest: sums of which every one is exact, rows that fit the stage. */
#define SIDE_MAX 262144

static nw_rc add_shape(struct nw_plan *plan, const char *item)
{
    static const int steps[] = {128, 8, 8}, least[] = {128, 128, 64};
    uint64_t sides[3];
    char copy[64], *at = copy;

    snprintf(copy, sizeof copy, "%s", item);
    for (int i = 0; i < 3; i++) {
        char *end = strchr(at, 'x');

        if ((end == NULL) != (i == 2))
            return nw_fail(NW_EUSAGE, "\"%s\" is no MxNxK; accepted: 8192x4096x14336", item);
        if (end != NULL)
            *end = '\0';
        NW_TRY(nw_parse_u64(at, (uint64_t)least[i], SIDE_MAX, &sides[i]));
        if (sides[i] % (uint64_t)steps[i] != 0)
            return nw_fail(NW_EUSAGE, "\"%s\": accepted: M a multiple of 128, N and K of 8", item);
        at = end != NULL ? end + 1 : at;
    }
    if (plan->shape_count == NW_PLAN_LIST_MAX)
        return nw_fail(NW_EUSAGE, "more than %d shapes", NW_PLAN_LIST_MAX);
    plan->shapes[plan->shape_count++] =
        (struct nw_gemm_shape){(int)sides[0], (int)sides[1], (int)sides[2]};
    return NW_OK;
}

nw_rc nw_plan_resolve(struct nw_plan *plan)
{
    plan->cases = 0;
    plan->coll_count = plan->dtype_count = plan->op_count = plan->shape_count = 0;
    NW_TRY(for_each_item(plan, "--cases", plan->cases_text, add_case));
    NW_TRY(for_each_item(plan, "--collectives", plan->collectives_text, add_coll));
    NW_TRY(for_each_item(plan, "-d (--datatype)", plan->dtype_text, add_dtype));
    NW_TRY(for_each_item(plan, "-o (--op)", plan->op_text, add_op));
    plan->places = strcmp(plan->place_text, "out") == 0  ? NW_PLACE_OUT
                   : strcmp(plan->place_text, "in") == 0 ? NW_PLACE_IN
                                                         : NW_PLACE_OUT | NW_PLACE_IN;
    NW_TRY(resolve_sizes(plan));
    if (plan->gemm_size % 256 != 0)
        return nw_fail(NW_EUSAGE, "option --gemm-size: %d; accepted: multiples of 256, to 8192",
                       plan->gemm_size);
    if (plan->nic_mtu != 0 && (plan->nic_mtu & (plan->nic_mtu - 1)) != 0)
        return nw_fail(NW_EUSAGE, "option --mtu: %d; accepted: 256, 512, 1024, 2048, 4096",
                       plan->nic_mtu);
    if (plan->nic_bytes % 8 != 0)
        return nw_fail(NW_EUSAGE, "option --nic-bytes: %llu; accepted: multiples of 8",
                       (unsigned long long)plan->nic_bytes);
    if (plan->gemm_shapes_text != NULL)
        NW_TRY(for_each_item(plan, "--gemm-shapes", plan->gemm_shapes_text, add_shape));
    NW_TRY(resolve_lanes(plan));
    NW_TRY(resolve_nccl(plan));
    if (plan->json_file != NULL && plan->out_dir != NULL)
        return nw_fail(NW_EUSAGE, "options -J (--json-file) and --out both say where results go; "
                                  "give one of them");
    if (plan->resume && plan->json_file == NULL && plan->out_dir == NULL)
        return nw_fail(NW_EUSAGE, "option --resume needs the file to go on with: -J FILE or --out "
                                  "DIR");
    return resolve_backend(plan);
}

static uint64_t next_size(const struct nw_plan *plan, uint64_t bytes)
{
    if (plan->step_factor > 1)
        return bytes > UINT64_MAX / (uint64_t)plan->step_factor
                   ? UINT64_MAX
                   : bytes * (uint64_t)plan->step_factor;
    return bytes > UINT64_MAX - plan->step_bytes ? UINT64_MAX : bytes + plan->step_bytes;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Fisher-Yates. */
void nw_plan_order(const struct nw_plan *plan, uint64_t *sizes, size_t count)
{
    uint64_t state = plan->seed;

    for (size_t i = count; plan->shuffle && i > 1; i--) {
        const size_t other = (size_t)(next_random(&state) % i);
        const uint64_t size = sizes[i - 1];

        sizes[i - 1] = sizes[other];
        sizes[other] = size;
    }
}

nw_rc nw_plan_sizes(const struct nw_plan *plan, uint64_t **sizes_out, size_t *count_out)
{
    size_t count = 0;
    uint64_t *sizes;

    for (uint64_t bytes = plan->min_bytes; bytes <= plan->max_bytes; bytes = next_size(plan, bytes))
        count++;
    sizes = calloc(count, sizeof *sizes);
    if (sizes == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu sizes", count);
    count = 0;
    for (uint64_t bytes = plan->min_bytes; bytes <= plan->max_bytes; bytes = next_size(plan, bytes))
        sizes[count++] = bytes;
    *sizes_out = sizes;
    *count_out = count;
    return NW_OK;
}

static nw_rc set_field(json_t *object, const struct nw_option *row, const struct nw_plan *plan)
{
    const void *field = (const char *)plan + row->offset;

    switch (row->type) {
    case NW_OPTION_FLAG:
    case NW_OPTION_BOOL:
        return nw_json_set_bool(object, row->name, *(const bool *)field);
    case NW_OPTION_INT:
        return nw_json_set_int(object, row->name, *(const int *)field);
    case NW_OPTION_U64:
    case NW_OPTION_BYTES:
        return nw_json_set_u64(object, row->name, *(const uint64_t *)field);
    case NW_OPTION_DURATION: /* seconds, as the option takes a bare number */
        return nw_json_set_real(object, row->name, *(const double *)field / 1e9);
    case NW_OPTION_REAL:
    case NW_OPTION_COUNT:
        return nw_json_set_real(object, row->name, *(const double *)field);
    default:
        return nw_json_set_text(object, row->name, *(const char *const *)field);
    }
}

nw_rc nw_plan_to_json(const struct nw_plan *plan, json_t **json_out)
{
    json_t *object = json_object();

    if (object == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the plan");
    for (size_t i = 0; i < nw_plan_row_count; i++) {
        nw_rc rc;

        if (nw_plan_rows[i].name == NULL || is_output(&nw_plan_rows[i]))
            continue;
        rc = set_field(object, &nw_plan_rows[i], plan);
        if (rc != NW_OK) {
            json_decref(object);
            return rc;
        }
    }
    *json_out = object;
    return NW_OK;
}

/* FNV-1a. */
uint64_t nw_plan_hash(const struct nw_plan *plan)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char text[256];

    for (size_t i = 0; i < nw_plan_row_count; i++) {
        if (nw_plan_rows[i].name == NULL || is_output(&nw_plan_rows[i]))
            continue;
        nw_option_text(&nw_plan_rows[i], plan, text, sizeof text);
        for (const char *at = text;; at++) {
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
            if (*at == '\0')
                break;
        }
    }
    return hash;
}
