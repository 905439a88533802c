#include "report/lanes_text.h"

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "collectives/lane.h"

#define DASH "\xE2\x80\x93"
/* Lanes beside each other: seven are within 100 columns, more go below. */
enum { ACROSS = 7 };

/* Out of place where both places were measured: two tables would say the same. */
static bool is_shown(const struct nw_lanes *lanes, size_t index)
{
    const struct nw_record *like = lanes->groups[index].like;

    if (!like->in_place)
        return true;
    for (size_t i = 0; i < lanes->count; i++) {
        const struct nw_record *other = lanes->groups[i].like;

        if (!other->in_place && strcmp(other->collective, like->collective) == 0 &&
            strcmp(other->features, like->features) == 0 &&
            strcmp(other->dtype, like->dtype) == 0 && other->rank_count == like->rank_count &&
            other->host_count == like->host_count)
            return false;
    }
    return true;
}

/* The lanes of all shown groups, in the order that they were run in. */
static size_t list_lanes(const struct nw_lanes *lanes, const char *names[NW_LANES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < lanes->count; i++) {
        for (size_t s = 0; s < lanes->groups[i].side_count && is_shown(lanes, i); s++) {
            const char *name = lanes->groups[i].sides[s].lane;
            size_t known = 0;

            while (known < count && strcmp(names[known], name) != 0)
                known++;
            if (known == count && count < NW_LANES_MAX)
                names[count++] = name;
        }
    }
    return count;
}

static void rate_cell(char text[64], const struct nw_lane_side *side)
{
    nw_format_gb_per_s(text, side->busbw_bytes_per_s.value);
    if (side->partial && isfinite(side->busbw_bytes_per_s.value))
        strcat(text, "*");
}

static void latency_cell(char text[64], const struct nw_lane_side *side)
{
    nw_format_sig(text, side->latency_ns.value / 1e3, 3);
}

static void ratio_cell(char text[64], const struct nw_lane_side *side)
{
    nw_format_sig(text, side->ratio.value, 3);
}

static void add_row(struct nw_table *table, const char *title, const struct nw_lanes_group *group,
                    const char *const *names, size_t count,
                    void (*cell)(char text[64], const struct nw_lane_side *side))
{
    const char *cells[ACROSS + 1] = {title};
    char texts[ACROSS][64];

    for (size_t i = 0; i < count; i++) {
        const struct nw_lane_side *side = nw_lanes_side(group, names[i]);

        cells[i + 1] = DASH;
        if (side == NULL)
            continue;
        cell(texts[i], side);
        cells[i + 1] = texts[i];
    }
    nw_table_row(table, cells);
}

static void add_group(struct nw_table *table, const struct nw_lanes_group *group,
                      const char *const *names, size_t count)
{
    const struct nw_record *like = group->like;
    const char *cells[ACROSS + 1] = {NULL};
    char title[128], size[32], latency[64];

    nw_print_to(title, sizeof title, "%s, %d ranks%s", like->collective, like->rank_count,
                like->in_place ? nw_tr(", in place") : "");
    if (like->host_count > 1)
        nw_print_to(title + strlen(title), sizeof title - strlen(title), ", %d hosts",
                    like->host_count);
    if (like->features[0] != '\0')
        nw_print_to(title + strlen(title), sizeof title - strlen(title), ", %.40s", like->features);
    cells[0] = title;
    for (size_t i = 0; i < count; i++)
        cells[i + 1] = "";
    nw_table_row(table, cells);
    add_row(table, "  busbw, GB/s", group, names, count, rate_cell);
    if (group->slowest >= 0)
        add_row(table, "  over the slowest", group, names, count, ratio_cell);
    if (group->latency_bytes == 0)
        return;
    nw_print_to(latency, sizeof latency, "  at %s, us",
                nw_format_bytes(size, group->latency_bytes));
    add_row(table, latency, group, names, count, latency_cell);
}

static nw_rc print_table(FILE *stream, const struct nw_lanes *lanes, const char *const *names,
                         size_t count)
{
    struct nw_column columns[ACROSS + 1] = {{"Lane", NW_LEFT}};
    struct nw_table *table;

    for (size_t i = 0; i < count; i++)
        columns[i + 1] = (struct nw_column){names[i], NW_RIGHT};
    NW_TRY(nw_table_open(columns, count + 1, &table));
    for (size_t i = 0; i < lanes->count; i++)
        if (is_shown(lanes, i))
            add_group(table, &lanes->groups[i], names, count);
    return nw_table_print(table, stream);
}

static void print_ratio(FILE *stream, const char *collective, const struct nw_lane_side *a,
                        const struct nw_lane_side *b)
{
    const struct nw_value ratio = nw_value_ratio(a->busbw_bytes_per_s, b->busbw_bytes_per_s);
    char value[32], low[32], high[32];

    if (!isfinite(ratio.value) || a->partial || b->partial)
        return;
    nw_print(stream, "%s/%s, %s: %s [%s, %s]\n", a->lane, b->lane, collective,
             nw_format_sig(value, ratio.value, 3), nw_format_sig(low, ratio.low, 3),
             nw_format_sig(high, ratio.high, 3));
}

