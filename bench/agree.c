#include "bench/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct verdict {
    int rc;
    char text[sizeof((struct nw_err *)NULL)->text];
};

/* Losing a peer is a consequence: the rank that has a cause of its own speaks. -1: all is well. */
static int speaking_rank(const struct nw_comm *comm, const int *codes)
{
    int speaker = -1;

    for (int rank = comm->rank_count - 1; rank >= 0; rank--) {
        const int code = codes[rank];

        if (code == NW_OK)
            continue;
        if (code != NW_EPEER || speaker < 0 || codes[speaker] == NW_EPEER)
            speaker = rank;
    }
    return speaker;
}

static nw_rc agree_on(struct nw_comm *comm, const int *codes, const char *text)
{
    const int speaker = speaking_rank(comm, codes);
    struct verdict verdict = {.rc = NW_OK};
    char who[NW_COMM_RANK_TEXT];

    if (speaker < 0)
        return NW_OK;
    verdict.rc = codes[speaker];
    snprintf(verdict.text, sizeof verdict.text, "%s", text);
    NW_TRY(comm->ops->share(comm, &verdict, sizeof verdict, speaker));
    /* bad input and files are rank 0's, which is where the person is */
    if (comm->rank_count == 1 || (speaker == 0 && nw_rc_exit_code((nw_rc)verdict.rc) == 2))
        return nw_fail((nw_rc)verdict.rc, "%s", verdict.text);
    return nw_fail((nw_rc)verdict.rc, "%s: %s", nw_comm_rank_text(comm, speaker, who),
                   verdict.text);
}

nw_rc nw_agree(struct nw_comm *comm, nw_rc mine)
{
    const int code = (int)mine;
    char text[sizeof nw_last_error()->text] = "";
    int *codes;
    nw_rc rc;

    if (mine != NW_OK)
        snprintf(text, sizeof text, "%s", nw_last_error()->text);
    codes = calloc((size_t)comm->rank_count, sizeof *codes);
    if (codes == NULL)
        return nw_fail(NW_ENOMEM, "no memory for the answers of %d ranks", comm->rank_count);
    rc = comm->ops->exchange(comm, &code, sizeof code, codes);
    if (rc == NW_OK)
        rc = agree_on(comm, codes, text);
    else if (mine != NW_OK)
        rc = nw_fail(mine, "%s", text);
    free(codes);
    return rc;
}
