/* Public. Which product a GPU is. Names are shared by products ("NVIDIA H800" is a board and a
 * card), and sold ones are wrong; so everything read of it decides: name, default power limit,
 * memory, NVLinks, PCIe generation, PCI device id. The catalogue (topo/gpus.csv) has the products.
 *
 *     struct nw_gpu_product product;
 *     nw_gpu_identify(topo, gpu, &product);
 *     if (product.gpu != NULL) printf("%s by %s\n", product.gpu->name, product.decided);
 *     if (product.contradiction[0] != '\0') …    // the name says another one
 */
#ifndef NW_TOPO_PRODUCT_H
#define NW_TOPO_PRODUCT_H

#include "topo/gpu.h"
#include "topo/topo.h"

enum { NW_PRODUCT_MAX_FITS = 6 };

struct nw_gpu_product {
    const struct nw_gpu *gpu;   /* what it is by all that was read; NULL: not in the catalogue */
    const struct nw_gpu *named; /* what its name alone says; NULL: the name leaves several */
    /* Rows that fit equally well, `gpu` first: more than one where too little was read. */
    const struct nw_gpu *fits[NW_PRODUCT_MAX_FITS];
    int fit_count;
    char decided[192];       /* "name, power limit 350 W, 12 of 18 NVLinks" */
    char contradiction[320]; /* what does not fit the name, and what it would fit; "": nothing */
};

/* `gpu`: node index. */
void nw_gpu_identify(const struct nw_topo *topo, int gpu, struct nw_gpu_product *product_out);
/* The same by name alone, as a quote or a log has it. */
void nw_gpu_identify_name(const char *name, struct nw_gpu_product *product_out);

#endif
