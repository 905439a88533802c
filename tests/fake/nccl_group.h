/* Private to tests/fake/. Communicators that are made inside a group are made at its end, together.
 */
#ifndef NW_TESTS_FAKE_NCCL_GROUP_H
#define NW_TESTS_FAKE_NCCL_GROUP_H

#include <stdbool.h>

#include "tests/fake/nccl_fake.h"

bool fk_group_is_open(void);
ncclResult_t fk_group_run_inits(void); /* nccl_init.c */

#endif
