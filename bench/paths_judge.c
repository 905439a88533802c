#include "bench/paths_judge.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "0000:01:00.0" at `text`, then '/' or the end */
static bool is_address(const char *text)
{
    static const char form[] = "xxxx:xx:xx.x";

    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    return text[sizeof form - 1] == '/' || text[sizeof form - 1] == '\0';
}

nw_nearness nw_pci_nearness(const char *path_a, const char *path_b)
{
    const char *a = strstr(path_a, "/pci"), *b = strstr(path_b, "/pci");
    int shared = 0;

    if (a == NULL || b == NULL)
        return NW_NEARNESS_UNKNOWN;
    for (;;) {
        const size_t length_a = strcspn(a + 1, "/"), length_b = strcspn(b + 1, "/");

        if (length_a != length_b || strncmp(a + 1, b + 1, length_a) != 0)
            break;
        shared += is_address(a + 1);
        a += 1 + length_a;
        b += 1 + length_b;
        if (*a == '\0' || *b == '\0')
            return NW_NEARNESS_UNKNOWN; /* one device, or one above the other */
    }
    return shared > 0 ? NW_NEARNESS_SWITCH : NW_NEARNESS_APART;
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

struct nw_paths_verdict nw_paths_judge(const double *rates, const double *ceilings,
                                       const nw_nearness *nearness, size_t count)
{
    static const nw_nearness sorts[] = {NW_NEARNESS_SWITCH, NW_NEARNESS_APART};
    double values[NW_PATHS_MAX * NW_PATHS_MAX];
    double medians[2], share;
    size_t used = 0;

    for (int sort = 0; sort < 2; sort++) {
        used = 0;
        for (size_t i = 0; i < count * count; i++)
            if (nearness[i] == sorts[sort] && rates[i] > 0)
                values[used++] = rates[i];
        medians[sort] = median(values, used);
    }
    used = 0;
    for (size_t i = 0; i < count * count; i++)
        if (nearness[i] == NW_NEARNESS_APART && rates[i] > 0 && ceilings[i] > 0)
            values[used++] = rates[i] / ceilings[i];
    share = median(values, used);
    return (struct nw_paths_verdict){
        .inverted = medians[0] < NW_INVERTED_SHARE * medians[1],
        .root_limited = share < NW_ROOT_LIMITED_SHARE,
        .switch_bytes_per_s = medians[0],
        .apart_bytes_per_s = medians[1],
        .apart_share = share,
    };
}
