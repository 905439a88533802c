/* Private to cli/. Candidates as decide takes them: NAME=FILE,FILE,… each file told by its content:
 * results or a log, a quote, a topology. */
#ifndef NW_CLI_CANDIDATE_ARGS_H
#define NW_CLI_CANDIDATE_ARGS_H

#include "base/option.h"
#include "model/candidates.h"

struct nw_candidate_files; /* owns what was read */

/* `topos`: files of hosts, owned by the result. NW_EUSAGE: no name, no file, a name twice, a file
 * that cannot be read. */
nw_rc nw_candidate_files_read(const struct nw_option_list *list,
                              struct nw_candidate_files **files_out);
void nw_candidate_files_free(struct nw_candidate_files *files); /* accepts NULL */
size_t nw_candidate_files_count(const struct nw_candidate_files *files);
const struct nw_candidate_input *nw_candidate_files_inputs(const struct nw_candidate_files *files);

/* Topology files, one after the other; the caller frees each and the list. */
nw_rc nw_topo_files_read(const struct nw_option_list *list, struct nw_topo ***topos_out);
void nw_topo_files_free(struct nw_topo **topos, size_t count);

#endif
