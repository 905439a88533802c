/* Private to collectives/: what all MPI communicators of the process share: the element types and
 * reductions, with half and bfloat16, which MPI 3.1 has not. Counted references; also the start and
 * end of MPI.
 */
#ifndef NW_COLLECTIVES_MPI_KIT_H
#define NW_COLLECTIVES_MPI_KIT_H

#include <mpi.h>

#include "kernels/reduce.h"

struct nw_mpi_kit {
    int reference_count;
    MPI_Datatype types[NW_DTYPE_COUNT];
    MPI_Op ops[NW_DTYPE_COUNT][NW_REDOP_COUNT]; /* NW_AVG: the sum */
};

nw_rc nw_mpi_kit_make(struct nw_mpi_kit **kit_out);
struct nw_mpi_kit *nw_mpi_kit_hold(struct nw_mpi_kit *kit);
void nw_mpi_kit_release(struct nw_mpi_kit *kit);

/* "Open MPI v4.1.4, package: …", "MPICH 4.0.2", "Intel(R) MPI Library 2021.10 …" */
void nw_mpi_name(char *text, size_t size);

#endif
