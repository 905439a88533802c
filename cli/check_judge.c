#include "cli/check_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_rows.h"
#include "topo/gid.h"
#include "topo/preflight.h"

struct hosts { /* those that were read; topologies borrowed */
    struct nw_topo **topos;
    size_t count;
};

static nw_rc list_hosts(const struct nw_check_gathered *gathered, struct hosts *hosts)
{
    hosts->topos = calloc(gathered->host_count + 1, sizeof *hosts->topos);
    hosts->count = 0;
    if (hosts->topos == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu hosts", gathered->host_count);
    for (size_t i = 0; i < gathered->host_count; i++)
        if (gathered->hosts[i].topo != NULL)
            hosts->topos[hosts->count++] = gathered->hosts[i].topo;
    return NW_OK;
}

/* ---- facts that only gathering knows -----------------------------------------------------------
 */

static nw_rc complete_facts(struct nw_check_gathered *gathered)
{
    for (size_t i = 0; i < gathered->host_count; i++) {
        struct nw_check_host *host = &gathered->hosts[i];

        if (host->topo == NULL)
            continue;
        snprintf(host->topo->host, sizeof host->topo->host, "%s", host->name);
        if (host->mpi[0] != '\0')
            NW_TRY(nw_topo_set_text(host->topo, 0, NW_FACT_MPI, host->mpi, "MPI"));
    }
    for (size_t i = 0; i < gathered->place_count; i++) {
        struct nw_rank_place *place = &gathered->places[i];
        const struct nw_topo *topo = gathered->hosts[place->host].topo;
        const json_t *visible =
            json_object_get(gathered->environments[place->rank], "CUDA_VISIBLE_DEVICES");

        if (topo != NULL)
            place->gpu = nw_rank_place_gpu(topo, place->local_rank, json_string_value(visible));
    }
    return NW_OK;
}

/* ---- findings ----------------------------------------------------------------------------------
 */

static nw_rc judge_versions(const struct nw_check_gathered *gathered, struct nw_findings *findings)
{
    const struct nw_check_host *first = NULL;

    for (size_t i = 0; i < gathered->host_count; i++) {
        const struct nw_check_host *host = &gathered->hosts[i];

        if (host->version[0] == '\0')
            continue;
        if (first == NULL)
            first = host;
        else if (strcmp(host->version, first->version) != 0)
            NW_TRY(nw_findings_add(findings, NW_FINDING_WARN, "program-differs", host->name,
                                   "install one version on all hosts",
                                   "nodeworth is %s here and %s on %s", host->version,
                                   first->version, first->name));
    }
    return NW_OK;
}

/* May differ by rank, or mpirun's daemons set them on their own hosts. */
static bool may_differ(const char *name)
{
    static const char *const begins[] = {"CUDA_VISIBLE_DEVICES", "OMPI_MCA_plm",  "OMPI_MCA_oob",
                                         "OMPI_MCA_routed",      "OMPI_MCA_ras",  "OMPI_MCA_rmaps",
                                         "OMPI_MCA_hwloc",       "OMPI_MCA_orte", "OMPI_MCA_prte"};

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* Names of rank `a`'s environment that rank `b` has not, or has otherwise; "" none. */
static void list_differing(const json_t *a, const json_t *b, char *text, size_t size)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)a, name, value)
    {
        const size_t used = strlen(text);

        if (may_differ(name) || json_equal(value, json_object_get(b, name)) ||
            strstr(text, name) != NULL)
            continue;
        snprintf(text + used, size - used, "%s%.60s", used > 0 ? ", " : "", name);
    }
}

/* What tunes NCCL, UCX and Open MPI must be the same on all ranks, or they wait for each other. */
static nw_rc judge_environments(const struct nw_check_gathered *gathered,
                                struct nw_findings *findings)
{
    for (int rank = 1; rank < gathered->rank_count; rank++) {
        char names[240] = "";

        if (gathered->environments[0] == NULL || gathered->environments[rank] == NULL)
            continue;
        list_differing(gathered->environments[0], gathered->environments[rank], names,
                       sizeof names);
        list_differing(gathered->environments[rank], gathered->environments[0], names,
                       sizeof names);
        if (names[0] == '\0')
            continue;
        return nw_findings_add(findings, NW_FINDING_WARN, "environment-differs", "all hosts",
                               "set them for all ranks: mpirun -x NAME=VALUE, or the same profile "
                               "on all hosts",
                               "rank %d has other values than rank 0 of: %s", rank, names);
    }
    return NW_OK;
}

