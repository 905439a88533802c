/* The parent's side of the reading process. */
#include "cli/check_read.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"

#define LINE_MAX_BYTES (64u << 20)
#define MARGIN_NS      1e9

struct nw_check_reader {
    pid_t pid; /* 0: ended */
    int fd;
    char *line; /* what came of the current one */
    size_t length, capacity;
    char *text; /* the last reading; NULL */
    char phase[96];
    double deadline_ns; /* of the phase */
    struct nw_findings findings;
};

static nw_rc start(const struct nw_check_wish *wish, int fd, pid_t *pid_out)
{
    char parent[16], *arguments[10] = {"nodeworth", "reader", "--parent", parent};
    char **environment;
    size_t count = 4;
    nw_rc rc;

    snprintf(parent, sizeof parent, "%d", (int)getpid());
    if (wish->python)
        arguments[count++] = "--python";
    if (wish->load)
        arguments[count++] = "--load";
    if (wish->disk != NULL) {
        arguments[count++] = "--disk";
        arguments[count++] = (char *)(uintptr_t)wish->disk;
    }
    /* Ranks that are shown one GPU each: this one reads for all of them. */
    NW_TRY(nw_child_environment(&(struct nw_child_change){.name = "CUDA_VISIBLE_DEVICES"},
                                wish->for_all_ranks ? 1 : 0, &environment));
    rc = nw_child_start(arguments, environment, &fd, 1, pid_out);
    nw_child_free_environment(environment);
    return rc;
}

nw_rc nw_check_reader_start(const struct nw_check_wish *wish, struct nw_check_reader **reader_out)
{
    struct nw_check_reader *reader = calloc(1, sizeof *reader);
    int ends[2];
    nw_rc rc;

    if (reader == NULL)
        return nw_fail(NW_ENOMEM, "no memory to read this host");
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(reader);
        return nw_fail(NW_EIO, "cannot make a pipe to read this host: %s", strerror(errno));
    }
    rc = start(wish, ends[1], &reader->pid);
    close(ends[1]);
    if (rc != NW_OK || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        close(ends[0]);
        free(reader);
        return rc != NW_OK ? rc : nw_fail(NW_EIO, "cannot read from a pipe");
    }
    reader->fd = ends[0];
    snprintf(reader->phase, sizeof reader->phase, "starting");
    reader->deadline_ns = (double)nw_now_ns() + 20e9;
    *reader_out = reader;
    return NW_OK;
}

static void take_phase(struct nw_check_reader *reader, const json_t *json)
{
    double limit_s = 0;

    (void)nw_json_get_field(json, "reader", "phase", true, reader->phase, sizeof reader->phase);
    (void)nw_json_get_real(json, "reader", "limit_s", true, &limit_s);
    reader->deadline_ns = (double)nw_now_ns() + limit_s * 1e9 + MARGIN_NS;
}

static void take_line(struct nw_check_reader *reader)
{
    json_t *json = json_loadb(reader->line, reader->length, 0, NULL);
    const char *title = "", *text = "";

    if (json_object_get(json, "phase") != NULL) {
        take_phase(reader, json);
    } else if (json_object_get(json, "failed") != NULL) {
        (void)nw_json_get_text(json, "reader", "failed", true, &title);
        (void)nw_json_get_text(json, "reader", "text", false, &text);
        (void)nw_findings_add(&reader->findings, NW_FINDING_WARN, "reading-failed", "", NULL,
                              "%s: %s", title, text);
    } else if (json != NULL) {
        char *copy = malloc(reader->length + 1);

        if (copy != NULL) {
            memcpy(copy, reader->line, reader->length);
            copy[reader->length] = '\0';
            free(reader->text);
            reader->text = copy;
        }
    }
    json_decref(json);
    reader->length = 0;
}

static bool keep(struct nw_check_reader *reader, const char *data, size_t length)
{
    if (reader->length + length > reader->capacity) {
        const size_t capacity = (reader->length + length) * 2;
        char *larger = capacity <= LINE_MAX_BYTES ? realloc(reader->line, capacity) : NULL;

        if (larger == NULL)
            return false;
        reader->line = larger;
        reader->capacity = capacity;
    }
    memcpy(reader->line + reader->length, data, length);
    reader->length += length;
    return true;
}

/* False: no more will come. */
static bool take_in(struct nw_check_reader *reader)
{
    char data[65536];

    for (;;) {
        const ssize_t n = read(reader->fd, data, sizeof data);
        const char *at = data;

        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        for (const char *end = data + n; at < end;) {
            const char *newline = memchr(at, '\n', (size_t)(end - at));
            const size_t length = (size_t)((newline != NULL ? newline : end) - at);

            if (!keep(reader, at, length))
                return false;
            if (newline != NULL)
                take_line(reader);
            at += length + (newline != NULL);
        }
    }
}

/* A process that waits in the kernel for a device does not even die: it is not waited for. */
static bool ends_soon(pid_t pid, int *status_out)
{
    const struct timespec pause = {.tv_nsec = 2000000};

    for (int tries = 0; tries < 150; tries++) {
        if (nw_child_ended(pid, status_out))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void give_up(struct nw_check_reader *reader)
{
    const char state = nw_child_state(reader->pid);
    int status;

    kill(reader->pid, SIGKILL);
    (void)ends_soon(reader->pid, &status);
    reader->pid = 0;
    (void)nw_findings_add(
        &reader->findings, NW_FINDING_FAIL, "reading-hangs", "",
        "look at dmesg; nvidia-smi or df on this host will hang as well; restart the host if so",
        "%s did not end in time%s: given up", reader->phase,
        state == 'D' ? " (the process waits in the kernel for a device)" : "");
}

bool nw_check_reader_step(struct nw_check_reader *reader)
{
    char fate[128];
    int status;

    if (reader->pid == 0)
        return false;
    if (take_in(reader)) {
        if ((double)nw_now_ns() <= reader->deadline_ns)
            return true;
        give_up(reader);
        return false;
    }
    if (!ends_soon(reader->pid, &status)) {
        give_up(reader);
        return false;
    }
    reader->pid = 0;
    if (status != 0)
        (void)nw_findings_add(&reader->findings, NW_FINDING_WARN, "reading-failed", "", NULL,
                              "%s: the reading process %s", reader->phase,
                              nw_child_fate(fate, sizeof fate, status));
    return false;
}

const char *nw_check_reader_phase(const struct nw_check_reader *reader)
{
    return reader->phase;
}

const char *nw_check_reader_text(const struct nw_check_reader *reader)
{
    return reader->text != NULL ? reader->text : "";
}

const struct nw_findings *nw_check_reader_findings(const struct nw_check_reader *reader)
{
    return &reader->findings;
}

void nw_check_reader_close(struct nw_check_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->pid != 0) {
        int status;

        kill(reader->pid, SIGKILL);
        (void)ends_soon(reader->pid, &status);
    }
    close(reader->fd);
    nw_findings_free(&reader->findings);
    free(reader->line);
    free(reader->text);
    free(reader);
}