/* What the lanes are there for; where there is no such pair, the fastest over the slowest. */
static void print_ratios(FILE *stream, const struct nw_lanes_group *group)
{
    static const char *const pairs[][2] = {{"nvlink", "pcie"}, {"rdma", "tcp"}};
    bool any = false;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct nw_lane_side *a = nw_lanes_side(group, pairs[i][0]);
        const struct nw_lane_side *b = nw_lanes_side(group, pairs[i][1]);

        if (a == NULL || b == NULL)
            continue;
        any = true;
        print_ratio(stream, group->like->collective, a, b);
    }
    if (!any && group->slowest >= 0 && group->slowest != group->fastest)
        print_ratio(stream, group->like->collective, &group->sides[group->fastest],
                    &group->sides[group->slowest]);
}

/* "1.34 [1.3, 1.4] times the time of ring at 16 MiB" */
static void format_worst(const struct nw_lane_choice *choice, char text[160])
{
    char value[32], low[32], high[32], size[32];

    nw_print_to(text, 160, "%s [%s, %s] times the time of %.15s at %s",
                nw_format_sig(value, choice->worst_ratio.value, 3),
                nw_format_sig(low, choice->worst_ratio.low, 3),
                nw_format_sig(high, choice->worst_ratio.high, 3), choice->worst_lane,
                nw_format_bytes(size, choice->worst_bytes));
}

/* "NCCL's choice, all_reduce: 1.34 [1.3, 1.4] times the time of ring at 16 MiB: try NCCL_ALGO=Ring
 * for that size; slower than what was forced at 3 of 12 sizes, from 4 MiB to 64 MiB". The advice is
 * for one size: at others another algorithm may be the faster one. */
static void print_choice(FILE *stream, const struct nw_lanes_group *group)
{
    const struct nw_lane_choice *choice = &group->choice;
    const struct nw_lane *lane = nw_lane_find(choice->worst_lane);
    const char *plural = choice->size_count == 1 ? "" : "s";
    char text[500], first[64], worst[160], from[32], to[32];

    if (choice->size_count == 0)
        return;
    format_worst(choice, worst);
    if (choice->worse_count == 0 && choice->worst_ratio.value <= 1 + NW_CHOICE_REL)
        nw_print_to(text, sizeof text,
                    "within %.0f %% of the fastest that was forced at each of %zu size%s",
                    100 * NW_CHOICE_REL, choice->size_count, plural);
    else if (choice->worse_count == 0)
        nw_print_to(
            text, sizeof text,
            "not told apart from the fastest that was forced at any of %zu size%s; up to %s",
            choice->size_count, plural, worst);
    else
        nw_print_to(
            text, sizeof text,
            "%s: try %s=%s for that size; slower than what was forced at %zu of %zu size%s, "
            "from %s to %s",
            worst, lane != NULL ? lane->settings[0].name : "NCCL_ALGO",
            lane != NULL ? lane->settings[0].value : choice->worst_lane, choice->worse_count,
            choice->size_count, plural, nw_format_bytes(from, choice->worse_from_bytes),
            nw_format_bytes(to, choice->worse_to_bytes));
    nw_print_to(first, sizeof first, "NCCL's choice, %.23s: ", group->like->collective);
    nw_print_wrapped(stream, first, "    ", text);
}

static void print_partial(FILE *stream, const struct nw_lanes *lanes)
{
    for (size_t i = 0; i < lanes->count; i++)
        for (size_t s = 0; s < lanes->groups[i].side_count; s++) {
            const struct nw_lane_side *side = &lanes->groups[i].sides[s];
            char size[32];

            if (side->partial && is_shown(lanes, i))
                nw_print(stream, "* %s over %s was measured up to %s only and is not compared\n",
                         lanes->groups[i].like->collective, side->lane,
                         nw_format_bytes(size, side->to_bytes));
        }
}

static void print_notes(FILE *stream, const struct nw_lanes *lanes)
{
    char first[64];

    for (size_t i = 0; i < lanes->note_count; i++) {
        const struct nw_lane_note *note = &lanes->notes[i];

        if (note->broke)
            nw_print_to(first, sizeof first, "broke: ");
        else
            nw_print_to(first, sizeof first, "left out: %.20s: ", note->lane);
        nw_print_wrapped(stream, first, "    ", note->text);
    }
}

nw_rc nw_report_lanes(FILE *stream, const struct nw_lanes *lanes)
{
    const char *names[NW_LANES_MAX];
    const size_t count = list_lanes(lanes, names);

    if (count > 0)
        nw_print(stream, "Lanes side by side%s\n",
                 lanes->simulated ? nw_tr(" (SIMULATED, no measurement)") : "");
    for (size_t first = 0; first < count; first += ACROSS)
        NW_TRY(print_table(stream, lanes, names + first,
                           count - first < ACROSS ? count - first : ACROSS));
    for (size_t i = 0; i < lanes->count; i++)
        if (is_shown(lanes, i))
            print_ratios(stream, &lanes->groups[i]);
    for (size_t i = 0; i < lanes->count; i++)
        if (is_shown(lanes, i))
            print_choice(stream, &lanes->groups[i]);
    print_partial(stream, lanes);
    print_notes(stream, lanes);
    return NW_OK;
}
