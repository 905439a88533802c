/* Private to cli/. What `env` says of one host: sections of rows, {"section": {"row": text, number,
 * or {"version", "path"}}}. No name of a host, no serial number, no key, no token: it is made to be
 * shown to strangers.
 */
#ifndef NW_CLI_ENV_READ_H
#define NW_CLI_ENV_READ_H

#include <jansson.h>

#include "base/err.h"

/* What cannot be read is left out; a machine with nothing installed has its rows all the same. */
nw_rc nw_env_read(json_t **host_out);

#endif
