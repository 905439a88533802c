#include "results/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const struct nw_value unknown = {NAN, NAN, NAN};

struct nw_value nw_value_ratio(struct nw_value a, struct nw_value b)
{
    if (!isfinite(a.value) || !(b.value > 0))
        return unknown;
    return (struct nw_value){a.value / b.value, a.low / b.high, a.high / b.low};
}

/* ---- groups ------------------------------------------------------------------------------------
 */

static bool is_compared(const struct nw_record *record)
{
    return strcmp(record->case_name, "coll") == 0 && record->rc == NW_OK &&
           record->piece_bytes == 0 && record->wrong_elements <= 0 && record->bytes > 0 &&
           record->time_ns.count > 0 && record->time_ns.median > 0;
}

static bool is_of(const struct nw_lanes_group *group, const struct nw_record *record)
{
    const struct nw_record *like = group->like;

    return strcmp(like->collective, record->collective) == 0 &&
           strcmp(like->features, record->features) == 0 &&
           strcmp(like->dtype, record->dtype) == 0 && strcmp(like->op, record->op) == 0 &&
           like->root == record->root && like->rank_count == record->rank_count &&
           like->host_count == record->host_count && like->in_place == record->in_place;
}

static bool is_of_lane(const struct nw_lanes_group *group, const char *lane,
                       const struct nw_record *record)
{
    return is_compared(record) && strcmp(lane, record->lane) == 0 && is_of(group, record);
}

static struct nw_lanes_group *find_or_add_group(struct nw_lanes *lanes,
                                                const struct nw_record *record)
{
    for (size_t i = 0; i < lanes->count; i++)
        if (is_of(&lanes->groups[i], record))
            return &lanes->groups[i];
    struct nw_lanes_group *groups = realloc(lanes->groups, (lanes->count + 1) * sizeof *groups);

    if (groups == NULL)
        return NULL;
    lanes->groups = groups;
    groups[lanes->count] = (struct nw_lanes_group){.like = record, .slowest = -1, .fastest = -1};
    return &groups[lanes->count++];
}

const struct nw_lane_side *nw_lanes_side(const struct nw_lanes_group *group, const char *lane)
{
    for (size_t i = 0; i < group->side_count; i++)
        if (strcmp(group->sides[i].lane, lane) == 0)
            return &group->sides[i];
    return NULL;
}

static nw_rc add_record(struct nw_lanes *lanes, const struct nw_record *record)
{
    struct nw_lanes_group *group = find_or_add_group(lanes, record);

    if (group == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu groups of lanes", lanes->count + 1);
    if (nw_lanes_side(group, record->lane) != NULL || group->side_count == NW_LANES_MAX)
        return NW_OK;
    struct nw_lane_side *side = &group->sides[group->side_count++];

    *side = (struct nw_lane_side){
        .busbw_bytes_per_s = unknown, .latency_ns = unknown, .ratio = unknown};
    memcpy(side->lane, record->lane, sizeof side->lane);
    return NW_OK;
}

/* ---- the figures of a group --------------------------------------------------------------------
 */

static bool has_size(const struct nw_run *run, const struct nw_lanes_group *group, const char *lane,
                     uint64_t bytes)
{
    for (size_t i = 0; i < run->record_count; i++)
        if (run->records[i].bytes == bytes && is_of_lane(group, lane, &run->records[i]))
            return true;
    return false;
}

/* The smallest size that every lane has: a latency is compared with its like. */
static uint64_t common_size(const struct nw_run *run, const struct nw_lanes_group *group)
{
    uint64_t least = 0;

    for (size_t i = 0; i < run->record_count; i++) {
        const uint64_t bytes = run->records[i].bytes;
        bool all = is_compared(&run->records[i]) && is_of(group, &run->records[i]) &&
                   (least == 0 || bytes < least);

        for (size_t s = 0; s < group->side_count && all; s++)
            all = has_size(run, group, group->sides[s].lane, bytes);
        if (all)
            least = bytes;
    }
    return least;
}

static struct nw_value time_of(const struct nw_record *record)
{
    const struct nw_stats *time = &record->time_ns;
    const bool known = isfinite(time->low) && isfinite(time->high);

    return (struct nw_value){time->median, known ? time->low : time->median,
                             known ? time->high : time->median};
}

static nw_rc fill_side(const struct nw_run *run, const struct nw_lanes_group *group,
                       struct nw_lane_side *side)
{
    const struct nw_record *first = NULL;
    struct nw_plateau plateau;
    nw_rc rc;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (!is_of_lane(group, side->lane, record))
            continue;
        first = first == NULL ? record : first;
        side->to_bytes = record->bytes > side->to_bytes ? record->bytes : side->to_bytes;
        if (record->bytes == group->latency_bytes)
            side->latency_ns = time_of(record);
    }
    rc = nw_plateau_like(run, first, first->in_place, &plateau);
    if (rc == NW_ENODEV) { /* one rank: there is no bus bandwidth */
        nw_clear_error();
        return NW_OK;
    }
    NW_TRY(rc);
    side->busbw_bytes_per_s =
        (struct nw_value){plateau.busbw_bytes_per_s, plateau.low, plateau.high};
    return NW_OK;
}

