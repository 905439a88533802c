/* Private to cli/. One host read by a process of its own: a driver or a file system that hangs
 * costs what it would have told, not the whole check. What was read before is kept.
 *
 *     NW_TRY(nw_check_reader_start(&wish, &reader));
 *     while (nw_check_reader_step(reader))
 *         …something else, or sleep…;
 *     text = nw_check_reader_text(reader);        // "" when nothing was read
 *     nw_check_reader_close(reader);
 */
#ifndef NW_CLI_CHECK_READ_H
#define NW_CLI_CHECK_READ_H

#include <stdbool.h>

#include "base/finding.h"

struct nw_check_wish {
    bool python, load;
    const char *disk;   /* a directory; NULL: no */
    bool for_all_ranks; /* the host has other ranks, whose GPUs are read, too */
};

struct nw_check_reader;
nw_rc nw_check_reader_start(const struct nw_check_wish *wish, struct nw_check_reader **reader_out);
/* Takes in what is there, does not wait; kills the process where a phase is past its time. False:
 * it has ended. */
bool nw_check_reader_step(struct nw_check_reader *reader);
const char *nw_check_reader_phase(const struct nw_check_reader *reader); /* "reading PyTorch" */
/* The last whole reading, one line of JSON: "topology". Borrowed. */
const char *nw_check_reader_text(const struct nw_check_reader *reader);
/* Phases that failed or did not end: sentences for "not-checked". */
const struct nw_findings *nw_check_reader_findings(const struct nw_check_reader *reader);
void nw_check_reader_close(struct nw_check_reader *reader); /* kills it; accepts NULL */

/* `nodeworth reader`: the process itself, not for people. */
int nw_cmd_reader(int argc, char **argv);
/* NW_EUSAGE: `path` (NULL: none is asked for) is no directory here, and all ranks run on this host.
 * On several hosts it may be there on others: each says so itself. */
nw_rc nw_check_disk(const char *path);

#endif
