#include "topo/gpu.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define GIB (1024.0 * 1024 * 1024)

/* One lane and direction, 10^9 B/s, after line encoding (8b/10b to generation 2, 128b/130b to 5,
 * 242/256 FLIT from 6): PCI Express Base Specification. */
#define PCIE_LANE(generation)                                                                      \
    ((generation) == 3   ? 0.985e9                                                                 \
     : (generation) == 4 ? 1.969e9                                                                 \
     : (generation) == 5 ? 3.938e9                                                                 \
     : (generation) == 6 ? 7.563e9                                                                 \
                         : 0.0)

#define GPU(gpu_name, gib, hbm, bf16, fp16, fp8, nvlink, generation, lanes, watt, links, link,     \
            power_from, power_to, fp32, tf32, sms, matmul, matmul_fp8, gpu_form, gpu_arch, device, \
            from)                                                                                  \
    {                                                                                              \
        .name = gpu_name,                                                                          \
        .memory_bytes = (uint64_t)((gib)*GIB),                                                     \
        .hbm_bytes_per_s = (hbm)*1e9,                                                              \
        .bf16_flops = (bf16)*1e12,                                                                 \
        .fp16_flops = (fp16)*1e12,                                                                 \
        .fp8_flops = (fp8)*1e12,                                                                   \
        .nvlink_both_ways_bytes_per_s = (nvlink)*1e9,                                              \
        .nvlink_one_way_bytes_per_s = (nvlink)*1e9 / 2,                                            \
        .pcie_generation = generation,                                                             \
        .pcie_lanes = lanes,                                                                       \
        .pcie_one_way_bytes_per_s = PCIE_LANE(generation) * (lanes),                               \
        .tdp_w = watt,                                                                             \
        .form = gpu_form,                                                                          \
        .arch = gpu_arch,                                                                          \
        .nvlink_count = links,                                                                     \
        .nvlink_lane_bytes_per_s = (link)*1e9,                                                     \
        .power_from_w = power_from,                                                                \
        .power_to_w = power_to,                                                                    \
        .fp32_flops = (fp32)*1e12,                                                                 \
        .tf32_flops = (tf32)*1e12,                                                                 \
        .sm_count = sms,                                                                           \
        .matmul_flops = (matmul)*1e12,                                                             \
        .matmul_fp8_flops = (matmul_fp8)*1e12,                                                     \
        .pci_device = device,                                                                      \
        .source = from,                                                                            \
    },

const struct nw_gpu nw_gpus[] = {
#include "gpu_table.inc"
};
const size_t nw_gpu_count = sizeof nw_gpus / sizeof nw_gpus[0];

enum { MAX_WORDS = 12, MAX_WORD = 16 };

struct words {
    char text[MAX_WORDS][MAX_WORD];
    size_t count;
};

/* Words that drivers and shops add and the catalogue does not have. */
static const char *const ignored[] = {"simulated",   "no",   "hardware",    "nvidia",  "tesla",
                                      "geforce",     "amd",  "instinct",    "huawei",  "hbm2",
                                      "hbm2e",       "hbm3", "hbm3e",       "gpu",     "graphics",
                                      "tensor",      "core", "accelerator", "edition", "server",
                                      "workstation", "ac",   "nvswitch"};

static bool is_ignored(const char *word)
{
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (strcmp(ignored[i], word) == 0)
            return true;
    return false;
}

/* "80GB", "80g", "80gib" and "80" are the same word; so are "sxm", "sxm4", "sxm5"; a letter that
 * follows a number stays with it ("910b2"). */
static void normalise(char *word)
{
    const size_t length = strlen(word);
    const size_t digits = strspn(word, "0123456789");

    if (digits > 0 && digits < length &&
        (strcmp(word + digits, "gb") == 0 || strcmp(word + digits, "g") == 0 ||
         strcmp(word + digits, "gib") == 0))
        word[digits] = '\0';
    if (strncmp(word, "sxm", 3) == 0)
        word[3] = '\0';
}

