/* Public. Results that can be shown to strangers: names of hosts, UUIDs, serial numbers, addresses
 * and paths become pseudonyms. Equal ones stay equal, in all lines that one of these has seen, and
 * with the same seed also in other files and in topologies (nw_topo_anonymise). Figures, models,
 * versions and the layout of the machine stay.
 *
 *     NW_TRY(nw_anonymiser_open(NULL, &anonymiser));
 *     nw_anonymiser_host(anonymiser, "node1");            // all of them, first
 *     NW_TRY(nw_anonymiser_line(anonymiser, json));       // changed in place
 *     nw_anonymiser_free(anonymiser);
 */
#ifndef NW_RESULTS_ANONYMISE_H
#define NW_RESULTS_ANONYMISE_H

#include <jansson.h>

#include "base/err.h"

struct nw_anonymiser; /* owns its names */

/* `seed` NULL: a random one, so that nobody can try names out. */
nw_rc nw_anonymiser_open(const char *seed, struct nw_anonymiser **anonymiser_out);
void nw_anonymiser_free(struct nw_anonymiser *anonymiser); /* accepts NULL */
/* A name to hide wherever it stands. */
nw_rc nw_anonymiser_host(struct nw_anonymiser *anonymiser, const char *name);
/* Every name of a host in this line of a results file. */
nw_rc nw_anonymiser_look(struct nw_anonymiser *anonymiser, const json_t *line);
/* Behind the last name. */
nw_rc nw_anonymiser_line(struct nw_anonymiser *anonymiser, json_t *line);

#endif
