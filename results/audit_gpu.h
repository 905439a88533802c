/* Private to results/. GPU names as vendors and drivers write them, and what a product's NVLink
 * carries. */
#ifndef NW_RESULTS_AUDIT_GPU_H
#define NW_RESULTS_AUDIT_GPU_H

#include <stdbool.h>

typedef enum {
    NW_GPU_FORM_UNKNOWN,
    NW_GPU_FORM_SXM,
    NW_GPU_FORM_PCIE,
    NW_GPU_FORM_NVL
} nw_gpu_form;

struct nw_gpu_name {
    char words[8][16]; /* the product, upper case: "H100", or "RTX" "4090" "D" */
    int word_count;
    nw_gpu_form form;
    int memory_gb; /* as named; 0: not */
};

/* `driver`: the name comes from the machine; there "NVIDIA H100 80GB HBM3" means SXM5. */
void nw_gpu_name_of(const char *text, bool driver, struct nw_gpu_name *name_out);
/* Is the machine's GPU the quoted product? What the quote leaves open (form, memory) fits any. */
bool nw_gpu_name_fits(const struct nw_gpu_name *quoted, const struct nw_gpu_name *found);
/* "H100 PCIe"; at most 63 letters. */
const char *nw_gpu_name_text(const struct nw_gpu_name *name, char text[64]);
const char *nw_gpu_form_text(nw_gpu_form form); /* "SXM" … "" */

struct nw_gpu_nvlink {
    double bytes_per_s; /* per GPU, one way, all links; 0: the product has none; NAN: unknown */
    bool bridge;        /* joins pairs (or fours) of cards, never a whole node */
    int links;          /* of the whole product; 0: none, or unknown */
    double link_bytes_per_s; /* one link, one way; NAN: unknown */
    bool reduces;            /* its switches can reduce (NVLS): Hopper and later behind NVSwitch */
};
struct nw_gpu_nvlink nw_gpu_nvlink_of(const struct nw_gpu_name *name);

#endif