static double rate(const struct nw_lane_side *side)
{
    return side->partial ? NAN : side->busbw_bytes_per_s.value;
}

/* Bandwidths of lanes that did not come to the same size are no like: a broken lane's last size may
 * be far from its plateau. */
static void fill_ratios(struct nw_lanes_group *group)
{
    uint64_t most = 0;
    int compared = 0;

    for (size_t i = 0; i < group->side_count; i++)
        most = group->sides[i].to_bytes > most ? group->sides[i].to_bytes : most;
    for (size_t i = 0; i < group->side_count; i++) {
        struct nw_lane_side *side = &group->sides[i];

        side->partial = side->to_bytes < most;
        if (!isfinite(rate(side)))
            continue;
        compared++;
        if (group->slowest < 0 || rate(side) < rate(&group->sides[group->slowest]))
            group->slowest = (int)i;
        if (group->fastest < 0 || rate(side) > rate(&group->sides[group->fastest]))
            group->fastest = (int)i;
    }
    if (compared < 2)
        group->slowest = group->fastest = -1;
    for (size_t i = 0; i < group->side_count && group->slowest >= 0; i++)
        if (isfinite(rate(&group->sides[i])))
            group->sides[i].ratio = nw_value_ratio(group->sides[i].busbw_bytes_per_s,
                                                   group->sides[group->slowest].busbw_bytes_per_s);
}

static bool is_forced_algorithm(const char *lane)
{
    return strcmp(lane, "ring") == 0 || strcmp(lane, "tree") == 0 || strcmp(lane, "nvls") == 0;
}

/* The fastest of the forced algorithms at this size; NULL: none was measured. */
static const struct nw_record *best_forced(const struct nw_run *run,
                                           const struct nw_lanes_group *group, uint64_t bytes)
{
    const struct nw_record *best = NULL;

    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *record = &run->records[i];

        if (record->bytes == bytes && is_forced_algorithm(record->lane) && is_compared(record) &&
            is_of(group, record) && (best == NULL || record->time_ns.median < best->time_ns.median))
            best = record;
    }
    return best;
}

static void add_to_choice(const struct nw_record *own, const struct nw_record *forced,
                          struct nw_lane_choice *choice)
{
    const struct nw_value ratio = nw_value_ratio(time_of(own), time_of(forced));

    const bool worse = ratio.value > 1 + NW_CHOICE_REL && ratio.low > 1;
    const bool first = worse ? choice->worse_count == 0 : choice->size_count == 0;

