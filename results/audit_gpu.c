#include "results/audit_gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/link.h"

/* Words that say nothing of the product. */
static const char *const noise[] = {
    "NVIDIA",    "CORPORATION", "TESLA",       "GEFORCE",     "QUADRO",     "AMD",      "INSTINCT",
    "GPU",       "GRAPHICS",    "CARD",        "HBM2",        "HBM2E",      "HBM3",     "HBM3E",
    "GDDR6",     "GDDR6X",      "GDDR7",       "OAM",         "TENSOR",     "CORE",     "MODULE",
    "BLACKWELL", "SERVER",      "EDITION",     "WORKSTATION", "GENERATION", "GB",       "GIB",
    "HGX",       "DGX",         "ACCELERATOR", "SIMULATED",   "NO",         "HARDWARE",
};

/* Products that the driver names without their form when they are SXM modules ("NVIDIA H200",
 * "NVIDIA H100 80GB HBM3"); the cards are named with it ("NVIDIA H100 PCIe", "NVIDIA H200 NVL"). */
static const char *const modules[] = {"H100", "H200", "H800",  "H20",   "B100",
                                      "B200", "B300", "GH200", "GB200", "GB300"};

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static bool has_word(const struct nw_gpu_name *name, const char *word)
{
    for (int i = 0; i < name->word_count; i++)
        if (strcmp(name->words[i], word) == 0)
            return true;
    return false;
}

/* "80GB", "80GIB", "80G". */
static int memory_of(const char *word)
{
    char *rest;
    const long gb = strtol(word, &rest, 10);

    if (rest == word || gb <= 0 || gb > 4096)
        return 0;
    return strcmp(rest, "GB") == 0 || strcmp(rest, "GIB") == 0 || strcmp(rest, "G") == 0 ? (int)gb
                                                                                         : 0;
}

static bool is_number(const char *word)
{
    return word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
}

/* "8x" before the product. */
static bool is_multiplier(const char *word)
{
    const size_t digits = strspn(word, "0123456789");

    return digits > 0 && strcmp(word + digits, "X") == 0;
}

static void take_word(struct nw_gpu_name *name, const char *word, const char *next)
{
    const int gb = memory_of(word);

    if (gb > 0) {
        name->memory_gb = gb;
    } else if (is_number(word) && (strcmp(next, "GB") == 0 || strcmp(next, "GIB") == 0)) {
        name->memory_gb = (int)strtol(word, NULL, 10);
    } else if (strncmp(word, "SXM", 3) == 0) {
        name->form = NW_GPU_FORM_SXM;
    } else if (strncmp(word, "PCI", 3) == 0) {
        name->form = NW_GPU_FORM_PCIE;
    } else if (strcmp(word, "NVL") == 0) {
        name->form = NW_GPU_FORM_NVL;
    } else if (!is_one_of(word, noise, COUNT(noise)) && !is_multiplier(word) &&
               !has_word(name, word) && name->word_count < (int)COUNT(name->words)) {
        strcpy(name->words[name->word_count++], word);
    }
}

/* The next word of letters and digits, upper case and cut to fit; returns what follows it. */
static const char *next_word(const char *at, char word[16])
{
    size_t length = 0;

    while (*at != '\0' && !isalnum((unsigned char)*at))
        at++;
    for (; isalnum((unsigned char)*at); at++)
        if (length < 15)
            word[length++] = (char)toupper((unsigned char)*at);
    word[length] = '\0';
    return at;
}

void nw_gpu_name_of(const char *text, bool driver, struct nw_gpu_name *name_out)
{
    /* The PCI ID list writes "GH100 [H100 SXM5 80GB]": chip, then product. */
    const char *bracket = strchr(text, '[');
    const char *at = bracket != NULL && strchr(bracket, ']') != NULL ? bracket : text;
    struct nw_gpu_name name = {.word_count = 0};
    char word[16], next[16];

    for (at = next_word(at, word); word[0] != '\0'; strcpy(word, next)) {
        at = next_word(at, next);
        take_word(&name, word, next);
    }
    for (size_t i = 0; i < COUNT(modules) && driver && name.form == NW_GPU_FORM_UNKNOWN; i++)
        if (has_word(&name, modules[i]))
            name.form = NW_GPU_FORM_SXM;
    /* "GH200 480GB", "GH200 120GB": the processor's memory, not the GPU's. */
    if (driver && has_word(&name, "GH200"))
        name.memory_gb = 0;
    *name_out = name;
}

bool nw_gpu_name_fits(const struct nw_gpu_name *quoted, const struct nw_gpu_name *found)
{
    for (int i = 0; i < quoted->word_count; i++)
        if (!has_word(found, quoted->words[i]))
            return false;
    /* "4090 D" is not a 4090; "RTX" before a number may be left out. */
    for (int i = 0; i < found->word_count; i++)
        if (!has_word(quoted, found->words[i]) && strcmp(found->words[i], "RTX") != 0)
            return false;
    if (quoted->form != NW_GPU_FORM_UNKNOWN && found->form != NW_GPU_FORM_UNKNOWN &&
        quoted->form != found->form)
        return false;
    return quoted->memory_gb == 0 || found->memory_gb == 0 ||
           abs(quoted->memory_gb - found->memory_gb) <= 1;
}

