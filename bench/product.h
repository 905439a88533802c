/* Private to bench/. A matrix product D = A · Bᵀ (m × n × k) on a rank's GPU, ours or cuBLAS', as
 * something to load the GPU with, to time and to verify.
 *
 * Operands are random numbers, never zeros, which would need less power and let the clock rise:
 * whole numbers so small that every sum is exact, however it is added up. There are
 * NW_PRODUCT_PERIOD different rows, which repeat: so the host knows every element of D from a
 * product of that many rows. The period is a prime: a tile in the wrong place shows.
 *
 *     NW_TRY(nw_product_open(&devices.own, n, &product));
 *     NW_TRY(nw_product_operands(&product, NW_BFLOAT16));
 *     NW_TRY(nw_product_queue(&product, NW_PRODUCT_OWN, stream));
 *     …
 *     NW_TRY(nw_product_check(&product, &wrong, &first));
 *     nw_product_close(&product);
 */
#ifndef NW_BENCH_PRODUCT_H
#define NW_BENCH_PRODUCT_H

#include "bench/device_work.h"
#include "bench/plan.h"
#include "kernels/cublas_api.h"

#define NW_PRODUCT_PERIOD 127
#define NW_PRODUCT_MAX    8192 /* n; sums of more of these numbers would not be exact */
#define NW_PRODUCT_STEP   256  /* n is a multiple of it */

/* X(id, lane of the record) */
#define NW_PRODUCT_LANE_MAP(X)                                                                     \
    X(NW_PRODUCT_OWN, "own")                                                                       \
    X(NW_PRODUCT_CUBLAS, "cublas")

typedef enum {
#define X(id, name) id,
    NW_PRODUCT_LANE_MAP(X)
#undef X
        NW_PRODUCT_LANE_COUNT
} nw_product_lane;
extern const char *const nw_product_lanes[NW_PRODUCT_LANE_COUNT];

struct nw_product {
    struct nw_device *device;
    struct nw_cublas *cublas; /* NULL: none */
    char no_cublas[1024];     /* then: why */
    struct nw_gemm gemm;
    unsigned char *stage; /* pinned */
    int16_t *numbers;     /* of A, then of B: NW_PRODUCT_PERIOD rows of n */
    float *expected;      /* NW_PRODUCT_PERIOD × NW_PRODUCT_PERIOD */
    int range;            /* numbers are -range … range; 0: none are made */
};

/* n for GPUs of which the smallest has so many bytes free: a call of the fastest then takes a
 * millisecond and more, and operands and result fill at most half of the memory. `wanted` 0: the
 * largest. 0: nothing fits. */
int nw_product_size(int wanted, uint64_t free_bytes);
/* Of both operands and the result. */
uint64_t nw_product_bytes(const struct nw_gemm_shape *shape, int32_t dtype);
/* Is there room for it, as nw_product_size says? */
bool nw_product_fits(const struct nw_gemm_shape *shape, uint64_t free_bytes);
/* Can our own kernel make it, of whole tiles? */
bool nw_product_is_tiled(const struct nw_gemm_shape *shape);

/* Of n × n × n. cuBLAS works on device->stream. `product` may be closed also after a failure. */
nw_rc nw_product_open(struct nw_device *device, int n, struct nw_product *product_out);
/* Another shape from now on; operands must be made anew. m and n: NW_PRODUCT_PERIOD and more. */
nw_rc nw_product_reshape(struct nw_product *product, const struct nw_gemm_shape *shape);
void nw_product_close(struct nw_product *product);
/* Waits until they are on the GPU. */
nw_rc nw_product_operands(struct nw_product *product, int32_t dtype);
/* One product onto device->stream. NW_ENOTSUP, NW_ENODEV: this lane has none of this type here. */
nw_rc nw_product_queue(struct nw_product *product, nw_product_lane lane);
nw_rc nw_product_spoil(struct nw_product *product); /* D, so that an old result does not pass */
/* Every element of D, after the stream's work. */
nw_rc nw_product_check(struct nw_product *product, uint64_t *wrong_out, struct nw_wrong *first_out);
double nw_product_flop(const struct nw_product *product);

#endif
