/* Every kernel on every GPU of the machine, against naive references: the table that also checks
 * the twins. Exits 0 right, 1 wrong, 77 without a GPU (with the reason).
 *
 *     test_kernels [--json FILE] [--few] [--only GROUP] [BACKEND]
 *
 * --few: a fraction of the sizes, for tools that make every access slow.
 */
#include "tests/gpu/kernel_cases.h"

static void print_device(const struct nw_dev *dev, FILE *json)
{
    printf("%s %d: %s, compute capability %d.%d, %d multiprocessors, %.1f GiB, %s%s\n",
           dev->ops->name, dev->index, dev->name, dev->capability / 10, dev->capability % 10,
           dev->sm_count, (double)dev->memory_bytes / (1 << 30), dev->library,
           dev->simulated ? " (SIMULATED: no measurement of a machine)" : "");
    if (json)
        fprintf(json,
                "{\"check\": \"device\", \"index\": %d, \"name\": \"%s\", \"uuid\": \"%s\", "
                "\"pci\": \"%s\", \"capability\": %d, \"sm_count\": %d, \"memory_bytes\": %llu, "
                "\"library\": \"%s\", \"simulated\": %s}\n",
                dev->index, dev->name, dev->uuid, dev->pci, dev->capability, dev->sm_count,
                (unsigned long long)dev->memory_bytes, dev->library,
                dev->simulated ? "true" : "false");
}

static int check_device(struct nw_dev *dev, const char *only, bool few, FILE *json)
{
    int failed = 0;
    print_device(dev, json);
    for (size_t g = 0; g < KC_COUNT(kc_groups); g++) {
        if (only && strcmp(only, kc_groups[g].name) != 0)
            continue;
        const uint64_t start = nw_now_ns();
        const struct kc kc = kc_run(dev, g, few);
        const double seconds = (double)(nw_now_ns() - start) * 1e-9;
        printf("  %-10s %5d checked %5d wrong %3d skipped %7.2f s  %s\n", kc_groups[g].name,
               kc.checked, kc.failed, kc.skipped, seconds, kc.failed ? kc.first : "");
        fflush(stdout);
        if (json)
            fprintf(json,
                    "{\"check\": \"kernel\", \"device\": %d, \"group\": \"%s\", \"checked\": %d, "
                    "\"wrong\": %d, \"skipped\": %d, \"seconds\": %.3f, \"simulated\": %s}\n",
                    dev->index, kc_groups[g].name, kc.checked, kc.failed, kc.skipped, seconds,
                    dev->simulated ? "true" : "false");
        failed += kc.failed;
    }
    return failed;
}

int main(int argc, char **argv)
{
    const char *backend = "cuda", *path = NULL, *only = NULL;
    bool few = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            path = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--few") == 0)
            few = true;
        else
            backend = argv[i];
    }
    char why[1024];
    const int count = nw_dev_count(backend, why, sizeof why);
    if (count == 0) {
        printf("skipped: %s\n", why);
        return 77;
    }
    FILE *json = path ? fopen(path, "w") : NULL;
    if (path && !json) {
        perror(path);
        return 1;
    }
    int failed = 0;
    for (int i = 0; i < count; i++) {
        struct nw_dev *dev;
        if (nw_dev_open(backend, i, &dev) != NW_OK) {
            printf("%s %d: %s\n", backend, i, nw_last_error()->text);
            failed++;
            continue;
        }
        failed += check_device(dev, only, few, json);
        nw_dev_close(dev);
    }
    if (json && fclose(json) != 0)
        failed++;
    return failed ? 1 : 0;
}