static nw_rc judge_reach(const struct nw_check_gathered *gathered, struct nw_findings *findings)
{
    const size_t count = gathered->host_count;
    struct nw_reach_end *ends = calloc(count + 1, sizeof *ends);
    struct nw_reach_try **tries = calloc(count + 1, sizeof *tries);
    size_t *try_counts = calloc(count + 1, sizeof *try_counts);
    nw_rc rc = NW_OK;

    if (ends == NULL || tries == NULL || try_counts == NULL)
        rc = nw_fail(NW_ENOMEM, "no memory for %zu hosts", count);
    for (size_t i = 0; rc == NW_OK && i < count; i++) {
        ends[i] = gathered->hosts[i].end;
        snprintf(ends[i].host, sizeof ends[i].host, "%s", gathered->hosts[i].name);
        tries[i] = gathered->hosts[i].tries;
        try_counts[i] = gathered->hosts[i].try_count;
    }
    if (rc == NW_OK)
        rc = nw_reach_judge(
            &(struct nw_reach_report){
                .ends = ends, .count = count, .tries = tries, .try_counts = try_counts},
            findings);
    free(ends);
    free(tries);
    free(try_counts);
    return rc;
}

/* One rank on a host of several GPUs is there to read it, as one without mpirun is: where it runs
 * says nothing of the job. */
static bool is_of_job(const struct nw_check_gathered *gathered, const struct nw_rank_place *place)
{
    const struct nw_check_host *host = &gathered->hosts[place->host];

    return host->rank_count > 1 || (gathered->rank_count > 1 && host->topo != NULL &&
                                    nw_topo_count(host->topo, NW_NODE_GPU) < 2);
}

static size_t count_of_job(const struct nw_check_gathered *gathered)
{
    size_t count = 0;

    for (size_t i = 0; i < gathered->place_count; i++)
        count += is_of_job(gathered, &gathered->places[i]);
    return count;
}

static nw_rc judge_places(const struct nw_check_gathered *gathered,
                          struct nw_rank_place_advice *advice, struct nw_findings *findings)
{
    struct nw_topo **topos = calloc(gathered->host_count + 1, sizeof *topos);
    struct nw_rank_place *places = calloc(gathered->place_count + 1, sizeof *places);
    struct nw_rank_place_input input = {
        .hosts = topos, .host_count = gathered->host_count, .places = places};
    nw_rc rc = topos != NULL && places != NULL
                   ? NW_OK
                   : nw_fail(NW_ENOMEM, "no memory for %zu hosts", gathered->host_count);

    for (size_t i = 0; rc == NW_OK && i < gathered->host_count; i++)
        topos[i] = gathered->hosts[i].topo;
    for (size_t i = 0; rc == NW_OK && i < gathered->place_count; i++)
        if (is_of_job(gathered, &gathered->places[i]))
            places[input.place_count++] = gathered->places[i];
    if (rc == NW_OK)
        rc = nw_rank_place_advise(&input, advice);
    if (rc == NW_OK)
        rc = nw_rank_place_judge(&input, advice, findings);
    free(places);
    free(topos);
    return rc;
}

static nw_rc gather_findings(const struct nw_check_gathered *gathered, const struct hosts *hosts,
                             struct nw_rank_place_advice *advice, struct nw_findings *all)
{
    struct nw_gid_choice gid;

    NW_TRY(nw_findings_copy(all, &gathered->findings));
    NW_TRY(judge_reach(gathered, all));
    NW_TRY(nw_preflight_judge(&(struct nw_preflight_input){.hosts = hosts->topos,
                                                           .host_count = hosts->count,
                                                           .warn_of_cut = true},
                              all));
    NW_TRY(nw_gid_choose((const struct nw_topo *const *)hosts->topos, hosts->count, &gid, all));
    NW_TRY(judge_versions(gathered, all));
    NW_TRY(judge_environments(gathered, all));
    return judge_places(gathered, advice, all);
}

static bool is_same(const struct nw_finding *a, const struct nw_finding *b)
{
    return strcmp(a->code, b->code) == 0 && strcmp(a->where, b->where) == 0 &&
           strcmp(a->text, b->text) == 0;
}

/* Told before, or by who knows more: of the MTU, the preflight knows devices, the probe the wire.
 */