const char *nw_gpu_name_text(const struct nw_gpu_name *name, char text[64])
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < name->word_count && used < 56; i++)
        used += (size_t)snprintf(text + used, 64 - used, "%s%.*s", i > 0 ? " " : "",
                                 (int)(56 - used), name->words[i]);
    if (name->form != NW_GPU_FORM_UNKNOWN)
        snprintf(text + used, 64 - used, " %s", nw_gpu_form_text(name->form));
    return text;
}

const char *nw_gpu_form_text(nw_gpu_form form)
{
    static const char *const texts[] = {"", "SXM", "PCIe", "NVL"};

    return texts[form];
}

/* NVLinks of a product, from NVIDIA's product pages and architecture papers. GA10x boards (RTX
 * 3090, A6000, A40) run their four links at 14.0625 GB/s, 112.5 GB/s both ways. */
static const struct {
    const char *product;
    nw_gpu_form form; /* UNKNOWN: any */
    int generation, links;
    double link_bytes_per_s; /* where it is not the generation's */
    bool bridge, reduces;
} nvlinks[] = {
    {"P100", NW_GPU_FORM_SXM, 1, 4, 0, false, false},
    {"V100", NW_GPU_FORM_SXM, 2, 6, 0, false, false},
    {"A100", NW_GPU_FORM_SXM, 3, 12, 0, false, false},
    {"A800", NW_GPU_FORM_SXM, 3, 8, 0, false, false},
    {"H100", NW_GPU_FORM_SXM, 4, 18, 0, false, true},
    {"H800", NW_GPU_FORM_SXM, 4, 8, 0, false, true},
    {"H20", NW_GPU_FORM_UNKNOWN, 4, 18, 0, false, true},
    {"H200", NW_GPU_FORM_SXM, 4, 18, 0, false, true},
    {"GH200", NW_GPU_FORM_UNKNOWN, 4, 18, 0, false, true},
    {"B200", NW_GPU_FORM_UNKNOWN, 5, 18, 0, false, true},
    {"B300", NW_GPU_FORM_UNKNOWN, 5, 18, 0, false, true},
    {"GB200", NW_GPU_FORM_UNKNOWN, 5, 18, 0, false, true},
    {"GB300", NW_GPU_FORM_UNKNOWN, 5, 18, 0, false, true},
    {"A100", NW_GPU_FORM_PCIE, 3, 12, 0, true, false},
    {"A800", NW_GPU_FORM_PCIE, 3, 8, 0, true, false},
    {"H100", NW_GPU_FORM_PCIE, 4, 12, 0, true, false},
    {"H100", NW_GPU_FORM_NVL, 4, 12, 0, true, false},
    {"H800", NW_GPU_FORM_PCIE, 4, 8, 0, true, false},
    {"H200", NW_GPU_FORM_NVL, 4, 18, 0, true, false},
    {"A30", NW_GPU_FORM_UNKNOWN, 3, 4, 0, true, false},
    {"A40", NW_GPU_FORM_UNKNOWN, 3, 4, 14.0625e9, true, false},
    {"A6000", NW_GPU_FORM_UNKNOWN, 3, 4, 14.0625e9, true, false},
    {"3090", NW_GPU_FORM_UNKNOWN, 3, 4, 14.0625e9, true, false},
    {"P100", NW_GPU_FORM_PCIE, 1, 0, 0, false, false},
    {"V100", NW_GPU_FORM_PCIE, 2, 0, 0, false, false},
    {"T4", NW_GPU_FORM_UNKNOWN, 2, 0, 0, false, false},
    {"A10", NW_GPU_FORM_UNKNOWN, 3, 0, 0, false, false},
    {"A10G", NW_GPU_FORM_UNKNOWN, 3, 0, 0, false, false},
    {"L4", NW_GPU_FORM_UNKNOWN, 4, 0, 0, false, false},
    {"L20", NW_GPU_FORM_UNKNOWN, 4, 0, 0, false, false},
    {"L40", NW_GPU_FORM_UNKNOWN, 4, 0, 0, false, false},
    {"L40S", NW_GPU_FORM_UNKNOWN, 4, 0, 0, false, false},
    {"4090", NW_GPU_FORM_UNKNOWN, 4, 0, 0, false, false},
    {"5090", NW_GPU_FORM_UNKNOWN, 4, 0, 0, false, false},
    {"PRO", NW_GPU_FORM_UNKNOWN, 4, 0, 0, false, false}, /* RTX PRO 6000 */
};

struct nw_gpu_nvlink nw_gpu_nvlink_of(const struct nw_gpu_name *name)
{
    for (size_t i = 0; i < COUNT(nvlinks); i++) {
        if (!has_word(name, nvlinks[i].product) ||
            (nvlinks[i].form != NW_GPU_FORM_UNKNOWN && nvlinks[i].form != name->form))
            continue;
        const double link = nvlinks[i].link_bytes_per_s > 0
                                ? nvlinks[i].link_bytes_per_s
                                : nw_nvlink_bytes_per_s(nvlinks[i].generation);

        return (struct nw_gpu_nvlink){.bytes_per_s = link * nvlinks[i].links,
                                      .bridge = nvlinks[i].bridge,
                                      .links = nvlinks[i].links,
                                      .link_bytes_per_s = link,
                                      .reduces = nvlinks[i].reduces};
    }
    return (struct nw_gpu_nvlink){.bytes_per_s = NAN, .link_bytes_per_s = NAN};
}
