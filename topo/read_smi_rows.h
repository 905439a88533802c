/* Private to topo/'s readers of nvidia-smi. The rows that say what a value means; the table is in
 * read_smi_rows.c, its use in read_smi_values.c. A value more is one row there. */
#ifndef NW_TOPO_READ_SMI_ROWS_H
#define NW_TOPO_READ_SMI_ROWS_H

#include "topo/read_smi.h"

typedef enum {
    NW_SMI_WORDS,
    NW_SMI_WORD,     /* a text in small letters: "Pass-Through", "Completed" */
    NW_SMI_IDENTITY, /* a text that masked files have as zeros */
    NW_SMI_YES,      /* any of the members says yes */
    NW_SMI_NUMBER,
    NW_SMI_SMALL, /* an index, a count of GPUs, a generation */
    NW_SMI_SUM,   /* of the members */
    NW_SMI_WATT,
    NW_SMI_CLOCK, /* MHz to Hz */
    NW_SMI_CELSIUS,
    NW_SMI_BYTES,
    NW_SMI_LANES,      /* "16x", "16" */
    NW_SMI_CAPABILITY, /* "9.0" to 90 */
    NW_SMI_RESET,      /* "Reset Required: Yes", or the action itself */
    NW_SMI_REASON,     /* active or not: a bit of NW_THROTTLE_MAP */
    NW_SMI_REASONS,    /* all bits, as a hexadecimal number */
    NW_SMI_DEVICE_ID,  /* "0x233010DE" */
    NW_SMI_BUS_ID,
} nw_smi_how;

typedef enum {
    NW_SMI_TO_FACT,
    NW_SMI_TO_MACHINE, /* a fact of the machine */
    NW_SMI_TO_HOST,
    NW_SMI_TO_MODEL,
    NW_SMI_TO_PCI,
    NW_SMI_TO_DEVICE_ID,
    NW_SMI_TO_MEMORY,
    NW_SMI_TO_LANES,
    NW_SMI_TO_LANES_MAX,
    NW_SMI_TO_THROTTLE,
} nw_smi_to;

/* Spellings of one value, the best first, separated by '|'; the members of a sum by '+'. A spelling
 * fits the end of a path, whole sections and keys of it. */
struct nw_smi_row {
    nw_smi_how how;
    nw_smi_to to;
    nw_fact_id fact; /* of NW_SMI_TO_FACT and NW_SMI_TO_MACHINE */
    unsigned bit;    /* of NW_SMI_REASON */
    const char *paths[NW_SMI_FORM_COUNT];
};

extern const struct nw_smi_row nw_smi_rows[];
extern const size_t nw_smi_row_count;

#endif
