/* CUDA graphs: work captured from a stream, launched as one. */
#include <stdlib.h>

#include "kernels/dev_cuda.h"

struct nw_graph {
    struct cuda_dev *dev;
    struct CUgraphExec_st *handle;
};

static nw_rc fail(const struct nw_stream *stream, nw_cu_result code, const char *what)
{
    return nw_cuda_fail(stream->dev->cu, code, "gpu %d: %s", stream->dev->base.index, what);
}

nw_rc nw_cuda_graph_begin(struct nw_stream *stream)
{
    const struct nw_cuda_api *cu = stream->dev->cu;

    if (cu->cuStreamBeginCapture == NULL || cu->cuStreamEndCapture == NULL ||
        cu->cuGraphInstantiateWithFlags == NULL || cu->cuGraphLaunch == NULL ||
        cu->cuGraphExecDestroy == NULL || cu->cuGraphDestroy == NULL)
        return nw_fail(NW_ENOTSUP, "gpu %d: the driver has no CUDA graphs (11.4 has them)",
                       stream->dev->base.index);
    NW_TRY(nw_cuda_enter(stream->dev));
    /* Other threads, as those of NCCL, may do what a capture forbids this one. */
    const nw_cu_result code =
        cu->cuStreamBeginCapture(stream->handle, NW_CU_STREAM_CAPTURE_THREAD_LOCAL);

    return code == NW_CU_SUCCESS ? NW_OK : fail(stream, code, "cannot capture a stream");
}

nw_rc nw_cuda_graph_end(struct nw_stream *stream, struct nw_graph **graph_out)
{
    const struct nw_cuda_api *cu = stream->dev->cu;
    struct nw_graph *graph = calloc(1, sizeof *graph);
    struct CUgraph_st *captured = NULL;
    nw_cu_result code;

    NW_TRY(nw_cuda_enter(stream->dev));
    code = cu->cuStreamEndCapture(stream->handle, &captured);
    if (graph != NULL && code == NW_CU_SUCCESS)
        code = cu->cuGraphInstantiateWithFlags(&graph->handle, captured, 0);
    if (captured != NULL)
        cu->cuGraphDestroy(captured);
    if (graph == NULL)
        return nw_fail(NW_ENOMEM, "no memory for a CUDA graph");
    if (code != NW_CU_SUCCESS) {
        free(graph);
        return fail(stream, code, "cannot make a CUDA graph of what was captured");
    }
    graph->dev = stream->dev;
    *graph_out = graph;
    return NW_OK;
}

nw_rc nw_cuda_graph_launch(struct nw_stream *stream, struct nw_graph *graph)
{
    NW_TRY(nw_cuda_enter(stream->dev));
    const nw_cu_result code = stream->dev->cu->cuGraphLaunch(graph->handle, stream->handle);

    return code == NW_CU_SUCCESS ? NW_OK : fail(stream, code, "cannot launch a CUDA graph");
}

void nw_cuda_graph_close(struct nw_graph *graph)
{
    if (graph == NULL)
        return;
    if (nw_cuda_enter(graph->dev) == NW_OK)
        graph->dev->cu->cuGraphExecDestroy(graph->handle);
    free(graph);
}
