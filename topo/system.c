/* The parts in turn, and what they share. */
#include "topo/system.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/mounts.h"
#include "topo/system_parts.h"

extern char **environ;

nw_rc nw_topo_not_checked(struct nw_topo *topo, const char *format, ...)
{
    struct nw_finding *item = NULL;
    char *what, *text;
    va_list arguments;

    for (size_t i = 0; i < topo->findings.count; i++)
        if (strcmp(topo->findings.items[i].code, "not-checked") == 0)
            item = &topo->findings.items[i];
    va_start(arguments, format);
    const int length = vasprintf(&what, format, arguments);
    va_end(arguments);
    if (length < 0)
        return nw_fail(NW_ENOMEM, "no memory for a finding");
    if (item == NULL) {
        const nw_rc rc = nw_findings_add(&topo->findings, NW_FINDING_INFO, "not-checked",
                                         topo->host, NULL, "not checked: %s", what);

        free(what);
        return rc;
    }
    if (strstr(item->text, what) != NULL) {
        free(what);
        return NW_OK;
    }
    const int joined = asprintf(&text, "%s; %s", item->text, what);

    free(what);
    if (joined < 0)
        return nw_fail(NW_ENOMEM, "no memory for a finding");
    free(item->text);
    item->text = text;
    return NW_OK;
}

/* --- processes --- */

static bool is_number(const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if (!isdigit((unsigned char)*at))
            return false;
    return name[0] != '\0';
}

static nw_rc add_process(struct nw_processes *processes, size_t *capacity, const char *name)
{
    if (processes->count == *capacity) {
        const size_t wanted = *capacity > 0 ? 2 * *capacity : 256;
        char(*names)[16] = realloc(processes->names, wanted * sizeof *names);

        if (names == NULL)
            return nw_fail(NW_ENOMEM, "no memory for the names of %zu processes", wanted);
        processes->names = names;
        *capacity = wanted;
    }
    snprintf(processes->names[processes->count++], sizeof *processes->names, "%.15s", name);
    return NW_OK;
}

nw_rc nw_processes_read(const char *root, struct nw_processes *processes_out)
{
    struct nw_processes processes = {0};
    char path[PATH_MAX], entry[32], name[64], space[64] = "";
    struct nw_system_folder folder;
    size_t capacity = 0;
    nw_rc rc = NW_OK;

    snprintf(path, sizeof path, "%s/proc", root);
    nw_system_open_folder(&folder, path);
    while (rc == NW_OK && nw_system_next(&folder, entry, sizeof entry))
        if (is_number(entry) && nw_system_text(name, sizeof name, "%s/%s/comm", path, entry))
            rc = add_process(&processes, &capacity, name);
    nw_system_close_folder(&folder);
    if (rc != NW_OK) {
        nw_processes_free(&processes);
        return rc;
    }
    processes.readable = processes.count > 0;
    /* The number of the machine's own PID namespace: PROC_PID_INIT_INO of the kernel. */
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    const bool first =
        readlink(path, space, sizeof space - 1) > 0 && strcmp(space, "pid:[4026531836]") == 0;

    processes.hidden = processes.readable && !nw_system_text(name, sizeof name, "%s/proc/1/comm",
                                                             root); /* mount option hidepid */
    processes.of_machine = processes.readable && first && !processes.hidden;
    *processes_out = processes;
    return NW_OK;
}

void nw_processes_free(struct nw_processes *processes)
{
    free(processes->names);
    *processes = (struct nw_processes){0};
}

bool nw_processes_have(const struct nw_processes *processes, const char *name)
{
    for (size_t i = 0; i < processes->count; i++)
        if (strncmp(processes->names[i], name, 15) == 0)
            return true;
    return false;
}

/* --- environment, facts --- */

const char *nw_system_variable(const struct nw_system *system, const char *name)
{
    const char *const *list =
        system->environment != NULL ? system->environment : (const char *const *)environ;
    const size_t length = strlen(name);

    for (; list != NULL && *list != NULL; list++)
        if (strncmp(*list, name, length) == 0 && (*list)[length] == '=')
            return *list + length + 1;
    return NULL;
}

bool nw_system_has_program(const struct nw_system *system, const char *name)
{
    const char *path = nw_system_variable(system, "PATH");
    char file[PATH_MAX];

    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");

        snprintf(file, sizeof file, "%s%.*s/%s", system->root, (int)length, path, name);
        if (length > 0 && access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

nw_rc nw_system_number(struct nw_system *system, nw_fact_id id, double number, const char *source)
{
    return nw_topo_set_number(system->topo, 0, id, number, source);
}

nw_rc nw_system_say(struct nw_system *system, nw_fact_id id, const char *text, const char *source)
{
    return nw_topo_set_text(system->topo, 0, id, text, source);
}

nw_rc nw_system_read_mounts(struct nw_system *system)
{
    struct nw_mounts mounts;
    char text[160];

    if (nw_mounts_read(system->root, &mounts) != NW_OK) {
        nw_clear_error();
        return NW_OK;
    }
    nw_mounts_shared_text(&mounts, text, sizeof text);
    const bool any = mounts.count > 0;

    nw_mounts_free(&mounts);
    if (!any)
        return NW_OK;
    return nw_system_say(system, NW_FACT_PARALLEL_FS, text[0] != '\0' ? text : "none",
                         "/proc/self/mountinfo");
}

static nw_rc tell_unseen(struct nw_system *system)
{
    const struct nw_processes *processes = &system->processes;

    if (processes->hidden)
        return nw_topo_not_checked(
            system->topo,
            "services and schedulers that run (processes are hidden from this user: run as "
            "root)");
    if (processes->readable && !processes->of_machine)
        return nw_topo_not_checked(
            system->topo, "services and schedulers of the host (the container shows only its own "
                          "processes: run outside of it)");
    return NW_OK;
}

nw_rc nw_system_read(const struct nw_system_places *places, struct nw_topo *topo)
{
    static nw_rc (*const parts[])(struct nw_system *) = {
        nw_system_read_driver, nw_system_read_versions, nw_system_read_isolation,
        nw_system_read_limits, nw_system_read_services, nw_system_read_mounts,
        tell_unseen,
    };
    struct nw_system system = {
        .root = places->root, .environment = places->environment, .topo = topo};
    nw_rc rc;

    if (topo->node_count == 0)
        return nw_fail(NW_EUSAGE, "a topology without its machine has no place for facts");
    rc = nw_processes_read(system.root, &system.processes);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && rc == NW_OK; i++)
        rc = parts[i](&system);
    nw_processes_free(&system.processes);
    if (rc == NW_OK)
        nw_clear_error(); /* texts that are no numbers mean unknown, here */
    return rc;
}
