/* Do the wires of with-nodes limit, and do ranks of one node share memory?
 *
 *   with-nodes 2x1 1gbit check-wire 2 1e9 0.80 1.02
 *
 * Arguments: hosts there must be; the wire's rate in bits per second; the least and the most that
 * the median may be of it. The ranks all-reduce 16 MiB (4 MiB below 500 Mb/s) seven times after one
 * warm-up. With two ranks that moves every byte over the wire once each way, so bytes/time is the
 * rate of the wire. More ranks: only the lower bound is lifted, since the algorithm decides what
 * crosses; instead, two ranks of one host must exchange faster than the wire could. Plain main: no
 * framework.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 7 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median over samples of the slowest rank's seconds; peer < 0: all-reduce, else exchange with it.
 */
static double seconds(float *send, float *recv, int count, int peer, MPI_Comm comm)
{
    double s[SAMPLES + 1];
    for (int i = 0; i <= SAMPLES; i++) {
        MPI_Barrier(comm);
        double mine = -MPI_Wtime();
        if (peer < 0)
            MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, comm);
        else
            MPI_Sendrecv(send, count, MPI_FLOAT, peer, 0, recv, count, MPI_FLOAT, peer, 0, comm,
                         MPI_STATUS_IGNORE);
        mine += MPI_Wtime();
        MPI_Allreduce(&mine, &s[i], 1, MPI_DOUBLE, MPI_MAX, comm);
    }
    qsort(s + 1, SAMPLES, sizeof(*s), by_value);
    return s[1 + SAMPLES / 2];
}

int main(int argc, char **argv)
{
    int rank, ranks, local_ranks, leader, hosts, wrong = 0;
    MPI_Comm local;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &leader);
    MPI_Comm_size(local, &local_ranks);
    leader = leader == 0;
    MPI_Allreduce(&leader, &hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc != 5) {
        if (rank == 0)
            fprintf(stderr, "usage: check-wire HOSTS BITS_PER_S LEAST MOST\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int want_hosts = atoi(argv[1]);
    const double rate = strtod(argv[2], NULL) / 8, least = strtod(argv[3], NULL),
                 most = strtod(argv[4], NULL);
    const int count = (rate * 8 < 500e6 ? 4 : 16) * 1024 * 1024 / (int)sizeof(float);
    float *send = malloc(count * sizeof(float)), *recv = malloc(count * sizeof(float));
    if (!send || !recv)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < count; i++)
        send[i] = (float)(i % 1000);

    const double bytes = count * (double)sizeof(float);
    const double bus =
        bytes / seconds(send, recv, count, -1, MPI_COMM_WORLD) * 2 * (ranks - 1) / ranks;
    for (int i = 0; i < count && !wrong; i++)
        wrong = recv[i] != send[i] * (float)ranks;
    double shared = 0;
    if (local_ranks > 1) {
        int me;
        MPI_Comm_rank(local, &me);
        shared = bytes / seconds(send, recv, count, me < 2 ? 1 - me : MPI_PROC_NULL, local);
    }
    int failed = wrong || hosts != want_hosts || bus > most * rate * (hosts < ranks ? ranks : 1) ||
                 (hosts == ranks && bus < least * rate) || (local_ranks > 1 && shared < 1.5 * rate);
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks on %d hosts (wanted %d): all-reduce of %.0f MiB at %.1f Mb/s = %.1f %% of "
               "the wire",
               ranks, hosts, want_hosts, bytes / 1048576, bus * 8e-6, 100 * bus / rate);
        if (local_ranks > 1)
            printf("; within a host %.0f Mb/s", shared * 8e-6);
        printf("%s\n", wrong ? "; WRONG DATA" : failed ? "; outside the bounds" : "");
    }
    free(send);
    free(recv);
    MPI_Finalize();
    return failed;
}
