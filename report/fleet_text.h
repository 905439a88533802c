/* Public. Hosts compared with each other, for people: classes, hosts, a map of the pairs, findings,
 * and what to leave out. */
#ifndef NW_REPORT_FLEET_TEXT_H
#define NW_REPORT_FLEET_TEXT_H

#include <stdio.h>

#include "results/fleet.h"

/* `all`: good hosts too, however many. */
nw_rc nw_report_fleet(FILE *stream, const struct nw_fleet_report *report, bool all);

#endif
