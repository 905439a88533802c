/* Claims about software and storage, from the facts of the machines' topologies and from what runs
 * say of their libraries. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "results/audit_private.h"

/* ---- versions ----------------------------------------------------------------------------------
 */

static void judge_version(const char *found, const char *quoted, struct nw_opinion *opinion)
{
    if (found == NULL || (!isdigit((unsigned char)found[0]) && strcmp(found, "absent") != 0))
        return;
    snprintf(opinion->text, sizeof opinion->text, "%.100s", found);
    if (strcmp(found, "absent") == 0) {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = "it is not installed";
        opinion->remedy = "ask the vendor to install the quoted version";
        return;
    }
    opinion->verdict = nw_version_compare(found, quoted) >= 0 ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    opinion->cause = "an older version than the one quoted is installed";
    opinion->remedy = "ask the vendor to install the quoted version; containers bring their own "
                      "CUDA, NCCL and PyTorch, but not the driver";
}

static const char *or_else(const char *text, const char *other)
{
    return text != NULL ? text : other[0] != '\0' ? other : NULL;
}

void nw_opinion_driver(const struct nw_quote *quote, const struct nw_machine *machine,
                       struct nw_opinion *opinion)
{
    judge_version(or_else(nw_machine_text(machine, NW_FACT_DRIVER), machine->driver), quote->driver,
                  opinion);
}

void nw_opinion_cuda(const struct nw_quote *quote, const struct nw_machine *machine,
                     struct nw_opinion *opinion)
{
    judge_version(or_else(nw_machine_text(machine, NW_FACT_CUDA), machine->cuda), quote->cuda,
                  opinion);
}

void nw_opinion_nccl(const struct nw_quote *quote, const struct nw_machine *machine,
                     struct nw_opinion *opinion)
{
    const char *found = or_else(nw_machine_text(machine, NW_FACT_NCCL), machine->nccl);

    judge_version(found != NULL ? found : nw_machine_text(machine, NW_FACT_PYTORCH_NCCL),
                  quote->nccl, opinion);
}

void nw_opinion_pytorch(const struct nw_quote *quote, const struct nw_machine *machine,
                        struct nw_opinion *opinion)
{
    const double gpus = nw_machine_number(machine, NW_FACT_PYTORCH_GPUS);
    const char *cuda = nw_machine_text(machine, NW_FACT_PYTORCH_CUDA);

    judge_version(nw_machine_text(machine, NW_FACT_PYTORCH), quote->pytorch, opinion);
    if (opinion->verdict != NW_AUDIT_MET)
        return;
    if (quote->gpu_count > 0 && gpus < quote->gpu_count) {
        opinion->verdict = NW_AUDIT_SHORT;
        snprintf(opinion->reason, sizeof opinion->reason, "PyTorch sees %.0f of %d GPUs", gpus,
                 quote->gpu_count);
        opinion->cause = "PyTorch was built without CUDA, or for a newer driver";
        opinion->remedy = "python3 -c \"import torch; print(torch.version.cuda, "
                          "torch.cuda.device_count())\"";
    } else if (isfinite(gpus)) {
        snprintf(opinion->reason, sizeof opinion->reason, "CUDA %s; PyTorch sees %.0f GPUs",
                 cuda != NULL ? cuda : "of unknown version", gpus);
    }
}

/* Every word of the quote is in the name: "Ubuntu 22.04" in "Linux 5.15, Ubuntu 22.04.5 LTS". */
void nw_opinion_os(const struct nw_quote *quote, const struct nw_machine *machine,
                   struct nw_opinion *opinion)
{
    const char *found = NULL;
    char words[sizeof quote->os], *rest = words;

    for (size_t i = 0; i < machine->topo_count && found == NULL; i++)
        if (machine->topos[i]->os[0] != '\0')
            found = machine->topos[i]->os;
    if (found == NULL)
        return;
    snprintf(opinion->text, sizeof opinion->text, "%.100s", found);
    opinion->verdict = NW_AUDIT_MET;
    snprintf(words, sizeof words, "%s", quote->os);
    for (const char *word = strtok_r(words, " ,;", &rest); word != NULL;
         word = strtok_r(NULL, " ,;", &rest))
        if (strcasestr(found, word) == NULL)
            opinion->verdict = NW_AUDIT_SHORT;
    opinion->cause = "another operating system, or another release of it, is installed";
    opinion->remedy = "ask the vendor to install the quoted one";
}

