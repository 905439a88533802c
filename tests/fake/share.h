/* Private to tests/fake/. GPUs behind one PCIe switch share its uplink (share and shared in the
 * machine file): copies that run at the same time get a part each. At the same time means: their
 * streams' gates opened together, in whatever process of the job. */
#ifndef NW_TESTS_FAKE_SHARE_H
#define NW_TESTS_FAKE_SHARE_H

#include "tests/fake/fake.h"

enum { FK_TO_DEVICE, FK_FROM_DEVICE };

/* A copy over the uplink was queued on this stream. */
void fk_share_queue(struct CUstream_st *stream, int direction);
/* The stream is done, its host has seen it. */
void fk_share_end(struct CUstream_st *stream);
/* Its gate has opened: who else is there? Waits a little, so that all have asked before the first
 * is done. */
void fk_share_count(struct CUstream_st *stream);
/* The rate that is left for a copy. */
double fk_share_rate(const struct CUstream_st *stream, int direction, double rate);

/* In each stream. */
struct fk_share {
    int slot; /* of the job's table, + 1; 0: none */
    int count[2];
};
struct fk_share *fk_stream_share(struct CUstream_st *stream);

#endif