    choice->size_count++;
    if (first || ((worse || choice->worse_count == 0) && ratio.value > choice->worst_ratio.value)) {
        choice->worst_ratio = ratio;
        choice->worst_bytes = own->bytes;
        memcpy(choice->worst_lane, forced->lane, sizeof choice->worst_lane);
    }
    if (!worse)
        return;
    if (choice->worse_count == 0 || own->bytes < choice->worse_from_bytes)
        choice->worse_from_bytes = own->bytes;
    if (choice->worse_count == 0 || own->bytes > choice->worse_to_bytes)
        choice->worse_to_bytes = own->bytes;
    choice->worse_count++;
}

static void fill_choice(const struct nw_run *run, struct nw_lanes_group *group)
{
    for (size_t i = 0; i < run->record_count; i++) {
        const struct nw_record *own = &run->records[i];
        const struct nw_record *forced =
            is_of_lane(group, "auto", own) ? best_forced(run, group, own->bytes) : NULL;

        if (forced != NULL)
            add_to_choice(own, forced, &group->choice);
    }
}

static nw_rc fill_groups(const struct nw_run *run, struct nw_lanes *lanes)
{
    size_t kept = 0;

    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->groups[i].side_count > 1)
            lanes->groups[kept++] = lanes->groups[i];
    lanes->count = kept;
    for (size_t i = 0; i < kept; i++) {
        struct nw_lanes_group *group = &lanes->groups[i];

        group->latency_bytes = common_size(run, group);
        for (size_t s = 0; s < group->side_count; s++)
            NW_TRY(fill_side(run, group, &group->sides[s]));
        fill_ratios(group);
        fill_choice(run, group);
    }
    return NW_OK;
}

/* ---- what is missing ---------------------------------------------------------------------------
 */