/* What is not seen from within may be there. */
static bool is_contained(const struct nw_machine *machine)
{
    const char *container = nw_machine_text(machine, NW_FACT_CONTAINER);

    return container != NULL && strcmp(container, "none") != 0;
}

void nw_opinion_scheduler(const struct nw_quote *quote, const struct nw_machine *machine,
                          struct nw_opinion *opinion)
{
    const char *found = nw_machine_text(machine, NW_FACT_SCHEDULER);

    char client[64];

    if (found == NULL)
        return;
    snprintf(opinion->text, sizeof opinion->text, "%.100s", found);
    snprintf(client, sizeof client, "%s (client installed)", quote->scheduler);
    if (strstr(found, client) != NULL) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "only its client is installed: look from within a job, or on a node of it");
        return;
    }
    if (!nw_has_word(found, quote->scheduler) && is_contained(machine)) {
        snprintf(opinion->reason, sizeof opinion->reason,
                 "a container does not see all of its host");
        return;
    }
    opinion->verdict = nw_has_word(found, quote->scheduler) ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    opinion->cause = "the quoted scheduler was not found on the node";
    opinion->remedy = "its commands must be in the path: sinfo, kubectl, ray status";
}

/* ---- storage -----------------------------------------------------------------------------------
 */

/* The quote's names as the kernel, or FUSE, calls them. */
static const struct {
    const char *quoted, *mounted;
} file_systems[] = {
    {"lustre", "lustre"},
    {"gpfs", "gpfs"},
    {"gpfs", "mmfs"},
    {"beegfs", "beegfs"},
    {"nfs", "nfs"},
    {"nfs", "nfs4"},
    {"nfs", "nfs3"},
    {"ceph", "ceph"},
    {"ceph", "ceph-fuse"},
    {"weka", "wekafs"},
    {"weka", "weka"},
    {"glusterfs", "glusterfs"},
    {"cpfs", "cpfs"},
    {"cpfs", "aliyun-cpfs"},
    {"juicefs", "juicefs"},
    {"yrfs", "yrfs"},
    {"panfs", "panfs"},
    {"daos", "dfuse"},
    {"daos", "daos"},
    {"beegfs", "fhgfs"},
    {"3fs", "3fs"},
    {"3fs", "hf3fs"},
    {"beegfs", "beegfs_nodev"},
};

static bool is_mounted(const char *found, const char *quoted)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof file_systems[0]; i++)
        if (strcmp(file_systems[i].quoted, quoted) == 0 &&
            nw_has_word(found, file_systems[i].mounted))
            return true;
    return false;
}

/* "/data" in "lustre /data, nfs4 /home": the whole path. */
static bool has_path(const char *found, const char *path)
{
    const size_t length = strlen(path);

    for (const char *at = strstr(found, path); at != NULL && length > 0; at = strstr(at + 1, path))
        if ((at == found || strchr(" ,;(", at[-1]) != NULL) &&
            (at[length] == '\0' || strchr(" ,;)", at[length]) != NULL))
            return true;
    return false;
}

void nw_opinion_file_system(const struct nw_quote *quote, const struct nw_machine *machine,
                            struct nw_opinion *opinion)
{
    const char *shared = nw_machine_text(machine, NW_FACT_PARALLEL_FS);
    const char *data = nw_machine_text(machine, NW_FACT_DATA_FS);
    const char *path = nw_machine_text(machine, NW_FACT_DATA_PATH);
    char found[400];

    if (shared == NULL && data == NULL)
        return;
    snprintf(found, sizeof found, "%s%s%s%s%s", shared != NULL ? shared : "",
             shared != NULL && data != NULL ? ", " : "", data != NULL ? data : "",
             data != NULL && path != NULL ? " " : "", data != NULL && path != NULL ? path : "");
    snprintf(opinion->text, sizeof opinion->text, "%.120s", found);
    if (!is_mounted(found, quote->file_system)) {
        if (shared == NULL || is_contained(machine)) {
            snprintf(opinion->reason, sizeof opinion->reason, "%s",
                     shared == NULL ? "only the data path was looked at"
                                    : "a container does not see all of its host");
            return;
        }
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = "no file system of this type is mounted";
        opinion->remedy = "findmnt -D on the node; ask the vendor to mount it";
    } else if (quote->file_system_mount[0] != '\0' && strstr(found, "/path-") != NULL) {
        opinion->verdict = NW_AUDIT_MET; /* nw_topo_anonymise */
        snprintf(opinion->reason, sizeof opinion->reason,
                 "where it is mounted is hidden in this file");
    } else if (quote->file_system_mount[0] != '\0' && !has_path(found, quote->file_system_mount)) {
        opinion->verdict = NW_AUDIT_SHORT;
        opinion->cause = "the file system is mounted in another place than quoted";
        opinion->remedy = "findmnt -D on the node";
    } else {
        opinion->verdict = NW_AUDIT_MET;
    }
}