static void split(const char *name, struct words *words_out)
{
    struct words words = {0};
    size_t length = 0;

    for (const char *c = name;; c++) {
        /* "rtx4090" is "RTX 4090". */
        const bool series = length == 3 && words.count < MAX_WORDS && isdigit((unsigned char)*c) &&
                            strncmp(words.text[words.count], "rtx", 3) == 0;

        if (series) {
            words.text[words.count++][length] = '\0';
            length = 0;
        }
        if (isalnum((unsigned char)*c) && words.count < MAX_WORDS) {
            if (length + 1 < MAX_WORD)
                words.text[words.count][length++] = (char)tolower((unsigned char)*c);
            continue;
        }
        if (length > 0) {
            words.text[words.count][length] = '\0';
            normalise(words.text[words.count]);
            if (!is_ignored(words.text[words.count]))
                words.count++;
        }
        length = 0;
        if (*c == '\0')
            break;
    }
    *words_out = words;
}

static bool has_word(const struct words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->text[i], word) == 0)
            return true;
    return false;
}

/* Every wanted word is in `have`. */
static bool contains(const struct words *have, const struct words *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (!has_word(have, wanted->text[i]))
            return false;
    return wanted->count > 0;
}

static bool has_number(const struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        if (strpbrk(words->text[i], "0123456789") != NULL)
            return true;
    return false;
}

/* Drivers leave the form factor out where HBM3 tells it ("NVIDIA H100 80GB HBM3" is the SXM card):
 * memory size and family decide, the first row of the catalogue wins, which is the SXM one. */
static const struct nw_gpu *best_match(const struct words *wanted)
{
    const struct nw_gpu *best = NULL;
    size_t best_extra = 0;

    for (size_t i = 0; i < nw_gpu_count; i++) {
        struct words have;

        split(nw_gpus[i].name, &have);
        if (!contains(&have, wanted))
            continue;
        const size_t extra = have.count - wanted->count;

        if (best == NULL || extra < best_extra) {
            best = &nw_gpus[i];
            best_extra = extra;
        }
    }
    /* "rtx" is a family, no product. */
    return best_extra > 1 && !has_number(wanted) ? NULL : best;
}

/* The row one of whose words is nearest in letters: "h1000", "a10o". */
static size_t near_by_letters(const struct words *wanted, const char **names)
{
    for (size_t w = 0; w < wanted->count; w++)
        for (size_t i = 0; i < nw_gpu_count; i++) {
            struct words have;
            const char *list[2] = {NULL};

            split(nw_gpus[i].name, &have);
            for (size_t h = 0; h < have.count; h++) {
                list[0] = have.text[h];
                if (strlen(list[0]) >= 3 && nw_nearest_name(wanted->text[w], list) != NULL) {
                    names[0] = nw_gpus[i].name;
                    return 1;
                }
            }
        }
    return 0;
}

/* Names of the rows that share the first word that any row has. */
static void near_names(const struct words *wanted, char *text, size_t size)
{
    const char *names[16] = {NULL};
    size_t count = 0;

    for (size_t w = 0; w < wanted->count && count == 0; w++)
        for (size_t i = 0; i < nw_gpu_count && count < 15; i++) {
            struct words have;

            split(nw_gpus[i].name, &have);
            if (has_word(&have, wanted->text[w]))
                names[count++] = nw_gpus[i].name;
        }
    if (count == 0)
        count = near_by_letters(wanted, names);
    text[0] = '\0';
    if (count > 0)
        nw_join_names(text, size, names);
}

nw_rc nw_gpu_find(const char *name, const struct nw_gpu **gpu_out)
{
    struct words wanted;
    char near[512];

    split(name, &wanted);
    const struct nw_gpu *gpu = best_match(&wanted);

    if (gpu != NULL) {
        *gpu_out = gpu;
        return NW_OK;
    }
    near_names(&wanted, near, sizeof near);
    if (near[0] != '\0')
        return nw_fail(NW_EUSAGE, "GPU \"%.80s\" is not in the catalogue; near: %s", name, near);
    return nw_fail(NW_EUSAGE,
                   "GPU \"%.80s\" is not in the catalogue; accepted: a name of nodeworth list gpus",
                   name);
}
