/* nvidia-smi nvlink -s (and the error counters of -e): under each GPU its links with their rate,
 * one way, "<inactive>", or one message instead. How many links a GPU has is only said by listing
 * all of them: where some are left out, the count stays unknown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/read_smi.h"

enum { MAX_LINKS = 64 }; /* 18 today */

struct section { /* of one GPU */
    int node;
    uint64_t listed, inactive; /* bits by link number */
    double bytes_per_s;        /* 0: none is active */
    double errors;             /* NAN: not told */
    bool none, all_down;       /* the messages */
    bool elided, rates_differ;
};

struct nvlink {
    struct nw_smi *smi;
    struct nw_scan *text;
    struct section *sections;
    size_t count;
};

/* "Link 3: 26.562 GB/s": the number; *rest_out: what follows the colon. -1: no such line. */
static int link_of(const char *line, const char **rest_out)
{
    static const char word[] = "Link ";
    const char *at = line + strspn(line, " \t");
    char number[8];
    size_t digits;
    uint64_t value;

    if (!nw_scan_starts(at, word))
        return -1;
    at += sizeof word - 1;
    digits = strspn(at, "0123456789");
    if (digits == 0 || digits >= sizeof number || at[digits] != ':')
        return -1;
    memcpy(number, at, digits);
    number[digits] = '\0';
    if (nw_parse_u64(number, 0, MAX_LINKS - 1, &value) != NW_OK) {
        nw_clear_error();
        return -1;
    }
    *rest_out = at + digits + 1 + strspn(at + digits + 1, " \t");
    return (int)value;
}

static bool says_none(const char *line)
{
    return strstr(line, "does not have or support Nvlink") != NULL ||
           strstr(line, "NVLink is not supported") != NULL ||
           strstr(line, "Nvlink not supported") != NULL;
}

static bool says_all_down(const char *line)
{
    return strstr(line, "as all links are inActive") != NULL ||
           strstr(line, "all links are inactive") != NULL;
}

bool nw_is_nvlink(const char *data, size_t length)
{
    struct nw_scan text;
    bool gpu = false, link = false;
    const char *rest;

    if (nw_scan_open(&text, data, length, "") != NW_OK)
        return false;
    while (!(gpu && link) && nw_scan_next(&text)) {
        struct nw_smi_listed listed;

        gpu |= nw_smi_listed(text.line, &listed);
        link |= gpu && (link_of(text.line, &rest) >= 0 || says_none(text.line) ||
                        says_all_down(text.line));
    }
    nw_scan_close(&text);
    nw_clear_error();
    return gpu && link;
}

static nw_rc begin_section(struct nvlink *nvlink, const struct nw_smi_listed *listed)
{
    struct section *sections =
        realloc(nvlink->sections, (nvlink->count + 1) * sizeof *nvlink->sections);

    if (sections == NULL)
        return nw_fail(NW_ENOMEM, "out of memory for the NVLinks of %zu GPUs", nvlink->count + 1);
    nvlink->sections = sections;
    NW_TRY(nw_smi_begin_numbered(nvlink->smi, listed->number));
    NW_TRY(nw_smi_value(nvlink->smi, NW_SMI_TEXT, "Product Name", listed->model));
    NW_TRY(nw_smi_value(nvlink->smi, NW_SMI_TEXT, "GPU UUID", listed->uuid));
    sections[nvlink->count++] = (struct section){.node = nvlink->smi->gpu, .errors = NAN};
    return NW_OK;
}

static nw_rc take_link(struct nvlink *nvlink, int link, const char *rest)
{
    struct section *section = &nvlink->sections[nvlink->count - 1];
    const uint64_t bit = UINT64_C(1) << link;
    const char *colon = strchr(rest, ':');
    double number;

    if (colon != NULL) { /* -e: "Link 0: Replay Errors: 0" */
        if (strstr(rest, "Error") != NULL &&
            nw_scan_number(colon + 1 + strspn(colon + 1, " \t"), NULL, &number) && number >= 0)
            section->errors = isnan(section->errors) ? number : section->errors + number;
        return NW_OK;
    }
    if (nw_scan_same(rest, "<inactive>") || nw_scan_same(rest, "inactive")) {
        section->inactive |= bit;
    } else if (nw_scan_number(rest, "GB/s", &number) && number > 0 && number < 1e4) {
        number = round(number * 1e6) * 1e3; /* three decimals are printed */
        section->rates_differ |= section->bytes_per_s > 0 && section->bytes_per_s != number;
        section->bytes_per_s = fmax(section->bytes_per_s, number);
    } else {
        section->elided = true; /* a torn line, or a state that we don't know */
        return NW_OK;
    }
    section->listed |= bit;
    return NW_OK;
}

