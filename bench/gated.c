#include "bench/gated.h"

#include <math.h>

#include "base/clock.h"

/* Long enough for the slowest rank to have its work in the queue, on hosts with more ranks than
 * CPUs too; then a gate gives up, so that a rank that never comes leaves no GPU spinning for ever.
 */
#define GATE_MIN_NS 10e9
#define GATE_MAX_NS 60e9

static double gate_ns(const struct nw_gated *gated)
{
    const double least_ns = fmax(gated->timeout_ns, GATE_MIN_NS);

    return gated->comm->simulated ? least_ns : fmin(least_ns, GATE_MAX_NS);
}

static nw_rc queue_calls(const struct nw_gated *gated, uint64_t index, uint32_t calls)
{
    for (uint32_t call = 0; call < calls; call++)
        NW_TRY(gated->queue(gated->user, index + call));
    return NW_OK;
}

/* Before the gate is held: making a graph of hundreds of calls takes the host its time. */
static nw_rc capture(const struct nw_gated *gated, uint64_t index, uint32_t calls,
                     struct nw_graph **graph_out)
{
    const struct nw_dev_ops *ops = gated->dev->ops;
    struct nw_graph *graph = NULL;
    nw_rc rc, end;

    NW_TRY(ops->graph_begin(gated->stream));
    rc = queue_calls(gated, index, calls);

    const struct nw_err error = *nw_last_error();

    end = ops->graph_end(gated->stream, &graph); /* also after a failure: it would go on */
    if (rc == NW_OK && end == NW_OK) {
        *graph_out = graph;
        return NW_OK;
    }
    if (end == NW_OK)
        ops->graph_close(graph);
    return rc == NW_OK ? end
                       : nw_fail_at(rc, error.lib, error.lib_code, error.where, "%s", error.text);
}

/* With the gate held: the work, between its marks. */
static nw_rc queue(const struct nw_gated *gated, struct nw_graph *graph, uint64_t index,
                   uint32_t calls)
{
    const struct nw_dev_ops *ops = gated->dev->ops;

    if (gated->meet != NULL)
        NW_TRY(gated->meet(gated->user));
    NW_TRY(ops->mark_set(gated->stream, gated->start));
    if (graph != NULL)
        NW_TRY(ops->graph_launch(gated->stream, graph));
    else
        NW_TRY(queue_calls(gated, index, calls));
    return ops->mark_set(gated->stream, gated->end);
}

static nw_rc finish(const struct nw_gated *gated)
{
    return gated->finish != NULL ? gated->finish(gated->user, gated->timeout_ns)
                                 : gated->dev->ops->wait(gated->stream, gated->timeout_ns);
}

/* A gate that gave up let its work start without the others': its time says nothing. Asked here as
 * a communicator's `finish`, which waits in slices, cannot tell that from work that goes on. */
static nw_rc check_gate(const struct nw_gated *gated, uint64_t held_ns)
{
    const double waited_ns = (double)(nw_now_ns() - held_ns);

    if (waited_ns < gate_ns(gated))
        return NW_OK;
    return nw_fail(NW_ETIMEOUT,
                   "the work behind the gate was in the queue of all ranks only after %.3g s, so "
                   "the gate gave up after %.3g s; is a rank's CPU busy with something else?",
                   waited_ns * 1e-9, gate_ns(gated) * 1e-9);
}

static nw_rc time_queued(const struct nw_gated *gated, struct nw_graph *graph, uint64_t index,
                         uint32_t calls, double *ns_out)
{
    struct nw_comm *comm = gated->comm;
    uint64_t held_ns;
    nw_rc rc;

    NW_TRY(gated->dev->ops->gate_hold(gated->stream, gate_ns(gated)));
    held_ns = nw_now_ns();
    rc = queue(gated, graph, index, calls);
    if (rc == NW_OK)
        rc = comm->ops->barrier(comm);
    if (rc == NW_OK)
        rc = check_gate(gated, held_ns);
    gated->dev->ops->gate_release(gated->stream);
    if (rc == NW_OK)
        rc = finish(gated);
    return rc == NW_OK ? gated->dev->ops->mark_elapsed(gated->start, gated->end, ns_out) : rc;
}

nw_rc nw_gated_time(const struct nw_gated *gated, uint64_t index, uint32_t calls, double *ns_out)
{
    struct nw_graph *graph = NULL;
    nw_rc rc;

    if (gated->stream == NULL) {
        *ns_out = 0;
        return gated->comm->ops->barrier(gated->comm);
    }
    if (gated->graph)
        NW_TRY(capture(gated, index, calls, &graph));
    rc = time_queued(gated, graph, index, calls, ns_out);
    if (graph != NULL && rc == NW_OK) /* else its launch may go on, and ends with the process */
        gated->dev->ops->graph_close(graph);
    return rc;
}
