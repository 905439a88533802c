#include "bench/ports.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/agree.h"

/* ---- the work, its calls counted --------------------------------------------------------------
 */

static struct nw_ports_watch *watch_of(const struct nw_work *base)
{
    return (struct nw_ports_watch *)(uintptr_t)base; /* its own, and no constant */
}

static nw_rc counted_call(const struct nw_work *base, uint64_t index)
{
    struct nw_ports_watch *watch = watch_of(base);

    watch->calls++;
    return watch->inner->call(watch->inner, index);
}

static void counted_fill(const struct nw_work *base, uint64_t round)
{
    const struct nw_work *inner = watch_of(base)->inner;

    inner->fill(inner, round);
}

static uint64_t counted_check(const struct nw_work *base, uint64_t round,
                              struct nw_wrong *first_out)
{
    const struct nw_work *inner = watch_of(base)->inner;

    return inner->check(inner, round, first_out);
}

static nw_rc counted_time(const struct nw_work *base, uint64_t index, uint32_t calls,
                          double *ns_out)
{
    struct nw_ports_watch *watch = watch_of(base);

    watch->calls += calls;
    return watch->inner->time(watch->inner, index, calls, ns_out);
}

struct nw_ports_watch nw_ports_watch(const struct nw_work *work)
{
    struct nw_ports_watch watch = {.work = *work, .inner = work};

    watch.work.call = counted_call;
    watch.work.fill = counted_fill;
    watch.work.check = counted_check;
    watch.work.time = work->time != NULL ? counted_time : NULL;
    return watch;
}

void nw_ports_begin(const struct nw_comm *comm, struct nw_ports_watch *watch)
{
    if (comm->local_rank == 0)
        nw_traffic_read(NULL, &watch->before);
}

/* ---- which of them are told of ----------------------------------------------------------------
 */

/* Busier first; of those that carried nothing, devices before virtual ones, then the faster. */
static int compare_ports(const void *a, const void *b)
{
    const struct nw_traffic_port *x = a, *y = b;
    const double more_x = fmax(x->sent_bytes, x->received_bytes),
                 more_y = fmax(y->sent_bytes, y->received_bytes);

    if (more_x != more_y)
        return more_x < more_y ? 1 : -1;
    if (x->physical != y->physical)
        return x->physical ? -1 : 1;
    return (x->bits_per_s < y->bits_per_s) - (x->bits_per_s > y->bits_per_s);
}

void nw_ports_select(const struct nw_traffic *traffic, struct nw_ports_moved *moved_out)
{
    struct nw_traffic sorted = *traffic;

    if (sorted.count > NW_PORTS_MOST) { /* else in the kernel's order */
        qsort(sorted.ports, sorted.count, sizeof *sorted.ports, compare_ports);
        sorted.left_out += sorted.count - NW_PORTS_MOST;
        sorted.count = NW_PORTS_MOST;
    }
    memcpy(moved_out->ports, sorted.ports, sorted.count * sizeof *sorted.ports);
    moved_out->count = sorted.count;
    moved_out->left_out = sorted.left_out;
}

/* ---- everybody's ------------------------------------------------------------------------------
 */

nw_rc nw_ports_gather(const struct nw_ports_watch *watch, struct nw_comm *comm,
                      struct nw_ports_host **hosts_out)
{
    const size_t ranks = (size_t)comm->rank_count;
    struct nw_ports_host *all = calloc(ranks, sizeof *all);
    struct nw_ports_host *mine = calloc(1, sizeof *mine);
    struct nw_traffic after, moved;
    nw_rc rc = all != NULL && mine != NULL
                   ? NW_OK
                   : nw_fail(NW_ENOMEM, "no memory for the ports of %zu ranks", ranks);

