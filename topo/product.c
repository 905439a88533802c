#include "topo/product.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* What the driver shows of memory is less than what is sold: up to 7 % for ECC and firmware. */
#define MEMORY_REL 0.12
#define POWER_REL  0.02

/* What was read of a GPU; NAN, 0 or "": not. */
struct evidence {
    char name[128];   /* in lower case */
    const char *form; /* that the name has */
    double name_gib;  /* memory that the name has */
    double power_w, memory_bytes, links, wired, generation;
    bool power_may_be_set; /* the limit in force: it may have been lowered */
    uint32_t pci_device;
};

/* --- names --- */

/* "h100" of "H100 SXM5 80GB", "rtx 4090 d", "rtx pro 6000 blackwell": what comes before form and
 * size. */
static void family_of(const struct nw_gpu *gpu, char family[48])
{
    static const char *const ends[] = {" sxm", " pcie", " nvl", " oam"};
    size_t length = 0;

    for (const char *c = gpu->name; *c != '\0' && length + 1 < 48; c++)
        family[length++] = (char)tolower((unsigned char)*c);
    family[length] = '\0';
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *at = strstr(family, ends[i]);

        if (at != NULL)
            *at = '\0';
    }
    char *last = strrchr(family, ' ');

    if (last != NULL && isdigit((unsigned char)last[1]) && strstr(last, "gb") != NULL)
        *last = '\0';
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) != 0;
}

/* `word` in `name`, where letters and digits do not go on before or behind it. */
static const char *find_word(const char *name, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = name; (at = strstr(at, word)) != NULL; at++)
        if ((at == name || !is_name_char(at[-1])) && !is_name_char(at[length]))
            return at;
    return NULL;
}

/* "tesla v100-sxm2-32gb", "nvidia a100 80gb pcie": blanks for what is neither letter nor digit. */
static void normalise(const char *model, char name[128])
{
    size_t length = 0;

    for (; *model != '\0' && length + 1 < 128; model++) {
        const unsigned char c = (unsigned char)*model;
        const bool kept = isalnum(c) || (c == '-' && strncmp(model, "-3e", 3) == 0);
        const char next = kept ? (char)tolower(c) : ' ';

        if (next != ' ' || (length > 0 && name[length - 1] != ' '))
            name[length++] = next;
    }
    name[length] = '\0';
}

/* Families are tried from the longest: "gb200" is no "b200", "rtx 4090 d" no "rtx 4090". */
static bool find_family(const char *name, char family[48])
{
    size_t longest = 0;

    for (size_t i = 0; i < nw_gpu_count; i++) {
        char candidate[48];

        family_of(&nw_gpus[i], candidate);
        if (strlen(candidate) > longest && find_word(name, candidate) != NULL) {
            longest = strlen(candidate);
            strcpy(family, candidate);
        }
    }
    return longest > 0;
}

/* "RTX 6000 Ada" is no "RTX A6000", "L40S" no "L40": those are other words. But "RTX 3090 Ti",
 * "RTX 4080 SUPER" begin with the words of another product. */
static bool goes_on(const char *name, const char *family)
{
    static const char *const more[] = {"ti", "super", "laptop", "max", "mobile", "d", "v2"};
    const char *at = find_word(name, family);
    char rest[128];

    snprintf(rest, sizeof rest, "%s", at != NULL ? at + strlen(family) : "");
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (find_word(rest, more[i]) != NULL && strstr(family, "pro") == NULL)
            return true;
    return false;
}

