/* Private to topo/. The readers of what nvidia-smi prints, and what they share: a topology being
 * filled GPU by GPU, and one table (read_smi_values.c) that says what each value means in the text
 * of -q, in the XML of -q -x and in the columns of --query-gpu.
 *
 *     struct nw_smi smi;
 *
 *     NW_TRY(nw_smi_open(&smi, what, "nvidia-smi -q"));
 *     rc = nw_smi_value(&smi, NW_SMI_TEXT, "Driver Version", "535.161.08");   // of the machine
 *     rc = nw_smi_begin_gpu(&smi, "00000000:19:00.0");
 *     rc = nw_smi_value(&smi, NW_SMI_TEXT, "GPU Link Info/PCIe Generation/Max", "5");
 *     return nw_smi_close(&smi, rc, topo_out);     // also on failure; frees
 *
 * All of them show one aspect: NW_TOPO_PARTIAL is always set. Their findings: "file-cut" (less in
 * the file than it announces), "row-refused", "matrix-asymmetric", "gpu-error", "gpu-lost",
 * "inforom-corrupt", "nic-names-cut", "sys-on-grace".
 */
#ifndef NW_TOPO_READ_SMI_H
#define NW_TOPO_READ_SMI_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/scan.h"
#include "topo/topo.h"

enum {
    NW_SMI_MAX_GPUS = 1024,
    NW_SMI_MAX_COLUMNS = 288, /* of a matrix: 72 GPUs and 72 NICs of one NVLink domain, twice */
    NW_SMI_MAX_ROWS = 64,     /* of the table of values */
};

typedef enum { NW_SMI_TEXT, NW_SMI_XML, NW_SMI_CSV, NW_SMI_FORM_COUNT } nw_smi_form;

struct nw_smi_identity { /* UUID or serial number of a GPU */
    int node;
    nw_fact_id id;
    char text[96];
};

struct nw_smi {
    struct nw_topo *topo;
    const char *what, *source;
    int gpu; /* node being filled; 0: none yet, values are the machine's */
    unsigned char rank[NW_SMI_MAX_ROWS]; /* which spelling of the value is set; 255: none */
    double sum[NW_SMI_MAX_ROWS];
    unsigned throttle;
    bool throttle_known;
    int generation, generation_max;     /* PCIe; 0: unknown */
    int error_count;                    /* values that are an error message */
    char error[48], error_at[64];       /* the first of them, and instead of what */
    struct nw_smi_identity *identities; /* become facts at the end, where they differ */
    size_t identity_count, identity_capacity;
};

nw_rc nw_smi_open(struct nw_smi *smi, const char *what, const char *source);
/* A GPU with the next free number. `pci` as printed, NULL: not said; NW_EUSAGE: no PCI address. */
nw_rc nw_smi_begin_gpu(struct nw_smi *smi, const char *pci);
/* The same with the number that the file gives it; -1: the next. */
nw_rc nw_smi_begin_numbered(struct nw_smi *smi, int number);
/* One value of the current GPU or of the machine. `path`: sections and key joined by '/', or the
 * column's name. What the table does not have is not wanted. */
nw_rc nw_smi_value(struct nw_smi *smi, nw_smi_form form, const char *path, const char *value);
/* Completes the current GPU; nothing to do when there is none. */
nw_rc nw_smi_end_gpu(struct nw_smi *smi);
/* Ends the last GPU, compares with the GPUs attached, hands the topology over; a failure `rc` is
 * handed on. */
nw_rc nw_smi_close(struct nw_smi *smi, nw_rc rc, struct nw_topo **topo_out);
/* The topology's findings, worded with the file's name. */
nw_rc nw_smi_cut(struct nw_smi *smi, const char *format, ...) __attribute__((format(printf, 2, 3)));

void nw_smi_reset_values(struct nw_smi *smi); /* read_smi_values.c */
nw_rc nw_smi_end_values(struct nw_smi *smi);

/* A line that reports a GPU which does not answer, or a broken inforom, becomes a finding;
 * *was_out: it was such a line. */
nw_rc nw_smi_message(struct nw_smi *smi, const char *line, bool *was_out);
/* "00000000:19:00.0" and the like. */
bool nw_smi_is_bus_id(const char *word);
/* "GPU 3: NVIDIA A100 (UUID: GPU-…)" */
struct nw_smi_listed {
    int number;
    char model[128], uuid[96];
};
bool nw_smi_listed(const char *line, struct nw_smi_listed *listed_out);
/* A UUID or serial number. All zeros, dots, stars, or the same on two GPUs: masked, left out. */
nw_rc nw_smi_set_identity(struct nw_smi *smi, nw_fact_id id, const char *text);

/* What is refused with what it means; false, NW_OK: not such a file. */
bool nw_is_smi_foreign(const char *data, size_t length); /* another vendor's tool */
nw_rc nw_smi_refuse_foreign(const char *data, size_t length, const char *what);
bool nw_is_smi_message(const char *data, size_t length); /* nvidia-smi could not do it */
nw_rc nw_smi_refuse_message(const char *data, size_t length, const char *what);

/* Narrower than the recognisers of the rows below: the matrix, the table, columns with names. */
bool nw_is_smi_matrix(const char *data, size_t length);
bool nw_is_smi_grid(const char *data, size_t length);
bool nw_is_smi_columns(const char *data, size_t length);

/* The rows of nw_topo_formats. */
#define NW_SMI_READER(name)                                                                        \
    bool nw_is_##name(const char *data, size_t length);                                            \
    nw_rc nw_read_##name(const char *data, size_t length, const char *what,                        \
                         struct nw_topo **topo_out)
NW_SMI_READER(smi_xml);
NW_SMI_READER(smi_several); /* two and more of the following in one file */
NW_SMI_READER(smi_topo);    /* and the tools of other vendors, which it refuses */
NW_SMI_READER(smi_query);
NW_SMI_READER(nvlink);
NW_SMI_READER(smi_table); /* and the messages of any nvidia-smi; the last row therefore */
NW_SMI_READER(smi_csv);
NW_SMI_READER(smi_list);
#undef NW_SMI_READER

#endif
