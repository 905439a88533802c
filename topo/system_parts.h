/* Private to topo/. The parts of nw_system_read. */
#ifndef NW_TOPO_SYSTEM_PARTS_H
#define NW_TOPO_SYSTEM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/timex.h>

#include "topo/system.h"
#include "topo/system_text.h"

struct nw_processes {
    char (*names)[16]; /* as the kernel keeps them: 15 characters */
    size_t count;
    bool readable;   /* there is a /proc with processes */
    bool of_machine; /* all processes of the machine are among them: no container's own, none
                        hidden */
    bool hidden;     /* others' processes are hidden from this user */
};

struct nw_system {
    const char *root;
    const char *const *environment;
    struct nw_topo *topo;
    struct nw_processes processes;
};

nw_rc nw_processes_read(const char *root, struct nw_processes *processes_out);
void nw_processes_free(struct nw_processes *processes);
bool nw_processes_have(const struct nw_processes *processes, const char *name);

const char *nw_system_variable(const struct nw_system *system, const char *name); /* NULL: unset */
bool nw_system_has_program(const struct nw_system *system, const char *name);     /* in PATH */
/* 510 of "5.10.0-8-amd64", 618 of "6.18.44"; 0: none such */
int nw_system_kernel(const char *release);

nw_rc nw_system_number(struct nw_system *system, nw_fact_id id, double number, const char *source);
nw_rc nw_system_say(struct nw_system *system, nw_fact_id id, const char *text, const char *source);

nw_rc nw_system_read_driver(struct nw_system *system);
nw_rc nw_system_read_versions(struct nw_system *system);
nw_rc nw_system_read_isolation(struct nw_system *system); /* IOMMU, hypervisor, container */
nw_rc nw_system_read_limits(struct nw_system *system);
nw_rc nw_system_read_services(struct nw_system *system); /* and schedulers */
nw_rc nw_system_read_mounts(struct nw_system *system);
/* What adjtimex said: is the clock disciplined, and within how many seconds (NAN: not said). */
bool nw_system_clock_of(int state, const struct timex *clock, double *error_s_out);

#endif
