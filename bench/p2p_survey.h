/* Private to bench/. Which GPUs of a host reach each other? On each host one rank, the first, opens
 * all ranks' GPUs in its own process: so a pair needs no second process, and a GPU no more than one
 * context besides its rank's.
 *
 *     NW_TRY(nw_survey_open(bench, &devices, &survey));        // collective
 *     NW_TRY(nw_agree(comm, nw_survey_allocate(&survey, bytes)));
 *     ... survey.gpus[place] on surveyors, nw_survey_access() everywhere ...
 *     nw_survey_close(&survey);
 */
#ifndef NW_BENCH_P2P_SURVEY_H
#define NW_BENCH_P2P_SURVEY_H

#include "bench/device_work.h"
#include "bench/paths_judge.h"

#define NW_SURVEY_MAX 32 /* GPUs of a host */

typedef enum {
    NW_PEERS_UNKNOWN,     /* not to be measured: why[] */
    NW_PEERS_STAGED,      /* no access to each other's memory */
    NW_PEERS_DIRECT,      /* access, and without it */
    NW_PEERS_DIRECT_ONLY, /* access, which another library in the process has turned on */
} nw_peers;

struct nw_survey_gpu { /* of a surveyor */
    struct nw_dev *dev;
    bool opened; /* here: to be closed */
    struct nw_device device;
    void *to, *from;
};

struct nw_survey_host {
    unsigned char peers[NW_SURVEY_MAX][NW_SURVEY_MAX];    /* nw_peers, by place */
    unsigned char nearness[NW_SURVEY_MAX][NW_SURVEY_MAX]; /* nw_nearness, by place */
    char why[256];                                        /* some are unknown; "": none */
};

struct nw_survey {
    struct nw_bench *bench;
    int gpu_count; /* 0: this rank is no surveyor */
    struct nw_survey_gpu gpus[NW_SURVEY_MAX];
    struct nw_survey_host *hosts; /* a rank each; that of the surveyor counts */
};

/* A rank's place among those of its host, and back; -1: the host has not so many. */
int nw_survey_place(const struct nw_comm *comm, int rank);
int nw_survey_rank(const struct nw_comm *comm, int host, int place);

nw_rc nw_survey_open(struct nw_bench *bench, const struct nw_devices *devices,
                     struct nw_survey *survey_out);
nw_rc nw_survey_allocate(struct nw_survey *survey, uint64_t bytes); /* two buffers a GPU */
void nw_survey_close(struct nw_survey *survey);
nw_peers nw_survey_peers(const struct nw_survey *survey, int host, int a, int b);
nw_nearness nw_survey_nearness(const struct nw_survey *survey, int host, int a, int b);
/* Access of two places to each other's memory. */
nw_rc nw_survey_connect(struct nw_survey *survey, int a, int b, bool on);

#endif
