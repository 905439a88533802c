/* Private to tests/fake/. The keys of a machine file. */
#ifndef NW_TESTS_FAKE_MACHINE_KEYS_H
#define NW_TESTS_FAKE_MACHINE_KEYS_H

#include "tests/fake/machine.h"

enum { FK_SECTION_MACHINE, FK_SECTION_GPU, FK_SECTION_LANE };

struct fk_reader {
    struct fk_machine *machine;
    const char *path;
    int line, section;
    int first_gpu, last_gpu; /* which GPUs the keys of [gpu] are about */
    struct fk_lane *lane;
};

void fk_read_key(struct fk_reader *reader, const char *key, const char *value);
/* Everything that a double divides by or relies on. */
void fk_check_machine(struct fk_machine *machine, const char *path);

#endif
