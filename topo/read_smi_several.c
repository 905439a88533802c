/* Several outputs of nvidia-smi in one file, as people paste them: the table, then topo -m, then
 * nvlink -s. Each reader takes what is its own, and the machines become one. */
#include <stdio.h>
#include <string.h>

#include "topo/read_smi.h"

typedef nw_rc (*reader)(const char *data, size_t length, const char *what,
                        struct nw_topo **topo_out);

/* A list of GPUs is part of nvlink's output. */
static bool is_list_alone(const char *data, size_t length)
{
    return nw_is_smi_list(data, length) && !nw_is_nvlink(data, length);
}

static const struct {
    bool (*is)(const char *data, size_t length);
    reader read;
} parts[] = {
    {nw_is_smi_query, nw_read_smi_query}, {nw_is_smi_grid, nw_read_smi_table},
    {nw_is_smi_columns, nw_read_smi_csv}, {is_list_alone, nw_read_smi_list},
    {nw_is_smi_matrix, nw_read_smi_topo}, {nw_is_nvlink, nw_read_nvlink},
};

enum { PART_COUNT = sizeof parts / sizeof *parts };

bool nw_is_smi_several(const char *data, size_t length)
{
    int count = 0;

    for (size_t i = 0; i < PART_COUNT && count < 2; i++)
        count += parts[i].is(data, length);
    return count >= 2 && !nw_is_smi_foreign(data, length);
}

/* One part into the machine; what cannot be read of it is told, the other parts count. */
static nw_rc take_part(reader read, const char *data, size_t length, const char *what,
                       struct nw_topo **topo)
{
    struct nw_topo *part = NULL;
    char reason[sizeof nw_last_error()->text];
    nw_rc rc = read(data, length, what, &part);

    if (rc == NW_EUSAGE && *topo != NULL) {
        snprintf(reason, sizeof reason, "%s", nw_last_error()->text);
        nw_clear_error();
        return nw_findings_add(&(*topo)->findings, NW_FINDING_WARN, "part-refused", what,
                               "give each output in a file of its own",
                               "one of the outputs in "
                               "this file is left out: "
                               "%.300s",
                               reason);
    }
    if (rc != NW_OK)
        return rc;
    if (*topo == NULL) {
        *topo = part;
        return NW_OK;
    }
    rc = nw_topo_merge(*topo, part);
    nw_topo_free(part);
    return rc;
}

nw_rc nw_read_smi_several(const char *data, size_t length, const char *what,
                          struct nw_topo **topo_out)
{
    struct nw_topo *topo = NULL;
    char refused[sizeof nw_last_error()->text] = ""; /* the recognisers clear it */
    nw_rc rc = NW_OK;

    for (size_t i = 0; i < PART_COUNT; i++) {
        if (!parts[i].is(data, length))
            continue;
        rc = take_part(parts[i].read, data, length, what, &topo);
        if (rc != NW_OK && (rc != NW_EUSAGE || topo != NULL))
            break;
        if (rc != NW_OK && refused[0] == '\0')
            snprintf(refused, sizeof refused, "%s", nw_last_error()->text);
        rc = NW_OK;
    }
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    if (topo == NULL)
        return nw_fail(NW_EUSAGE, "%s", refused);
    nw_clear_error();
    *topo_out = topo;
    return NW_OK;
}