static bool is_repeated(const struct nw_findings *all, size_t index)
{
    const bool mtu = strcmp(all->items[index].code, "reach-mtu") == 0;

    for (size_t i = 0; i < all->count; i++)
        if ((mtu && strncmp(all->items[i].code, "mtu-differ", 10) == 0) ||
            (i < index && is_same(&all->items[i], &all->items[index])))
            return true;
    return false;
}

/* Failures first; what was not checked apart. */
static nw_rc sort_findings(const struct nw_findings *all, struct nw_check_judged *judged)
{
    for (int severity = NW_FINDING_FAIL; severity >= NW_FINDING_INFO; severity--)
        for (size_t i = 0; i < all->count; i++) {
            const struct nw_finding *finding = &all->items[i];

            if ((int)finding->severity != severity || is_repeated(all, i))
                continue;
            NW_TRY(nw_findings_copy_one(strcmp(finding->code, "not-checked") == 0
                                            ? &judged->not_checked
                                            : &judged->findings,
                                        finding));
        }
    return NW_OK;
}

static bool saw_gpus(const struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (nw_topo_count(hosts->topos[i], NW_NODE_GPU) > 0)
            return true;
    return false;
}

/* What an option would have added. */
static nw_rc tell_options(const struct hosts *hosts, const struct nw_check_wish *wish,
                          size_t judged_ranks, struct nw_findings *not_checked)
{
    char text[320];

    if (wish == NULL)
        return hosts->count < 2
                   ? NW_OK
                   : nw_findings_add(not_checked, NW_FINDING_INFO, "not-checked", "", NULL,
                                     "from files nobody can tell whether the hosts reach each "
                                     "other and where ranks run (mpirun … nodeworth check)");
    snprintf(text, sizeof text, "%s%s%s%s",
             saw_gpus(hosts) && judged_ranks == 0
                 ? ", where the job's ranks run (mpirun, one rank a GPU)"
                 : "",
             saw_gpus(hosts) && !wish->load ? ", speed of the GPUs' PCIe links under load (--load)"
                                            : "",
             wish->disk == NULL ? ", storage of the training data (--disk DIR)" : "",
             !wish->python ? ", PyTorch (--python)" : "");
    if (text[0] == '\0')
        return NW_OK;
    return nw_findings_add(not_checked, NW_FINDING_INFO, "not-checked", "", NULL,
                           "not asked for: %s", text + 2);
}

/* ---- the verdict -------------------------------------------------------------------------------
 */

static size_t count_severity(const struct nw_findings *findings, nw_severity severity)
{
    size_t count = 0;

    for (size_t i = 0; i < findings->count; i++)
        count += findings->items[i].severity == severity;
    return count;
}

static bool saw_devices(const struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (!(hosts->topos[i]->gaps & NW_TOPO_NO_IO))
            return true;
    return false;
}

/* The findings of files that end early; "" none. True: so early that the machine stays unknown in
 * part, rather than one aspect of it. */
static bool list_cut(const struct nw_findings *findings, char *text, size_t size)
{
    bool much = false;

    text[0] = '\0';
    for (size_t i = 0; i < findings->count; i++) {
        const struct nw_finding *finding = &findings->items[i];
        const size_t used = strlen(text);

        if (strcmp(finding->code, "file-cut") != 0)
            continue;
        much |= finding->severity != NW_FINDING_INFO;
        snprintf(text + used, size - used, "%s%.80s%s%.200s", used > 0 ? "; " : "", finding->where,
                 finding->where[0] != '\0' ? ": " : "", finding->text);
    }
    return much;
}

static void decide(const struct nw_check_judged *judged, const struct hosts *hosts,
                   struct nw_check_screen *screen)
{
    const size_t failures = count_severity(&judged->findings, NW_FINDING_FAIL),
                 warnings = count_severity(&judged->findings, NW_FINDING_WARN);
    const bool short_of_quote = judged->audited && nw_audit_exit_code(&judged->audit) == 1;
    const char *quote = short_of_quote ? " The quote is not met." : "";
    char missing[600], cut[700] = "", fit[96];
    const bool much = list_cut(&judged->findings, missing, sizeof missing);

