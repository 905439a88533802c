/* A value of nvidia-smi into the topology, as the table of read_smi_rows.c says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/nvml_api.h"
#include "topo/pci_address.h"
#include "topo/read.h"
#include "topo/read_smi_rows.h"

void nw_smi_reset_values(struct nw_smi *smi)
{
    memset(smi->rank, 255, sizeof smi->rank);
    memset(smi->sum, 0, sizeof smi->sum);
    smi->throttle = 0;
    smi->throttle_known = false;
    smi->generation = smi->generation_max = 0;
    smi->error_count = 0;
}

/* Does the path end in these sections and key? */
static bool fits(const char *path, size_t path_length, const char *end, size_t length)
{
    return length > 0 && path_length >= length &&
           (path_length == length || path[path_length - length - 1] == '/') &&
           memcmp(path + path_length - length, end, length) == 0;
}

/* Which spelling of the row fits the path, 0 the best; -1: none. */
static int rank_of(const char *paths, const char *path, size_t path_length)
{
    int rank = 0;

    for (;;) {
        const size_t length = strcspn(paths, "|+");

        if (fits(path, path_length, paths, length))
            return rank;
        paths += length;
        if (*paths == '\0')
            return -1;
        rank += *paths++ == '|';
    }
}

/* --- where a value goes --- */

static nw_rc store_number(struct nw_smi *smi, const struct nw_smi_row *row, double number)
{
    struct nw_topo_node *node = &smi->topo->nodes[smi->gpu];

    switch (row->to) {
    case NW_SMI_TO_MEMORY:
        node->memory_bytes = number > 0 && number < 0x1p62 ? (uint64_t)number : 0;
        return NW_OK;
    case NW_SMI_TO_LANES:
        node->link_lanes = (int)number;
        return NW_OK;
    case NW_SMI_TO_LANES_MAX:
        node->link_max_lanes = (int)number;
        return NW_OK;
    case NW_SMI_TO_DEVICE_ID:
        node->pci_device = (uint32_t)number;
        return NW_OK;
    case NW_SMI_TO_FACT:
    case NW_SMI_TO_MACHINE:
        if (row->fact == NW_FACT_LINK_GENERATION)
            smi->generation = (int)number;
        if (row->fact == NW_FACT_LINK_MAX_GENERATION)
            smi->generation_max = (int)number;
        return nw_topo_set_number(smi->topo, row->to == NW_SMI_TO_MACHINE ? 0 : smi->gpu, row->fact,
                                  number, smi->source);
    default:
        return NW_OK;
    }
}

static nw_rc store_text(struct nw_smi *smi, const struct nw_smi_row *row, const char *value)
{
    struct nw_topo_node *node = &smi->topo->nodes[smi->gpu];

    switch (row->to) {
    case NW_SMI_TO_HOST:
        nw_squeeze(value, smi->topo->host, sizeof smi->topo->host);
        return NW_OK;
    case NW_SMI_TO_MODEL:
        nw_squeeze(value, node->model, sizeof node->model);
        return NW_OK;
    case NW_SMI_TO_PCI:
        if (nw_pci_normalise(value, node->pci) != NW_OK)
            nw_clear_error();
        return NW_OK;
    default:
        return nw_topo_set_text(smi->topo, row->to == NW_SMI_TO_MACHINE ? 0 : smi->gpu, row->fact,
                                value, smi->source);
    }
}

/* --- what a value says --- */

static bool read_hex(const char *value, uint64_t *number_out)
{
    char *end;

    if (strncmp(value, "0x", 2) == 0)
        value += 2;
    if (strlen(value) > 16 || value[0] == '\0' ||
        value[strspn(value, "0123456789abcdefABCDEF")] != '\0')
        return false;
    *number_out = strtoull(value, &end, 16); /* 16 digits at most: in range */
    return true;
}

/* False: not a value of this kind. */
static bool read_number(const struct nw_smi_row *row, const char *value, double *number_out)
{
    static const struct {
        const char *unit;
        double factor, max; /* what no GPU has is a damaged file */
    } units[] = {
        [NW_SMI_NUMBER] = {NULL, 1, 0x1p53},   [NW_SMI_SMALL] = {NULL, 1, 1024},
        [NW_SMI_SUM] = {NULL, 1, 0x1p53},      [NW_SMI_WATT] = {"W", 1, 1e5},
        [NW_SMI_CLOCK] = {"MHz", 1e6, 1e11},   [NW_SMI_CELSIUS] = {"C", 1, 1e3},
        [NW_SMI_CAPABILITY] = {NULL, 10, 1e4}, [NW_SMI_LANES] = {NULL, 1, 32},
    };
    char bare[16];
    uint64_t bits;
    bool yes;

    switch (row->how) {
    case NW_SMI_BYTES:
        return nw_scan_bytes(value, number_out);
    case NW_SMI_YES:
        if (!nw_scan_yes_no(value, &yes))
            return false;
        *number_out = yes;
        return true;
    case NW_SMI_DEVICE_ID:
        if (!read_hex(value, &bits) || (bits & 0xffff) != NW_PCI_VENDOR_NVIDIA)
            return false;
        *number_out = (double)(bits >> 16 & 0xffff);
        return true;
    case NW_SMI_LANES:
        snprintf(bare, sizeof bare, "%s", value);
        bare[strcspn(bare, "xX")] = '\0';
        value = bare;
        break;
    default:
        break;
    }
    if (!nw_scan_number(value, units[row->how].unit, number_out) &&
        !(row->how == NW_SMI_CELSIUS && nw_scan_number(value, NULL, number_out)))
        return false; /* --query-gpu prints degrees without a unit */
    *number_out = round(*number_out * units[row->how].factor * 1e6) / 1e6;
    return *number_out >= (row->how == NW_SMI_CELSIUS ? -units[row->how].max : 0) &&
           *number_out <= units[row->how].max;
}

