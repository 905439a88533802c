/* What the readers of nvidia-smi's output share; see topo/read_smi.h. */
#include "topo/read_smi.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "topo/classify.h"
#include "topo/link.h"
#include "topo/nvml_api.h"
#include "topo/pci_address.h"
#include "topo/read.h"

nw_rc nw_smi_open(struct nw_smi *smi, const char *what, const char *source)
{
    int machine;
    nw_rc rc;

    *smi = (struct nw_smi){.what = what, .source = source};
    nw_smi_reset_values(smi);
    smi->topo = calloc(1, sizeof *smi->topo);
    if (smi->topo == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for a topology", what);
    rc = nw_topo_add_node(smi->topo, NW_NODE_MACHINE, -1, &machine);
    if (rc != NW_OK) {
        nw_topo_free(smi->topo);
        smi->topo = NULL;
        return rc;
    }
    snprintf(smi->topo->nodes[machine].name, sizeof smi->topo->nodes[machine].name, "machine");
    snprintf(smi->topo->source, sizeof smi->topo->source, "%s", what);
    smi->topo->sources = NW_SOURCE_SMI;
    smi->topo->gaps = NW_TOPO_PARTIAL;
    return NW_OK;
}

/* --- GPUs --- */

nw_rc nw_smi_begin_numbered(struct nw_smi *smi, int number)
{
    struct nw_topo_node *node;
    int index;

    NW_TRY(nw_smi_end_gpu(smi));
    if (nw_topo_count(smi->topo, NW_NODE_GPU) == NW_SMI_MAX_GPUS)
        return nw_fail(NW_EUSAGE, "%s: more than %d GPUs; no machine has that many", smi->what,
                       NW_SMI_MAX_GPUS);
    NW_TRY(nw_topo_add_node(smi->topo, NW_NODE_GPU, 0, &index));
    node = &smi->topo->nodes[index];
    node->pci_vendor = NW_PCI_VENDOR_NVIDIA;
    snprintf(node->name, sizeof node->name, "gpu%d",
             number >= 0 ? number : nw_topo_count(smi->topo, NW_NODE_GPU) - 1);
    smi->gpu = index;
    nw_smi_reset_values(smi);
    if (number >= 0)
        return nw_topo_set_number(smi->topo, index, NW_FACT_GPU_INDEX, number, smi->source);
    return NW_OK;
}

nw_rc nw_smi_begin_gpu(struct nw_smi *smi, const char *pci)
{
    char normal[16] = "";

    if (pci != NULL && nw_pci_normalise(pci, normal) != NW_OK)
        return nw_fail(NW_EUSAGE, "%s: \"%.40s\" is no PCI address of a GPU", smi->what, pci);
    NW_TRY(nw_smi_begin_numbered(smi, -1));
    snprintf(smi->topo->nodes[smi->gpu].pci, sizeof smi->topo->nodes[smi->gpu].pci, "%s", normal);
    return NW_OK;
}

static nw_rc end_link(struct nw_smi *smi)
{
    struct nw_topo_node *node = &smi->topo->nodes[smi->gpu];
    const double now = nw_pcie_bytes_per_s(smi->generation, node->link_lanes);
    const double best = nw_pcie_bytes_per_s(smi->generation_max, node->link_max_lanes);

    node->link_bytes_per_s = isfinite(now) ? now : 0;
    node->link_max_bytes_per_s = isfinite(best) ? best : 0;
    return NW_OK;
}

nw_rc nw_smi_end_gpu(struct nw_smi *smi)
{
    if (smi->gpu == 0)
        return NW_OK;
    NW_TRY(nw_smi_end_values(smi));
    NW_TRY(end_link(smi));
    if (smi->error_count > 0)
        NW_TRY(nw_findings_add(
            &smi->topo->findings, smi->error_count > 1 ? NW_FINDING_FAIL : NW_FINDING_WARN,
            "gpu-error", smi->topo->nodes[smi->gpu].name,
            "look for Xid errors in the kernel's log; reset the GPU, and replace it if that stays",
            "the driver answers \"%s\" instead of a value, %d time%s (first: %s)", smi->error,
            smi->error_count, smi->error_count == 1 ? "" : "s", smi->error_at));
    smi->gpu = 0;
    return NW_OK;
}

/* --- the end --- */

static bool is_identity(const char *text)
{
    bool digit = false, masked = strstr(text, "...") != NULL || strchr(text, '*') != NULL;

    if (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0)
        text += 4;
    for (; *text != '\0' && !masked; text++)
        digit |= isdigit((unsigned char)*text) && *text != '0';
    return digit && !masked;
}

nw_rc nw_smi_set_identity(struct nw_smi *smi, nw_fact_id id, const char *text)
{
    struct nw_smi_identity *identity;

    if (!is_identity(text))
        return NW_OK;
    if (smi->identity_count == smi->identity_capacity) {
        const size_t capacity = smi->identity_capacity > 0 ? 2 * smi->identity_capacity : 16;
        struct nw_smi_identity *identities =
            realloc(smi->identities, capacity * sizeof *identities);

        if (identities == NULL)
            return nw_fail(NW_ENOMEM, "out of memory for %zu identities of GPUs", capacity);
        smi->identities = identities;
        smi->identity_capacity = capacity;
    }
    identity = &smi->identities[smi->identity_count++];
    *identity = (struct nw_smi_identity){.node = smi->gpu, .id = id};
    snprintf(identity->text, sizeof identity->text, "%s", text);
    return NW_OK;
}

/* Equal ones were made equal before the file was shown: they identify nothing. */
static nw_rc end_identities(struct nw_smi *smi)
{
    for (size_t i = 0; i < smi->identity_count; i++) {
        const struct nw_smi_identity *identity = &smi->identities[i];
        bool unique = true;

        for (size_t j = 0; j < smi->identity_count && unique; j++)
            unique = smi->identities[j].node == identity->node ||
                     strcmp(smi->identities[j].text, identity->text) != 0;
        if (unique)
            NW_TRY(nw_topo_set_text(smi->topo, identity->node, identity->id, identity->text,
                                    smi->source));
    }
    return NW_OK;
}

nw_rc nw_smi_cut(struct nw_smi *smi, const char *format, ...)
{
    char sentence[500];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return nw_findings_add(&smi->topo->findings, NW_FINDING_WARN, "file-cut", smi->what,
                           "give the whole output; what is not in it is not known", "%s", sentence);
}

static nw_rc end_counts(struct nw_smi *smi)
{
    const double attached = nw_topo_number(smi->topo, 0, NW_FACT_GPUS_ATTACHED);
    const int shown = nw_topo_count(smi->topo, NW_NODE_GPU);

    if (isnan(attached) || attached <= shown)
        return NW_OK;
    return nw_smi_cut(smi,
                      "%.0f GPUs are attached, but only %d follow%s: the output is cut off, or was "
                      "asked for some of them only (-i)",
                      attached, shown, shown == 1 ? "s" : "");
}

nw_rc nw_smi_close(struct nw_smi *smi, nw_rc rc, struct nw_topo **topo_out)
{
    if (rc == NW_OK)
        rc = nw_smi_end_gpu(smi);
    if (rc == NW_OK)
        rc = end_counts(smi);
    if (rc == NW_OK)
        rc = end_identities(smi);
    free(smi->identities);
    smi->identities = NULL;
    if (rc != NW_OK) {
        nw_topo_free(smi->topo);
        smi->topo = NULL;
        return rc;
    }
    nw_topo_clean(smi->topo);
    *topo_out = smi->topo;
    return NW_OK;
}

/* --- lines of every output --- */

bool nw_smi_is_bus_id(const char *word)
{
    char normal[16];

    /* "17:00.0" without a domain could be a time of day. */
    if (strlen(word) < 12 || nw_pci_normalise(word, normal) != NW_OK) {
        nw_clear_error();
        return false;
    }
    return true;
}

nw_rc nw_smi_message(struct nw_smi *smi, const char *line, bool *was_out)
{
    const char *lost = strstr(line, "Unable to determine the device handle for");
    const char *rom = strstr(line, "infoROM is corrupted at");

    *was_out = lost != NULL || rom != NULL;
    if (lost != NULL) {
        smi->topo->gaps |= NW_TOPO_PARTIAL;
        return nw_findings_add(&smi->topo->findings, NW_FINDING_FAIL, "gpu-lost", smi->what,
                               "look for Xid 79 in the kernel's log; restart the machine, and have "
                               "the GPU replaced when it comes back",
                               "a GPU does not answer: %.200s", lost);
    }
    if (rom != NULL)
        return nw_findings_add(&smi->topo->findings, NW_FINDING_WARN, "inforom-corrupt", smi->what,
                               "have the GPU replaced: its error counters cannot be kept", "%.200s",
                               rom);
    return NW_OK;
}

bool nw_smi_listed(const char *line, struct nw_smi_listed *listed_out)
{
    const char *uuid = strstr(line, "(UUID:");
    const char *at = line + strspn(line, " \t");
    char number[8];
    size_t digits;
    uint64_t value;

    if (strncmp(at, "GPU ", 4) != 0)
        return false;
    at += 4;
    digits = strspn(at, "0123456789");
    if (digits == 0 || digits >= sizeof number || at[digits] != ':')
        return false;
    memcpy(number, at, digits);
    number[digits] = '\0';
    if (nw_parse_u64(number, 0, NW_SMI_MAX_GPUS - 1, &value) != NW_OK) {
        nw_clear_error();
        return false;
    }
    at += digits + 1;
    *listed_out = (struct nw_smi_listed){.number = (int)value};
    at += strspn(at, " \t");
    snprintf(listed_out->model, sizeof listed_out->model, "%.*s",
             uuid != NULL ? (int)(uuid - at) : (int)strlen(at), at);
    (void)nw_scan_trim(listed_out->model);
    if (uuid != NULL)
        snprintf(listed_out->uuid, sizeof listed_out->uuid, "%.*s",
                 (int)strcspn(uuid + 6 + strspn(uuid + 6, " "), ")"),
                 uuid + 6 + strspn(uuid + 6, " "));
    return true;
}

/* --- what is refused --- */

/* X(word in the file, whose it is) */
static const struct {
    const char *word, *vendor;
} foreign[] = {
    {"mx-smi", "MetaX"},
    {"MetaX System Management", "MetaX"},
    {"mthreads-gmi", "Moore Threads"},
    {"ixsmi", "Iluvatar"},
    {"hy-smi", "Hygon"},
    {"npu-smi", "Huawei Ascend"},
    {"cnmon", "Cambricon"},
    {"rocm-smi", "AMD"},
    {"ROCm System Management", "AMD"},
    {"amd-smi", "AMD"},
    {"xpu-smi", "Intel"},
    {"hl-smi", "Intel Habana"},
    {"brsmi", "Biren"},
    {"ppu-smi", "T-Head"},
    {"efsmi", "Enflame"},
};

static int find_foreign(const char *data, size_t length)
{
    if (nw_scan_has(data, length, 0, "nvidia-smi") || nw_scan_has(data, length, 0, "NVIDIA-SMI"))
        return -1;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (nw_scan_has(data, length, 4096, foreign[i].word))
            return (int)i;
    return -1;
}

bool nw_is_smi_foreign(const char *data, size_t length)
{
    return find_foreign(data, length) >= 0;
}

nw_rc nw_smi_refuse_foreign(const char *data, size_t length, const char *what)
{
    const int found = find_foreign(data, length);

    if (found < 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE,
                   "%s: output of %s's tool (\"%s\"), not of nvidia-smi: only NVIDIA's is read, as "
                   "other link names mean other links. Give an hwloc XML file of the machine "
                   "(lstopo FILE.xml)",
                   what, foreign[found].vendor, foreign[found].word);
}

static const struct {
    const char *words, *meaning;
} messages[] = {
    {"Driver/library version mismatch",
     "the NVIDIA kernel module and its libraries are of different versions. Restart the machine "
     "(or unload and load the module), then run it again"},
    {"couldn't communicate with the NVIDIA driver",
     "the NVIDIA kernel module is not loaded. Load or install it, then run nvidia-smi again"},
    {"Failed to initialize NVML", "the driver could not be reached. See the kernel's log"},
    {"No devices were found",
     "the driver runs and finds no GPU. Look for the GPU with lspci and for errors in the kernel's "
     "log"},
    {"No devices found", "the driver runs and finds no GPU. Look for it with lspci"},
    {"GPU access blocked by the operating system",
     "this container or virtual machine may not use the GPU"},
    {"Option -m is missing its value", "this nvidia-smi (of Windows) does not have topo -m, so "
                                       "there is no topology. Run it on Linux, "
                                       "or give nvidia-smi -q"},
    {"Please run 'nvidia-smi -h' for help",
     "nvidia-smi refused its options. Give the output of nvidia-smi -q or nvidia-smi topo -m"},
    {"Please run 'nvidia-smi --help' for help",
     "nvidia-smi refused its options. Give the output of nvidia-smi -q or nvidia-smi topo -m"},
    {"nvidia-smi: command not found", "no NVIDIA driver is installed, or nvidia-smi not in PATH"},
    {"nvidia-smi: not found", "no NVIDIA driver is installed, or nvidia-smi not in PATH"},
    {"'nvidia-smi' is not recognized", "no NVIDIA driver is installed, or nvidia-smi not in PATH"},
    {"Unable to determine the device handle for",
     "a GPU does not answer (lost from the bus: Xid 79 in the kernel's log), and nothing else is "
     "in "
     "the file. Restart the machine, then run it again"},
};

/* The row of messages[], its line to *line_out; -1: none. */
static int find_message(const char *data, size_t length, int *line_out)
{
    struct nw_scan text;
    int found = -1;

    if (nw_scan_open(&text, data, length, "") != NW_OK)
        return -1;
    while (found < 0 && nw_scan_next(&text))
        for (size_t i = 0; i < sizeof messages / sizeof *messages && found < 0; i++)
            if (strstr(text.line, messages[i].words) != NULL)
                found = (int)i;
    *line_out = text.number;
    nw_scan_close(&text);
    if (text.rc != NW_OK)
        nw_clear_error();
    return found;
}

bool nw_is_smi_message(const char *data, size_t length)
{
    int line;

    return find_message(data, length, &line) >= 0;
}

nw_rc nw_smi_refuse_message(const char *data, size_t length, const char *what)
{
    int line = 1;
    const int found = find_message(data, length, &line);

    if (found < 0)
        return NW_OK;
    return nw_fail(NW_EUSAGE, "%s:%d: only a message of nvidia-smi, \"%s\": %s", what, line,
                   messages[found].words, messages[found].meaning);
}
