/* Private to bench/. What a measurement sent through each host's ports, by the ports' own counters:
 * which carried it, how evenly, and how many bytes a call. It is what crossed the wire, whatever
 * the library's algorithm: bus bandwidth only says what a ring would have sent.
 *
 * The work is wrapped so that its calls are counted; the counters are read before and after the
 * whole measurement, whose barriers and exchanges are small against NW_PORTS_BYTES_MIN a call.
 *
 *     struct nw_ports_watch watch = nw_ports_watch(&work);
 *     nw_ports_begin(comm, &watch);                               // reads the counters
 *     NW_TRY(nw_measure(&how, &watch.work, &measured));
 *     NW_TRY(nw_ports_gather(&watch, comm, &ports));               // collective; rank 0 has them
 *     nw_ports_use(ports, first_host, host_count, &use);
 *     free(ports);
 */
#ifndef NW_BENCH_PORTS_H
#define NW_BENCH_PORTS_H

#include "bench/measure.h"
#include "topo/traffic.h"

#define NW_PORTS_BYTES_MIN (256u << 10)

struct nw_ports_watch {
    struct nw_work work; /* first: nw_measure hands it back */
    const struct nw_work *inner;
    uint64_t calls;
    struct nw_traffic before;
};

/* Of a host, what all ranks are told of. */
#define NW_PORTS_MOST 40
struct nw_ports_moved {
    struct nw_traffic_port ports[NW_PORTS_MOST]; /* the busiest, then the fastest */
    size_t count, left_out;
};

struct nw_ports_host { /* what went through its ports */
    uint64_t calls;    /* 0: not known */
    struct nw_ports_moved moved;
};

struct nw_ports_use { /* of the busiest host of some, in the direction in which it moved more */
    int host;         /* -1: nothing is known, and the rest is not set */
    bool rdma;        /* through RDMA, else through the kernel */
    double call_bytes;
    int port_count, used_count; /* that could carry it, and that did: NW_PORTS_USED_SHARE of the
                                   busiest or more */
    double busiest_share;       /* of the sum, 0..1 */
    double bits_per_s;          /* line rate of the ports that could; 0: unknown of one */
    char used[160];             /* "mlx5_0, mlx5_1" */
    size_t left_out;            /* ports beyond NW_PORTS_MOST: less busy than those */
};
#define NW_PORTS_USED_SHARE 0.10

struct nw_ports_watch nw_ports_watch(const struct nw_work *work);
void nw_ports_begin(const struct nw_comm *comm, struct nw_ports_watch *watch);
/* `hosts_out`: an entry a host on rank 0, which the caller frees; elsewhere NULL. */
nw_rc nw_ports_gather(const struct nw_ports_watch *watch, struct nw_comm *comm,
                      struct nw_ports_host **hosts_out);
void nw_ports_select(const struct nw_traffic *traffic, struct nw_ports_moved *moved_out);
void nw_ports_use(const struct nw_ports_host *hosts, int first, int count,
                  struct nw_ports_use *use_out);
/* Findings: what a call of `bytes` moves, and ports that have no part in it or too large a one. */
struct nw_bench;
void nw_ports_tell(struct nw_bench *bench, const char *collective, const struct nw_ports_use *use,
                   uint64_t bytes, double time_ns);

#endif
