/* Private to topo/'s readers of nvidia-smi. The matrix of nvidia-smi topo while it is read:
 * read_smi_topo.c takes it from the text, read_smi_matrix.c makes nodes, classes and links of it.
 */
#ifndef NW_TOPO_READ_SMI_MATRIX_H
#define NW_TOPO_READ_SMI_MATRIX_H

#include "topo/read_smi.h"

typedef enum {
    NW_CELL_NONE,    /* not seen */
    NW_CELL_SELF,    /* X */
    NW_CELL_CLASS,   /* a class of NW_CLASS_MAP */
    NW_CELL_YES,     /* -p2p: OK */
    NW_CELL_NO,      /* -p2p: CNS, GNS, TNS, NS, DR */
    NW_CELL_UNKNOWN, /* -p2p: U; a word that we don't know */
} nw_smi_cell_kind;

struct nw_smi_cell {
    nw_smi_cell_kind kind;
    nw_class class_id;
    int nvlinks;
};

struct nw_smi_column {
    char label[48]; /* as the matrix has it: "GPU0" "NIC0" "mlx5_ib" */
    char real[64];  /* of the legend; "": not said */
    int number;     /* of a GPU; -1: a NIC */
    int node;
    bool seen; /* its row was read */
};

struct nw_smi_matrix {
    struct nw_smi *smi;
    struct nw_scan *text;
    struct nw_smi_column *columns;
    size_t count, capacity;
    struct nw_smi_cell *cells; /* count x count, by rows */
    bool has_cpu, has_numa,
        has_memory;                 /* columns behind: CPU affinity, NUMA affinity, GPU NUMA ID */
    int cpu_at, numa_at, memory_at; /* columns of the screen from the last name to
                                           their headings */
    bool pcie_only;                 /* -mp */
    bool is_p2p;
    char capability; /* of -p2p: r w n a p; '\0': not said */
    bool has_legend, legend_has_nvlink;
    bool elided, again;
    size_t row_count;
    char refused[200]; /* why the first refused row was */
};

/* "SYS", "NV12", "OK" at the beginning of `text`: its length; 0: no word of a matrix. */
size_t nw_smi_cell_of(const char *text, struct nw_smi_cell *cell_out);
/* Nodes for the columns; needs the legend only for names, which nw_smi_matrix_name gives. */
nw_rc nw_smi_matrix_open(struct nw_smi_matrix *matrix);
/* What stands behind the cells of a GPU's row; `at`: columns from the last cell to `rest`. */
nw_rc nw_smi_matrix_affinity(struct nw_smi_matrix *matrix, size_t row, const char *rest, int at);
/* After the last line: names, classes, links, findings. */
nw_rc nw_smi_matrix_close(struct nw_smi_matrix *matrix);
void nw_smi_matrix_free(struct nw_smi_matrix *matrix);

#endif
