/* CUDA graphs for the programs of ci/gpu: what is queued on a stream between graph_begin and
 * graph_end becomes a graph. Own prototypes of five driver calls (CUDA 11.4 and later). */
#ifndef NW_TESTS_GPU_GRAPH_H
#define NW_TESTS_GPU_GRAPH_H

#include <dlfcn.h>

#include "kernels/dev.h"
#include "base/library.h"

struct graph_api {
    int (*begin)(void *stream, int mode); /* mode 0 global, 1 this thread, 2 relaxed */
    int (*end)(void *stream, void **graph);
    int (*instantiate)(void **instance, void *graph, unsigned long long flags);
    int (*launch)(void *instance, void *stream);
    int (*destroy_instance)(void *instance);
    int (*destroy)(void *graph);
};

static inline nw_rc graph_open(const struct nw_dev *dev, struct graph_api *api_out)
{
    static const struct nw_library_symbol symbols[] = {
        {offsetof(struct graph_api, begin), "cuStreamBeginCapture_v2", NULL, true},
        {offsetof(struct graph_api, end), "cuStreamEndCapture", NULL, true},
        {offsetof(struct graph_api, instantiate), "cuGraphInstantiateWithFlags", NULL, true},
        {offsetof(struct graph_api, launch), "cuGraphLaunch", NULL, true},
        {offsetof(struct graph_api, destroy_instance), "cuGraphExecDestroy", NULL, true},
        {offsetof(struct graph_api, destroy), "cuGraphDestroy", NULL, true},
    };
    void *library = dlopen(dev->library_path, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return nw_fail(NW_ENODEV, "%s is not loaded", dev->library_path);
    return nw_library_symbols(library, dev->library_path, symbols, sizeof symbols / sizeof *symbols,
                              api_out);
}

#define GRAPH_DO(call, what)                                                                       \
    do {                                                                                           \
        const int code_ = (call);                                                                  \
        if (code_ != 0)                                                                            \
            return nw_fail(NW_ELIB, "%s: CUDA error %d", what, code_);                             \
    } while (0)

/* `queue` puts the work on the stream, in relaxed mode: NCCL calls the driver meanwhile. The
 * instance is the caller's, to launch and to destroy. */
static inline nw_rc graph_of(const struct graph_api *api, void *stream, nw_rc (*queue)(void *user),
                             void *user, void **instance_out)
{
    void *graph = NULL;
    GRAPH_DO(api->begin(stream, 2), "begin of a capture");
    const nw_rc rc = queue(user);
    const struct nw_err error = *nw_last_error();
    const int code = api->end(stream, &graph);
    if (rc != NW_OK)
        return nw_fail(rc, "while capturing: %s", error.text);
    GRAPH_DO(code, "end of a capture");
    GRAPH_DO(api->instantiate(instance_out, graph, 0), "making a graph");
    GRAPH_DO(api->destroy(graph), "freeing a graph");
    return NW_OK;
}

#endif