/* A direct-I/O measurement of some seconds on a disk in use: a tenth below the datasheet's figure
 * is no shortage. */
#define DISK_SHARE 0.90

/* "…; write +-4.2 %, read +-1.5 %, random read +-9 %": the share, 0 where it is not told. */
static double spread_of(const char *how, nw_fact_id id)
{
    const char *const what = id == NW_FACT_DATA_READ    ? " read +-"
                             : id == NW_FACT_DATA_WRITE ? " write +-"
                                                        : " random read +-";
    const char *at = how != NULL ? strstr(how, what) : NULL;

    while (at != NULL && id != NW_FACT_DATA_READ_IOPS && at - how >= 6 &&
           strncmp(at - 6, "random", 6) == 0)
        at = strstr(at + 1, what);
    const double percent = at != NULL ? strtod(at + strlen(what), NULL) : 0;

    return percent > 0 && percent < 1000 ? percent / 100 : 0;
}

static void judge_disk(const struct nw_machine *machine, nw_fact_id id, double quoted,
                       struct nw_opinion *opinion)
{
    const double found = nw_machine_number(machine, id);
    const char *path = nw_machine_text(machine, NW_FACT_DATA_PATH);
    const char *medium = nw_machine_text(machine, NW_FACT_DATA_MEDIUM);
    const char *type = nw_machine_text(machine, NW_FACT_DATA_FS);
    const double spread = spread_of(nw_machine_text(machine, NW_FACT_DATA_HOW), id);
    char rate[32];

    if (!isfinite(found))
        return;
    opinion->value = found;
    if (id == NW_FACT_DATA_READ_IOPS)
        snprintf(opinion->text, sizeof opinion->text, "%s k/s",
                 nw_format_sig(rate, found / 1e3, 3));
    else
        snprintf(opinion->text, sizeof opinion->text, "%s GB/s", nw_format_gb_per_s(rate, found));
    snprintf(opinion->reason, sizeof opinion->reason, "%.100s%s%.40s%s%.60s",
             path != NULL ? path : "the data path", type != NULL ? ", " : "",
             type != NULL ? type : "", medium != NULL ? ", " : "", medium != NULL ? medium : "");
    opinion->verdict = found >= DISK_SHARE * quoted ? NW_AUDIT_MET : NW_AUDIT_SHORT;
    if (opinion->verdict == NW_AUDIT_SHORT && found * (1 + spread) >= DISK_SHARE * quoted) {
        opinion->verdict = NW_AUDIT_NOT_MEASURED;
        snprintf(
            opinion->reason, sizeof opinion->reason,
            "%.60s varied by %.0f %%, which reaches what is needed; measure again, with nothing "
            "else running",
            opinion->text, 100 * spread);
    }
    opinion->cause = "a slower disk or a shared file system behind the data path, or other work on "
                     "it during the measurement";
    opinion->remedy = "repeat with nothing else running; lsblk -d -o NAME,MODEL,SIZE and findmnt "
                      "-T PATH show what is behind the path";
}

void nw_opinion_disk_read(const struct nw_quote *quote, const struct nw_machine *machine,
                          struct nw_opinion *opinion)
{
    judge_disk(machine, NW_FACT_DATA_READ, quote->disk_read_bytes_per_s, opinion);
}

void nw_opinion_disk_write(const struct nw_quote *quote, const struct nw_machine *machine,
                           struct nw_opinion *opinion)
{
    judge_disk(machine, NW_FACT_DATA_WRITE, quote->disk_write_bytes_per_s, opinion);
}

void nw_opinion_disk_iops(const struct nw_quote *quote, const struct nw_machine *machine,
                          struct nw_opinion *opinion)
{
    judge_disk(machine, NW_FACT_DATA_READ_IOPS, quote->disk_read_iops, opinion);
}
