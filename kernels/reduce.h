/* Public. The arithmetic of reductions on the host, for every element type.
 *
 * Integers wrap around; half and bfloat16 are widened to float, combined, and rounded back once a
 * call (nearest even). Arrays are the caller's and may not overlap.
 *
 *     memcpy(sum, a, count * 4);
 *     nw_reduce_into(NW_FLOAT, NW_SUM, sum, b, count);          // sum = a + b
 */
#ifndef NW_KERNELS_REDUCE_H
#define NW_KERNELS_REDUCE_H

#include "kernels/dtype.h"

/* inout[i] = inout[i] op in[i]. NW_AVG adds: divide at the end with nw_divide. */
void nw_reduce_into(nw_dtype type, nw_redop op, void *inout, const void *in, size_t count);
/* data[i] = data[i] / divisor, correctly rounded; integers towards zero. */
void nw_divide(nw_dtype type, void *data, size_t count, int divisor);

#endif
