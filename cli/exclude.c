#include "cli/exclude.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cli/cli.h"
#include "results/fleet.h"

static bool has_case(const struct nw_plan *plan, const char *name)
{
    for (size_t i = 0; nw_bench_case_name(i) != NULL; i++)
        if (strcmp(nw_bench_case_name(i), name) == 0)
            return plan->cases & 1u << i;
    return false;
}

/* Nobody is a suspect: a list of an earlier run would be wrong now. */
static nw_rc update(const char *results_path, const char *path)
{
    struct nw_results results = {0};
    struct nw_fleet_report report = {.suspect_count = 0};
    nw_rc rc;

    NW_TRY(nw_results_read(results_path, &results));
    rc = nw_fleet_of_results(&results, &report);
    nw_results_free(&results);
    if (rc == NW_ENODEV) { /* one rank: no pairs */
        nw_clear_error();
        rc = NW_OK;
    }
    NW_TRY(rc);
    if (report.suspect_count > 0) {
        rc = nw_fleet_write_excluded(&report, path);
        if (rc == NW_OK)
            nw_message("%zu host%s to leave out: %s", report.suspect_count,
                       report.suspect_count == 1 ? "" : "s", path);
    } else if (unlink(path) != 0 && errno != ENOENT)
        rc = nw_fail(NW_EIO, "%s: nobody is to be left out any more, and it cannot be removed: %s",
                     path, strerror(errno));
    nw_fleet_report_free(&report);
    return rc;
}

void nw_cli_write_excluded(const struct nw_plan *plan, const char *results, const char *path)
{
    struct stat file;

    if (results[0] == '\0' || !(has_case(plan, "pairs") || has_case(plan, "nic")) ||
        stat(results, &file) != 0 || !S_ISREG(file.st_mode) || update(results, path) == NW_OK)
        return;
    nw_message("warning: %s", nw_last_error()->text);
    nw_clear_error();
}