    if (rc == NW_OK && comm->local_rank == 0) {
        nw_traffic_read(NULL, &after);
        nw_traffic_since(&watch->before, &after, &moved);
        nw_ports_select(&moved, &mine->moved);
        mine->calls = watch->calls;
    }
    rc = nw_agree(comm, rc);
    if (rc == NW_OK)
        rc = comm->ops->exchange(comm, mine, sizeof *mine, all);
    free(mine);
    if (rc != NW_OK || comm->rank != 0) {
        free(all);
        all = NULL;
    }
    /* Hosts are numbered by their lowest rank, which is the one that has read. */
    for (size_t rank = 0, host = 0; all != NULL && rank < ranks; rank++)
        if ((size_t)comm->host_of_rank[rank] == host)
            all[host++] = all[rank];
    *hosts_out = all;
    return rc;
}

/* ---- which ports ------------------------------------------------------------------------------
 */

struct sums {
    double sent, received; /* bytes */
};

static struct sums sum_of(const struct nw_ports_moved *moved, bool rdma)
{
    struct sums sums = {0};

    for (size_t i = 0; i < moved->count; i++) {
        sums.sent += moved->ports[i].rdma == rdma ? moved->ports[i].sent_bytes : 0;
        sums.received += moved->ports[i].rdma == rdma ? moved->ports[i].received_bytes : 0;
    }
    return sums;
}

static double more_of(struct sums sums)
{
    return fmax(sums.sent, sums.received);
}

static bool went_by_rdma(const struct nw_ports_moved *moved)
{
    return more_of(sum_of(moved, true)) > more_of(sum_of(moved, false));
}

/* A port for management is far slower than those for data. */
#define SLOWEST_SHARE 0.25

static double fastest(const struct nw_ports_moved *moved, bool rdma)
{
    double bits = 0;

    for (size_t i = 0; i < moved->count; i++)
        if (moved->ports[i].rdma == rdma)
            bits = fmax(bits, moved->ports[i].bits_per_s);
    return bits;
}

static void add_name(char *list, size_t size, const char *name)
{
    const size_t length = strlen(list);

    if (length + strlen(name) + 3 < size)
        snprintf(list + length, size - length, "%s%s", length > 0 ? ", " : "", name);
}

static void look_at_ports(const struct nw_ports_moved *moved, struct nw_ports_use *use)
{
    const struct sums sums = sum_of(moved, use->rdma);
    const bool sends = sums.sent >= sums.received;
    const double least_bits = SLOWEST_SHARE * fastest(moved, use->rdma);
    double busiest = 0;
    bool all_known = true;

    for (size_t i = 0; i < moved->count; i++)
        if (moved->ports[i].rdma == use->rdma)
            busiest =
                fmax(busiest, sends ? moved->ports[i].sent_bytes : moved->ports[i].received_bytes);
    for (size_t i = 0; i < moved->count; i++) {
        const struct nw_traffic_port *port = &moved->ports[i];
        const double bytes = sends ? port->sent_bytes : port->received_bytes;
        const bool used = bytes >= NW_PORTS_USED_SHARE * busiest;

        /* A container's veth or a tunnel that carried nothing is no way between hosts. */
        if (port->rdma != use->rdma ||
            (!used && (!port->physical || port->bits_per_s < least_bits)))
            continue;
        use->port_count++;
        use->used_count += used;
        use->bits_per_s += port->bits_per_s;
        all_known = all_known && port->bits_per_s > 0;
        if (used)
            add_name(use->used, sizeof use->used, port->name);
    }
    use->left_out = moved->left_out;
    use->busiest_share = busiest / more_of(sums);
    use->bits_per_s = all_known ? use->bits_per_s : 0;
}

void nw_ports_use(const struct nw_ports_host *hosts, int first, int count,
                  struct nw_ports_use *use_out)
{
    struct nw_ports_use use = {.host = -1};

    for (int host = first; hosts != NULL && host < first + count; host++) {
        const struct nw_ports_moved *moved = &hosts[host].moved;
        const bool rdma = went_by_rdma(moved);
        const double bytes = more_of(sum_of(moved, rdma));

        if (hosts[host].calls > 0 && bytes / (double)hosts[host].calls > use.call_bytes)
            use = (struct nw_ports_use){
                .host = host, .rdma = rdma, .call_bytes = bytes / (double)hosts[host].calls};
    }
    if (use.host >= 0)
        look_at_ports(&hosts[use.host].moved, &use);
    *use_out = use;
}