static nw_rc take_line(struct nvlink *nvlink)
{
    char *line = nw_scan_trim(nvlink->text->line);
    struct nw_smi_listed listed;
    struct section *section;
    const char *rest;
    bool message;
    int link;

    if (nw_smi_listed(line, &listed))
        return begin_section(nvlink, &listed);
    NW_TRY(nw_smi_message(nvlink->smi, line, &message));
    if (message || nvlink->count == 0)
        return NW_OK;
    section = &nvlink->sections[nvlink->count - 1];
    link = link_of(line, &rest);
    if (link >= 0)
        return take_link(nvlink, link, rest);
    section->elided |= nw_scan_elision(line);
    section->none |= says_none(line);
    section->all_down |= says_all_down(line);
    return NW_OK;
}

/* --- what the lists say --- */

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* "1-16", or each for itself: "3, 5". */
static void list_bits(uint64_t bits, bool ranges, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < MAX_LINKS && used < size; i++) {
        int last = i;

        if ((bits >> i & 1) == 0)
            continue;
        while (ranges && last + 1 < MAX_LINKS && (bits >> (last + 1) & 1) != 0)
            last++;
        used += (size_t)snprintf(text + used, size - used, "%s%d", used > 0 ? ", " : "", i);
        if (last > i && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%d", last);
        i = last;
    }
}

/* Links between the listed ones that are not there. */
static uint64_t missing(const struct section *section)
{
    uint64_t below = section->listed;

    for (int shift = 1; shift < MAX_LINKS; shift *= 2)
        below |= below >> shift;
    return below & ~section->listed;
}

/* The last section may end early with the file: then its siblings list more. */
static bool is_short(const struct nvlink *nvlink, const struct section *section)
{
    const struct nw_topo_node *nodes = nvlink->smi->topo->nodes;

    if (section != &nvlink->sections[nvlink->count - 1])
        return false;
    for (size_t i = 0; i + 1 < nvlink->count; i++)
        if (strcmp(nodes[nvlink->sections[i].node].model, nodes[section->node].model) == 0 &&
            nvlink->sections[i].listed > section->listed)
            return true;
    return false;
}

static nw_rc add_cut(struct nvlink *nvlink, const struct section *section)
{
    const char *name = nvlink->smi->topo->nodes[section->node].name;
    char links[220];

    list_bits(missing(section), true, links, sizeof links);
    if (links[0] != '\0')
        return nw_smi_cut(nvlink->smi,
                          "%s: links %s are left out, so that how many of its at least %d links "
                          "are active is not known",
                          name, links, count_bits(section->listed | missing(section)));
    return nw_smi_cut(nvlink->smi,
                      "%s: lines were left out, so that how many links are active is "
                      "not known",
                      name);
}

static nw_rc end_section(struct nvlink *nvlink, const struct section *section)
{
    struct nw_topo *topo = nvlink->smi->topo;
    const char *source = nvlink->smi->source;
    char inactive[200];

    NW_TRY(nw_topo_set_number(topo, section->node, NW_FACT_NVLINK_ERRORS, section->errors, source));
    if (section->bytes_per_s > 0 && !section->rates_differ)
        NW_TRY(nw_topo_set_number(topo, section->node, NW_FACT_NVLINK_RATE, section->bytes_per_s,
                                  source));
    list_bits(section->inactive, false, inactive, sizeof inactive);
    NW_TRY(nw_topo_set_text(topo, section->node, NW_FACT_NVLINK_INACTIVE,
                            section->all_down && inactive[0] == '\0' ? "all" : inactive, source));
    if (section->listed == 0 && (section->none || section->all_down))
        return nw_topo_set_number(topo, section->node, NW_FACT_NVLINK_COUNT, 0, source);
    if (section->elided || missing(section) != 0 || is_short(nvlink, section))
        return add_cut(nvlink, section);
    if (section->listed == 0)
        return NW_OK;
    NW_TRY(nw_topo_set_number(topo, section->node, NW_FACT_NVLINK_INACTIVE_COUNT,
                              count_bits(section->inactive), source));
    return nw_topo_set_number(topo, section->node, NW_FACT_NVLINK_COUNT,
                              count_bits(section->listed) - count_bits(section->inactive), source);
}

nw_rc nw_read_nvlink(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_smi smi;
    struct nw_scan text;
    struct nvlink nvlink = {.smi = &smi, .text = &text};
    nw_rc rc;

    NW_TRY(nw_scan_open(&text, data, length, what));
    rc = nw_smi_open(&smi, what, "nvidia-smi nvlink");
    if (rc == NW_OK) {
        while (rc == NW_OK && nw_scan_next(&text))
            rc = take_line(&nvlink);
        if (rc == NW_OK)
            rc = text.rc;
        for (size_t i = 0; i < nvlink.count && rc == NW_OK; i++)
            rc = end_section(&nvlink, &nvlink.sections[i]);
        rc = nw_smi_close(&smi, rc, topo_out);
    }
    free(nvlink.sections);
    nw_scan_close(&text);
    return rc;
}
