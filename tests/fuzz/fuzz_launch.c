/* The command line of a launcher, and a file of hosts: counted or unknown, and the same twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int hosts_in_file(const uint8_t *data, size_t size)
{
    const int file = memfd_create("hosts", MFD_CLOEXEC);
    char path[32];
    int count = -1;

    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (file >= 0 && write(file, data, size) == (ssize_t)size)
        count = nw_launch_hosts_in_file(path);
    close(file);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char from[96] = "", again[96] = "";
    const int hosts =
        nw_launch_hosts_in((const char *)data, size, "nodeworth", "/nowhere", from, sizeof from);

    if (hosts == 0 || hosts < -1 || hosts > (int)size ||
        hosts != nw_launch_hosts_in((const char *)data, size, "nodeworth", "/nowhere", again,
                                    sizeof again) ||
        strcmp(from, again) != 0)
        abort();
    if (size > 0 && hosts_in_file(data, size) == 0)
        abort();
    return 0;
}
