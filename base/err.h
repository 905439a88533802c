/* Public. Errors: a return code for the caller, and one sentence for the person.
 *
 * The function that finds the first cause words it, with nw_fail(); everybody above only hands the
 * code on (NW_TRY). The sentence says what was attempted, on what, what was found and what to do.
 * It is kept per thread and belongs to this module; the next nw_fail() in the same thread replaces
 * it.
 *
 *     if (fd < 0)
 *         return nw_fail(NW_EIO, "%s: cannot open for reading: %s", path, strerror(errno));
 *     ...
 *     NW_TRY(nw_file_read(path, limit, &data, &length));
 */
#ifndef NW_BASE_ERR_H
#define NW_BASE_ERR_H

#include <stdarg.h>

/* X(code, text, exit code of the program): the exit codes are those of the README's table. */
#define NW_RC_MAP(X)                                                                               \
    X(NW_OK, "success", 0)                                                                         \
    X(NW_EUSAGE, "bad input", 2)                                                                   \
    X(NW_ENOTSUP, "not supported here", 3)                                                         \
    X(NW_ENODEV, "no such device here", 3)                                                         \
    X(NW_ENOMEM, "out of memory", 4)                                                               \
    X(NW_EIO, "input or output failed", 2)                                                         \
    X(NW_ETIMEOUT, "no answer in time", 4)                                                         \
    X(NW_EWRONG, "wrong data", 1)                                                                  \
    X(NW_ELIB, "a library failed", 4)                                                              \
    X(NW_EPEER, "another rank failed", 4)

typedef enum {
#define X(code, text, exit_code) code,
    NW_RC_MAP(X)
#undef X
        NW_RC_COUNT
} nw_rc;

struct nw_err {
    nw_rc rc;          /* NW_OK: nothing failed yet in this thread */
    const char *lib;   /* "hwloc", "mpi", …; NULL: ours */
    int lib_code;      /* the library's own code; 0: ours */
    const char *where; /* "topo/read_hwloc.c:88" */
    char text[1024];   /* one sentence, no newline */
};

#define NW_STRINGIFY_(x) #x
#define NW_STRINGIFY(x)  NW_STRINGIFY_(x)
#define NW_HERE          __FILE__ ":" NW_STRINGIFY(__LINE__)

/* Record the first cause and return `rc`. */
#define nw_fail(rc, ...)                nw_fail_at((rc), NULL, 0, NW_HERE, __VA_ARGS__)
#define nw_fail_lib(rc, lib, code, ...) nw_fail_at((rc), (lib), (code), NW_HERE, __VA_ARGS__)

/* Hand a failure on. */
#define NW_TRY(call)                                                                               \
    do {                                                                                           \
        nw_rc nw_try_rc_ = (call);                                                                 \
        if (nw_try_rc_ != NW_OK)                                                                   \
            return nw_try_rc_;                                                                     \
    } while (0)

/* The same in a function that cleans up at a label; needs `nw_rc rc` in scope. */
#define NW_TRY_GOTO(call, label)                                                                   \
    do {                                                                                           \
        rc = (call);                                                                               \
        if (rc != NW_OK)                                                                           \
            goto label;                                                                            \
    } while (0)

nw_rc nw_fail_at(nw_rc rc, const char *lib, int lib_code, const char *where, const char *format,
                 ...) __attribute__((format(printf, 5, 6)));

/* The last failure of this thread; never NULL. */
const struct nw_err *nw_last_error(void);
void nw_clear_error(void);

const char *nw_rc_name(nw_rc rc); /* "NW_EIO" */
const char *nw_rc_text(nw_rc rc); /* "input or output failed" */
int nw_rc_exit_code(nw_rc rc);

/* Messages for people, on stderr: "nodeworth bench: text\n", in their language (base/words.h). Only
 * cli/ calls these; the library folders return. */
void nw_message_prefix(const char *prefix); /* "nodeworth bench", kept by reference */
void nw_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A torn character at the end of a cut text would spoil the terminal's line: it is taken away. */
void nw_trim_torn_utf8(char *text);

#endif