static nw_rc set_number(struct nw_smi *smi, size_t index, int rank, const char *value)
{
    const struct nw_smi_row *row = &nw_smi_rows[index];
    const bool members = row->how == NW_SMI_SUM || row->how == NW_SMI_YES;
    double number;

    if (rank > smi->rank[index] || (rank == smi->rank[index] && !members) ||
        !read_number(row, value, &number))
        return NW_OK;
    if (members && rank == smi->rank[index])
        number = row->how == NW_SMI_SUM ? smi->sum[index] + number : fmax(smi->sum[index], number);
    smi->rank[index] = (unsigned char)rank;
    smi->sum[index] = number;
    return store_number(smi, row, number);
}

static nw_rc set_reason(struct nw_smi *smi, const struct nw_smi_row *row, const char *value)
{
    uint64_t bits;
    bool yes;

    if (row->how == NW_SMI_REASONS) {
        if (read_hex(value, &bits)) {
            smi->throttle |= (unsigned)(bits & 0x1ff);
            smi->throttle_known = true;
        }
        return NW_OK;
    }
    if (!nw_scan_same(value, "Active") && !nw_scan_same(value, "Not Active"))
        return NW_OK; /* the counters below the reasons have the same names */
    if (nw_scan_yes_no(value, &yes)) {
        smi->throttle |= yes ? row->bit : 0;
        smi->throttle_known = true;
    }
    return NW_OK;
}

static nw_rc set_text(struct nw_smi *smi, size_t index, int rank, const char *value)
{
    const struct nw_smi_row *row = &nw_smi_rows[index];
    char small[64];
    bool yes;
    size_t i = 0;

    if (rank >= smi->rank[index])
        return NW_OK;
    if (row->how == NW_SMI_RESET && nw_scan_yes_no(value, &yes))
        value = yes && !nw_scan_same(value, "None") ? "reset" : "none";
    if (row->how == NW_SMI_RESET || row->how == NW_SMI_WORD) {
        for (; value[i] != '\0' && i + 1 < sizeof small; i++)
            small[i] = value[i] >= 'A' && value[i] <= 'Z' ? (char)(value[i] - 'A' + 'a') : value[i];
        small[i] = '\0';
        value = small;
    }
    smi->rank[index] = (unsigned char)rank;
    if (row->how == NW_SMI_IDENTITY)
        return nw_smi_set_identity(smi, row->fact, value);
    return store_text(smi, row, value);
}

/* Instead of a value, the driver may give the reason why it has none. */
static void note_error(struct nw_smi *smi, const char *path, const char *value)
{
    static const char *const errors[] = {"Unknown Error", "GPU is lost", "GPU requires reset",
                                         "ERR!", "Timeout"};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strstr(value, errors[i]) != NULL && strlen(value) < strlen(errors[i]) + 4) {
            if (smi->error_count++ == 0) {
                snprintf(smi->error, sizeof smi->error, "%s", errors[i]);
                snprintf(smi->error_at, sizeof smi->error_at, "%s", path);
            }
            return;
        }
}

nw_rc nw_smi_value(struct nw_smi *smi, nw_smi_form form, const char *path, const char *value)
{
    const size_t length = strlen(path);

    note_error(smi, path, value);
    for (size_t i = 0; i < nw_smi_row_count; i++) {
        const struct nw_smi_row *row = &nw_smi_rows[i];
        const int rank = rank_of(row->paths[form], path, length);
        const bool says =
            row->how == NW_SMI_WORD || row->how == NW_SMI_RESET || row->how == NW_SMI_YES;

        /* "None" is a value of some, and an absence elsewhere. */
        if (rank < 0 || (nw_scan_unknown(value) && !(says && nw_scan_same(value, "None"))))
            continue;
        if (smi->gpu == 0 && row->to != NW_SMI_TO_MACHINE && row->to != NW_SMI_TO_HOST)
            continue;
        if (row->to == NW_SMI_TO_THROTTLE)
            NW_TRY(set_reason(smi, row, value));
        else if (row->how == NW_SMI_WORDS || row->how == NW_SMI_WORD ||
                 row->how == NW_SMI_IDENTITY || row->how == NW_SMI_RESET ||
                 row->how == NW_SMI_BUS_ID)
            NW_TRY(set_text(smi, i, rank, value));
        else
            NW_TRY(set_number(smi, i, rank, value));
    }
    return NW_OK;
}

nw_rc nw_smi_end_values(struct nw_smi *smi)
{
    if (smi->throttle_known)
        NW_TRY(
            nw_topo_set_number(smi->topo, smi->gpu, NW_FACT_THROTTLE, smi->throttle, smi->source));
    return NW_OK;
}