static nw_rc add_note(struct nw_lanes *lanes, const char *lane, const char *text, bool broke)
{
    struct nw_lane_note *notes = realloc(lanes->notes, (lanes->note_count + 1) * sizeof *notes);

    if (notes == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the lanes that are missing");
    lanes->notes = notes;
    notes[lanes->note_count++] =
        (struct nw_lane_note){.lane = lane != NULL ? lane : "", .text = text, .broke = broke};
    return NW_OK;
}

static nw_rc note_missing(const struct nw_context *context, struct nw_lanes *lanes)
{
    size_t index;
    json_t *entry;

    json_array_foreach(context->lanes, index, entry)
    {
        const char *why = json_string_value(json_object_get(entry, "left_out"));

        if (why != NULL)
            NW_TRY(add_note(lanes, json_string_value(json_object_get(entry, "name")), why, false));
    }
    for (size_t i = 0; i < context->findings.count; i++) {
        const struct nw_finding *finding = &context->findings.items[i];

        if (strcmp(finding->code, "lane-broken") == 0)
            NW_TRY(add_note(lanes, finding->where, finding->text, true));
    }
    return NW_OK;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static nw_rc compare(const struct nw_run *run, struct nw_lanes *lanes)
{
    for (size_t i = 0; i < run->record_count; i++) {
        if (!is_compared(&run->records[i]))
            continue;
        NW_TRY(add_record(lanes, &run->records[i]));
        lanes->simulated = lanes->simulated || run->records[i].simulated;
    }
    lanes->simulated = lanes->simulated || run->context.simulated;
    NW_TRY(fill_groups(run, lanes));
    return note_missing(&run->context, lanes);
}

nw_rc nw_lanes_compare(const struct nw_run *run, struct nw_lanes *lanes_out)
{
    struct nw_lanes lanes = {.count = 0};
    const nw_rc rc = compare(run, &lanes);

    if (rc != NW_OK) {
        nw_lanes_free(&lanes);
        return rc;
    }
    *lanes_out = lanes;
    return NW_OK;
}

void nw_lanes_free(struct nw_lanes *lanes)
{
    free(lanes->groups);
    free(lanes->notes);
    *lanes = (struct nw_lanes){.count = 0};
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static nw_rc set_value(json_t *object, const char *name, const char *unit, struct nw_value value)
{
    const struct {
        const char *end;
        double value;
    } parts[] = {{"", value.value}, {"_low", value.low}, {"_high", value.high}};
    char key[64];

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(key, sizeof key, "%s%s%s", name, parts[i].end, unit);
        NW_TRY(nw_json_set_real(object, key, parts[i].value));
    }
    return NW_OK;
}

static nw_rc set_side(json_t *object, const struct nw_lane_side *side)
{
    NW_TRY(nw_json_set_text(object, "lane", side->lane));
    NW_TRY(set_value(object, "busbw", "_bytes_per_s", side->busbw_bytes_per_s));
    NW_TRY(set_value(object, "latency", "_ns", side->latency_ns));
    NW_TRY(set_value(object, "over_slowest", "", side->ratio));
    NW_TRY(nw_json_set_u64(object, "largest_bytes", side->to_bytes));
    return side->partial ? nw_json_set_bool(object, "partial", true) : NW_OK;
}

static nw_rc set_choice(json_t *object, const struct nw_lane_choice *choice)
{
    json_t *item = json_object();

    NW_TRY(nw_json_set_new(object, "choice", item));
    NW_TRY(nw_json_set_u64(item, "sizes", choice->size_count));
    NW_TRY(nw_json_set_u64(item, "worse_sizes", choice->worse_count));
    if (choice->worse_count == 0)
        return NW_OK;
    NW_TRY(nw_json_set_u64(item, "worse_from_bytes", choice->worse_from_bytes));
    NW_TRY(nw_json_set_u64(item, "worse_to_bytes", choice->worse_to_bytes));
    NW_TRY(nw_json_set_u64(item, "worst_bytes", choice->worst_bytes));
    NW_TRY(nw_json_set_text(item, "worst_lane", choice->worst_lane));
    return set_value(item, "worst_over_forced", "", choice->worst_ratio);
}

static nw_rc new_item(json_t *list, json_t **item_out)
{
    json_t *item = json_object();

    if (json_array_append_new(list, item) != 0)
        return nw_fail(NW_ENOMEM, "no memory for the JSON of the lanes");
    *item_out = item;
    return NW_OK;
}

static nw_rc set_group(json_t *object, const struct nw_lanes_group *group)
{
    const struct nw_record *like = group->like;
    json_t *sides = json_array(), *side = NULL;

    NW_TRY(nw_json_set_new(object, "lanes", sides));
    NW_TRY(nw_json_set_text(object, "collective", like->collective));
    NW_TRY(nw_json_set_text(object, "features", like->features[0] != '\0' ? like->features : NULL));
    NW_TRY(nw_json_set_text(object, "dtype", like->dtype));
    NW_TRY(nw_json_set_text(object, "op", like->op));
    NW_TRY(nw_json_set_int(object, "ranks", like->rank_count));
    if (like->host_count > 0)
        NW_TRY(nw_json_set_int(object, "hosts", like->host_count));
    NW_TRY(nw_json_set_bool(object, "in_place", like->in_place));
    if (group->latency_bytes > 0)
        NW_TRY(nw_json_set_u64(object, "latency_bytes", group->latency_bytes));
    if (group->choice.size_count > 0)
        NW_TRY(set_choice(object, &group->choice));
    for (size_t i = 0; i < group->side_count; i++) {
        NW_TRY(new_item(sides, &side));
        NW_TRY(set_side(side, &group->sides[i]));
    }
    return NW_OK;
}

static nw_rc set_groups(json_t *list, const struct nw_lanes *lanes)
{
    json_t *item = NULL;

    for (size_t i = 0; i < lanes->count; i++) {
        NW_TRY(new_item(list, &item));
        NW_TRY(set_group(item, &lanes->groups[i]));
    }
    return NW_OK;
}

nw_rc nw_lanes_to_json(const struct nw_lanes *lanes, json_t **json_out)
{
    json_t *list = json_array();
    const nw_rc rc = set_groups(list, lanes);

    if (rc != NW_OK) {
        json_decref(list);
        return rc;
    }
    *json_out = list;
    return NW_OK;
}