    if (missing[0] != '\0')
        snprintf(cut, sizeof cut, " Unknown, as a file is not whole: %s.", missing);
    screen->verdict = failures > 0 || short_of_quote ? NW_CHECK_UNFIT
                      : saw_devices(hosts) && !much  ? NW_CHECK_FIT
                                                     : NW_CHECK_UNKNOWN;
    snprintf(fit, sizeof fit, "%s",
             short_of_quote ? "not as quoted"
             : much         ? "unknown in part"
                            : "fit to run, by all that was checked");
    if (!saw_devices(hosts) && screen->verdict == NW_CHECK_UNKNOWN)
        snprintf(screen->verdict_text, sizeof screen->verdict_text,
                 "Verdict: unknown. No device of any host could be read.%s", cut);
    else if (failures > 0)
        snprintf(screen->verdict_text, sizeof screen->verdict_text,
                 "Verdict: not fit to run. %zu failure%s, %zu warning%s.%s%s", failures,
                 failures == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s", quote, cut);
    else
        snprintf(screen->verdict_text, sizeof screen->verdict_text,
                 "Verdict: %s. No failure, %zu warning%s.%s%s%s", fit, warnings,
                 warnings == 1 ? "" : "s", quote,
                 saw_gpus(hosts) ? "" : " No GPU was seen: what concerns GPUs is open.", cut);
}

static nw_rc fill_screen(const struct nw_check_question *question,
                         const struct nw_check_gathered *gathered, const struct hosts *hosts,
                         struct nw_check_judged *judged)
{
    struct nw_check_screen *screen = &judged->screen;

    *screen = (struct nw_check_screen){.version = question->version,
                                       .host_count = gathered->host_count,
                                       .read_count = hosts->count,
                                       .rank_count = gathered->rank_count,
                                       .elapsed_ns = NAN,
                                       .rows = judged->rows,
                                       .row_count = NW_CHECK_AREA_COUNT,
                                       .findings = &judged->findings,
                                       .not_checked = &judged->not_checked,
                                       .costs = judged->costed ? &judged->costs : NULL,
                                       .audit = judged->audited ? &judged->audit : NULL};
    for (size_t i = 0; i < gathered->host_count; i++)
        screen->simulated |= gathered->hosts[i].topo != NULL &&
                             nw_topo_number(gathered->hosts[i].topo, 0, NW_FACT_SIMULATED) > 0;
    NW_TRY(nw_check_machines(gathered, screen->machines, sizeof screen->machines));
    decide(judged, hosts, screen);
    return NW_OK;
}

static nw_rc judge(const struct nw_check_question *question, struct nw_check_gathered *gathered,
                   struct hosts *hosts, struct nw_findings *all, struct nw_check_judged *judged)
{
    NW_TRY(complete_facts(gathered));
    NW_TRY(list_hosts(gathered, hosts));
    NW_TRY(gather_findings(gathered, hosts, &judged->advice, all));
    NW_TRY(sort_findings(all, judged));
    NW_TRY(tell_options(hosts, question->wish, count_of_job(gathered), &judged->not_checked));
    NW_TRY(nw_check_rows(gathered, &judged->findings, judged->rows));
    if (question->request->model != NULL) {
        NW_TRY(nw_finding_costs(&(struct nw_finding_cost_input){.request = question->request,
                                                                .hosts = hosts->topos,
                                                                .host_count = hosts->count},
                                &judged->findings, &judged->costs));
        judged->costed = true;
    }
    if (question->quote != NULL) {
        NW_TRY(nw_audit_make(&(struct nw_audit_input){.quote = question->quote,
                                                      .topos = hosts->topos,
                                                      .topo_count = hosts->count},
                             &judged->audit));
        judged->audited = true;
    }
    return fill_screen(question, gathered, hosts, judged);
}

nw_rc nw_check_judge(const struct nw_check_question *question, struct nw_check_gathered *gathered,
                     struct nw_check_judged *judged_out)
{
    struct hosts hosts = {.topos = NULL};
    struct nw_findings all = {0};
    nw_rc rc;

    *judged_out = (struct nw_check_judged){.costed = false};
    rc = judge(question, gathered, &hosts, &all, judged_out);
    nw_findings_free(&all);
    free(hosts.topos);
    if (rc != NW_OK)
        nw_check_judged_free(judged_out);
    return rc;
}

void nw_check_judged_free(struct nw_check_judged *judged)
{
    nw_findings_free(&judged->findings);
    nw_findings_free(&judged->not_checked);
    nw_rank_place_advice_free(&judged->advice);
    if (judged->audited)
        nw_audit_free(&judged->audit);
    judged->audited = false;
}