static const char *form_of(const char *name)
{
    static const struct {
        const char *word, *form;
    } words[] = {{"sxm", "sxm"},  {"sxm2", "sxm"},  {"sxm3", "sxm"}, {"sxm4", "sxm"},
                 {"sxm5", "sxm"}, {"pcie", "pcie"}, {"nvl", "nvl"},  {"oam", "oam"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (find_word(name, words[i].word) != NULL)
            return words[i].form;
    /* The driver leaves the form out for boards: "NVIDIA H100 80GB HBM3", "NVIDIA H200". An H800 is
     * so called as a board and as a card. */
    if (find_word(name, "h100") != NULL && find_word(name, "hbm3") != NULL)
        return "sxm";
    if (find_word(name, "h200") != NULL && find_word(name, "gh200") == NULL)
        return "sxm";
    return "";
}

/* "80gb", "80 gb", "40g"; a Grace Hopper's name has the memory of its CPU. */
static double gib_of(const char *name)
{
    if (find_word(name, "gh200") != NULL)
        return NAN;
    for (const char *at = name; *at != '\0'; at++) {
        size_t digits = strspn(at, "0123456789");
        double gib = 0;

        if (digits == 0 || (at > name && is_name_char(at[-1])))
            continue;
        for (size_t i = 0; i < digits && i < 6; i++)
            gib = 10 * gib + (at[i] - '0');
        at += digits;
        if (*at == ' ' && strncmp(at + 1, "gb", 2) == 0)
            at++;
        if ((strncmp(at, "gb", 2) == 0 && !is_name_char(at[2])) ||
            (*at == 'g' && !is_name_char(at[1])))
            return gib;
        if (*at == '\0')
            break;
    }
    return NAN;
}

/* --- weighing --- */

static bool same_size(double bytes, const struct nw_gpu *gpu)
{
    return fabs(bytes / (double)gpu->memory_bytes - 1) <= MEMORY_REL;
}

static bool name_fits(const struct evidence *evidence, const struct nw_gpu *gpu)
{
    return (evidence->form[0] == '\0' || gpu->form[0] == '\0' ||
            strcmp(evidence->form, gpu->form) == 0) &&
           (isnan(evidence->name_gib) || same_size(evidence->name_gib * 0x1p30, gpu));
}

/* Each answers 1: fits, -1: does not, 0: not read, or nothing to hold it against. */
static int power_fits(const struct evidence *evidence, const struct nw_gpu *gpu)
{
    if (isnan(evidence->power_w) || !(gpu->power_to_w > 0))
        return 0;
    if (evidence->power_w > (1 + POWER_REL) * gpu->power_to_w)
        return -1;
    if (evidence->power_w >= (1 - POWER_REL) * gpu->power_from_w)
        return 1;
    return evidence->power_may_be_set ? 0 : -1;
}

static int memory_fits(const struct evidence *evidence, const struct nw_gpu *gpu)
{
    if (isnan(evidence->memory_bytes) || gpu->memory_bytes == 0)
        return 0;
    return same_size(evidence->memory_bytes, gpu) ? 1 : -1;
}

/* A board has all its links or has lost some (they are then shown as down); a card has those of its
 * bridge, or none without one. */
static int links_fit(const struct evidence *evidence, const struct nw_gpu *gpu)
{
    const double wired = fmax(evidence->wired, evidence->links); /* fmax: NAN and 12 is 12 */

    if (isnan(wired) || gpu->form[0] == '\0')
        return 0;
    if (wired > gpu->nvlink_count)
        return -1;
    if (strcmp(gpu->form, "sxm") == 0)
        return wired == gpu->nvlink_count ? 1 : -1;
    if (strcmp(gpu->form, "superchip") == 0)
        return wired == gpu->nvlink_count ? 1 : 0; /* one alone has none to switches */
    return 1;
}

static int generation_fits(const struct evidence *evidence, const struct nw_gpu *gpu)
{
    if (isnan(evidence->generation) || gpu->pcie_generation == 0)
        return 0;
    return evidence->generation == gpu->pcie_generation ? 1 : -1;
}

static int pci_fits(const struct evidence *evidence, const struct nw_gpu *gpu)
{
    if (evidence->pci_device == 0 || gpu->pci_device == 0)
        return 0;
    if (evidence->pci_device == gpu->pci_device)
        return 1;
    for (size_t i = 0; i < nw_gpu_count; i++)
        if (nw_gpus[i].pci_device == evidence->pci_device)
            return -1; /* it is another one's */
    return 0;          /* products have several ids, and not all are in the catalogue */
}

static int (*const tests[])(const struct evidence *evidence, const struct nw_gpu *gpu) = {
    power_fits, memory_fits, links_fit, generation_fits, pci_fits};
enum { POWER, MEMORY, LINKS, GENERATION, PCI, TESTS = sizeof tests / sizeof *tests };

struct score {
    int against, for_it;
    bool named;
};

static struct score weigh(const struct evidence *evidence, const struct nw_gpu *gpu)
{
    struct score score = {.named = name_fits(evidence, gpu)};

    for (int t = 0; t < TESTS; t++) {
        const int answer = tests[t](evidence, gpu);

        score.against += answer < 0;
        score.for_it += answer > 0;
    }
    return score;
}

/* Less against it, then the name, then more for it. One reading against the name is not enough to
 * call it another product: a limit may be set, a link lost. */
static int compare(struct score a, struct score b)
{
    const int against_a = a.against + !a.named, against_b = b.against + !b.named;

    if (against_a != against_b)
        return against_a < against_b ? -1 : 1;
    if (a.named != b.named)
        return a.named ? -1 : 1;
    return (a.for_it < b.for_it) - (a.for_it > b.for_it);
}

/* --- words --- */

static void append(char *text, size_t size, const char *words)
{
    const size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", words);
}

static const char *reading(const struct evidence *evidence, const struct nw_gpu *gpu, int test,
                           char words[96])
{
    char amount[32];

    switch (test) {
    case POWER:
        snprintf(words, 96, "power limit %.0f W", evidence->power_w);
        break;
    case MEMORY:
        snprintf(words, 96, "%s of memory",
                 nw_format_bytes(amount, (uint64_t)evidence->memory_bytes));
        break;
    case LINKS:
        if (!(evidence->links > 0))
            snprintf(words, 96, "no NVLink");
        else if (evidence->links < gpu->nvlink_count)
            snprintf(words, 96, "%.0f of %d NVLinks", evidence->links, gpu->nvlink_count);
        else
            snprintf(words, 96, "%.0f NVLinks", evidence->links);
        break;
    case GENERATION:
        snprintf(words, 96, "PCIe generation %.0f", evidence->generation);
        break;
    default:
        snprintf(words, 96, "PCI device %04x", evidence->pci_device);
    }
    return words;
}

static void word_decision(const struct evidence *evidence, struct nw_gpu_product *product)
{
    char words[96];

    if (name_fits(evidence, product->gpu))
        append(product->decided, sizeof product->decided, "name");
    for (int t = 0; t < TESTS; t++)
        if (tests[t](evidence, product->gpu) > 0)
            append(product->decided, sizeof product->decided,
                   reading(evidence, product->gpu, t, words));
}

/* "the name says H100 SXM5 80GB, but power limit 350 W, no NVLink: fits H100 PCIe 80GB" */
static void word_contradiction(const struct evidence *evidence, struct nw_gpu_product *product)
{
    const struct nw_gpu *named = product->named;
    char against[200] = "", words[96];

    for (int t = 0; t < TESTS && named != NULL; t++)
        if (tests[t](evidence, named) < 0)
            append(against, sizeof against, reading(evidence, named, t, words));
    if (against[0] == '\0')
        return;
    if (product->gpu != named)
        snprintf(product->contradiction, sizeof product->contradiction,
                 "the name says %s, but %s: that is %s", named->name, against, product->gpu->name);
    else
        snprintf(product->contradiction, sizeof product->contradiction,
                 "the name says %s, but %s: that does not fit it", named->name, against);
}

/* --- all of it --- */

static void choose(const struct evidence *evidence, const char *family,
                   struct nw_gpu_product *product)
{
    struct score best = {0};
    int named = 0;

    for (size_t i = 0; i < nw_gpu_count; i++) {
        char own[48];

        family_of(&nw_gpus[i], own);
        if (strcmp(own, family) != 0)
            continue;
        const struct score score = weigh(evidence, &nw_gpus[i]);

        if (score.named && named++ == 0)
            product->named = &nw_gpus[i];
        const int order = product->gpu == NULL ? -1 : compare(score, best);

        if (order < 0) {
            best = score;
            product->gpu = &nw_gpus[i];
            product->fit_count = 0;
        }
        if (order <= 0 && product->fit_count < NW_PRODUCT_MAX_FITS)
            product->fits[product->fit_count++] = &nw_gpus[i];
    }
    /* Neither its name nor two readings and more fit: a product that is not in the catalogue. */
    if (product->gpu != NULL && best.against + !best.named >= 2 && !best.named)
        product->gpu = NULL;
    if (product->gpu == NULL) {
        product->named = NULL;
        product->fit_count = 0;
        return;
    }
    /* Of several rows that the name leaves, what it is tells which is meant. */
    if (named > 1)
        product->named = name_fits(evidence, product->gpu) ? product->gpu : NULL;
}

static void identify(const char *model, struct evidence *evidence, struct nw_gpu_product *product)
{
    char family[48];

    *product = (struct nw_gpu_product){.gpu = NULL};
    normalise(model, evidence->name);
    evidence->form = form_of(evidence->name);
    evidence->name_gib = gib_of(evidence->name);
    if (!find_family(evidence->name, family) || goes_on(evidence->name, family))
        return;
    choose(evidence, family, product);
    if (product->gpu == NULL)
        return;
    word_decision(evidence, product);
    word_contradiction(evidence, product);
}

void nw_gpu_identify_name(const char *name, struct nw_gpu_product *product_out)
{
    struct evidence evidence = {
        .power_w = NAN, .memory_bytes = NAN, .links = NAN, .wired = NAN, .generation = NAN};

    identify(name, &evidence, product_out);
}

/* MIG switches NVLink off and divides the memory. */
static bool is_divided(const struct nw_topo *topo, int gpu)
{
    const char *virtual = nw_topo_text(topo, gpu, NW_FACT_GPU_VIRTUAL);

    return nw_topo_number(topo, gpu, NW_FACT_MIG) == 1 ||
           (virtual != NULL && strcasestr(virtual, "vgpu") != NULL);
}

void nw_gpu_identify(const struct nw_topo *topo, int gpu, struct nw_gpu_product *product_out)
{
    const struct nw_topo_node *node = &topo->nodes[gpu];
    const double links = nw_topo_number(topo, gpu, NW_FACT_NVLINK_COUNT);
    const double down = nw_topo_number(topo, gpu, NW_FACT_NVLINK_INACTIVE_COUNT);
    const double usual = nw_topo_number(topo, gpu, NW_FACT_POWER_DEFAULT);
    const bool whole = !is_divided(topo, gpu);
    struct evidence evidence = {
        .power_w = isnan(usual) ? nw_topo_number(topo, gpu, NW_FACT_POWER_LIMIT) : usual,
        .power_may_be_set = isnan(usual),
        .memory_bytes = node->memory_bytes > 0 && whole ? (double)node->memory_bytes : NAN,
        .links = whole ? links : NAN,
        .wired = whole && down >= 0 ? links + down : NAN,
        .generation = nw_topo_number(topo, gpu, NW_FACT_DEVICE_MAX_GENERATION),
        .pci_device = nw_topo_is_nvidia(node) ? node->pci_device : 0,
    };

    identify(node->model, &evidence, product_out);
}
