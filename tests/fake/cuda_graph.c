/* CUDA graphs, as far as a benchmark uses them: what one stream captured, launched again and again.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake.h"

struct CUgraph_st {
    struct fk_op **ops;
    size_t count, room;
};

static void graph_free(struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        free(graph->ops[i]);
    free(graph->ops);
    free(graph);
}

static struct fk_op *op_copy(const struct fk_op *op)
{
    struct fk_op *copy = malloc(sizeof *copy + op->bytes);
    return copy ? memcpy(copy, op, sizeof *copy + op->bytes) : NULL;
}

fk_result fk_capture(struct CUgraph_st *graph, const struct fk_op *op)
{
    if (graph->count == graph->room) {
        const size_t room = graph->room ? 2 * graph->room : 16;
        struct fk_op **more = realloc(graph->ops, room * sizeof *more);
        if (!more)
            return CU_OUT_OF_MEMORY;
        graph->ops = more;
        graph->room = room;
    }
    graph->ops[graph->count] = op_copy(op);
    return graph->ops[graph->count] ? (graph->count++, CU_OK) : CU_OUT_OF_MEMORY;
}

FK_EXPORT fk_result cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode)
{
    (void)mode;
    if (!stream) /* the null stream cannot be captured */
        return CU_CAPTURE_UNSUPPORTED;
    if (fk_capturing(stream))
        return 901; /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (!graph)
        return CU_OUT_OF_MEMORY;
    fk_set_capturing(stream, graph);
    return CU_OK;
}

FK_EXPORT fk_result cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
    if (!stream || !fk_capturing(stream))
        return CU_INVALID_VALUE;
    *graph = fk_capturing(stream);
    fk_set_capturing(stream, NULL);
    return CU_OK;
}

FK_EXPORT fk_result cuStreamIsCapturing(struct CUstream_st *stream, int *status)
{
    *status = stream && fk_capturing(stream);
    return CU_OK;
}

FK_EXPORT fk_result cuGraphDestroy(struct CUgraph_st *graph)
{
    if (!graph)
        return CU_INVALID_VALUE;
    graph_free(graph);
    return CU_OK;
}

/* An instance is a graph of its own: the first may be destroyed or captured anew. */
FK_EXPORT fk_result cuGraphInstantiateWithFlags(struct CUgraph_st **instance,
                                                struct CUgraph_st *graph, unsigned long long flags)
{
    (void)flags;
    struct CUgraph_st *copy = graph ? calloc(1, sizeof *copy) : NULL;
    if (!copy)
        return graph ? CU_OUT_OF_MEMORY : CU_INVALID_VALUE;
    for (size_t i = 0; i < graph->count; i++)
        if (fk_capture(copy, graph->ops[i]) != CU_OK) {
            graph_free(copy);
            return CU_OUT_OF_MEMORY;
        }
    *instance = copy;
    return CU_OK;
}

FK_EXPORT fk_result cuGraphExecDestroy(struct CUgraph_st *instance)
{
    return cuGraphDestroy(instance);
}

FK_EXPORT fk_result cuGraphGetNodes(struct CUgraph_st *graph, void **nodes, size_t *count)
{
    (void)nodes;
    if (!graph)
        return CU_INVALID_VALUE;
    *count = graph->count;
    return CU_OK;
}

/* One launch for the host, whatever the graph holds. */
FK_EXPORT fk_result cuGraphLaunch(struct CUgraph_st *instance, struct CUstream_st *stream)
{
    stream = fk_stream(stream);
    if (!instance || !stream)
        return CU_INVALID_VALUE;
    const int64_t now = fk_host_spend(fk_machine()->launch_us);
    for (size_t i = 0; i < instance->count; i++) {
        instance->ops[i]->queued_ps = now;
        const fk_result code = fk_push_op(stream, instance->ops[i]);
        if (code != CU_OK)
            return code;
    }
    return CU_OK;
}
