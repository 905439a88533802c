#include "cli/cli.h"

int nw_cmd_bench(int argc, char **argv)
{
    (void)argc, (void)argv;
    return nw_cli_fail(nw_fail(NW_ENOTSUP, "not written yet"));
}
