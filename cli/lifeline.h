/* Private to cli/. The parents of ranks keep a connection to the parent of rank 0: so those that
 * wait for a rank hear of its death, and of its host's (bench/lifeline.h).
 *
 * Star of TCP connections with a secret that the ranks have passed on by MPI. Nothing here waits.
 *
 *     nw_cli_lifeline_open(shared, &line);
 *     … every now and then: nw_cli_lifeline_turn(line);
 *     nw_cli_lifeline_died(line, "killed by signal 9");   // a rank other than 0
 *     nw_cli_lifeline_close(line);
 */
#ifndef NW_CLI_LIFELINE_H
#define NW_CLI_LIFELINE_H

#include <stdbool.h>

#include "base/err.h"
#include "bench/lifeline.h"

struct nw_cli_lifeline;

nw_rc nw_cli_lifeline_open(struct nw_lifeline *shared, struct nw_cli_lifeline **line_out);
/* Listens or calls when the rank has asked for it; takes what has come; tells of losses. */
void nw_cli_lifeline_turn(struct nw_cli_lifeline *line);
/* Being connected or calling: then turns should follow each other soon. */
bool nw_cli_lifeline_is_busy(const struct nw_cli_lifeline *line);
/* To rank 0's parent. False: it cannot be told, the launcher must be. */
bool nw_cli_lifeline_died(struct nw_cli_lifeline *line, const char *text);
/* Of the parent of a rank other than 0: is rank 0's still there? */
bool nw_cli_lifeline_holds(const struct nw_cli_lifeline *line);
/* Of rank 0's parent: a host was lost without a word, its launcher's daemon with it. */
bool nw_cli_lifeline_has_silent(const struct nw_cli_lifeline *line);
/* Accepts NULL. Rank 0's ends all the others' waiting. */
void nw_cli_lifeline_close(struct nw_cli_lifeline *line);

/* Of rank 0's parent, with what it was told. */
struct nw_cli_lifeline_host {
    char name[64];
    int rank_count;
    bool lost;
};
/* Hosts in the order of their ranks; at most `most`. How many. */
bool nw_cli_lifeline_host_of(const struct nw_cli_lifeline *line, int rank, char name[64]);
int nw_cli_lifeline_hosts(const struct nw_cli_lifeline *line, struct nw_cli_lifeline_host *hosts,
                          int most);

#endif
