/* Public. Names by number, and found again by hash. */
#ifndef NW_BASE_NAME_LIST_H
#define NW_BASE_NAME_LIST_H

#include "base/err.h"

struct nw_name_list { /* begins as zeroes; owns its names */
    char **names;
    int count, capacity;
    int *slots; /* index + 1; 0: free */
};

/* The number of `name`, which is added if it is not there. NW_EUSAGE: it would be one more than
 * `most`.
 */
nw_rc nw_name_list_index(struct nw_name_list *list, const char *name, int most, int *index_out);
void nw_name_list_free(struct nw_name_list *list); /* leaves it empty */

#endif
