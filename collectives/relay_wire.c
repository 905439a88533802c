#include "collectives/relay_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A process that has gone must not end this one by SIGPIPE. */
nw_rc nw_wire_write(int fd, const void *data, uint64_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return nw_fail(NW_EPEER, "the process at the other end of the relay is gone: %s",
                           strerror(errno));
        at += sent;
        bytes -= (uint64_t)sent;
    }
    return NW_OK;
}

nw_rc nw_wire_send(int fd, const struct nw_wire_head *head, const void *data)
{
    NW_TRY(nw_wire_write(fd, head, sizeof *head));
    return nw_wire_write(fd, data, head->bytes);
}

nw_rc nw_wire_read(int fd, void *data, uint64_t bytes)
{
    char *to = data;

    while (bytes > 0) {
        const ssize_t got = read(fd, to, bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return nw_fail(NW_EPEER, "the process at the other end of the relay is gone%s%s",
                           got < 0 ? ": " : "", got < 0 ? strerror(errno) : "");
        to += got;
        bytes -= (uint64_t)got;
    }
    return NW_OK;
}
