/* Without a driver, the GPU libraries answer "not here" with a reason, and nothing crashes. Exits
 * 77 on a machine that has a driver: there is nothing to check there. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels/dev.h"
#include "topo/nvml_api.h"

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,                     \
                   nw_last_error()->text);                                                         \
            failed++;                                                                              \
        }                                                                                          \
    } while (0)

int main(void)
{
    if (dlopen("libcuda.so.1", RTLD_LAZY) || dlopen("libnvidia-ml.so.1", RTLD_LAZY)) {
        printf("skipped: this machine has an NVIDIA driver\n");
        return 77;
    }
    int failed = 0;
    struct nw_dev *dev = NULL;
    struct nw_nvml *nvml = NULL;
    for (int round = 0; round < 2; round++) { /* the second answer is the remembered one */
        EXPECT(nw_dev_open("cuda", 0, &dev) == NW_ENODEV);
        printf("cuda: %s\n", nw_last_error()->text);
        EXPECT(strstr(nw_last_error()->text, "libcuda.so.1") != NULL ||
               strstr(nw_last_error()->text, "built without CUDA") != NULL);
    }
    char why[16]; /* cut, not overrun */
    EXPECT(nw_dev_count("cuda", why, sizeof why) == 0 && strlen(why) == sizeof why - 1);
    EXPECT(nw_dev_count("cuda", NULL, 0) == 0);
    EXPECT(nw_nvml_open(&nvml) == NW_ENODEV);
    printf("nvml: %s\n", nw_last_error()->text);
    EXPECT(strcmp(nw_last_error()->text, "no NVIDIA driver: libnvidia-ml.so.1 not found") == 0);
    nw_nvml_close(NULL);

    EXPECT(nw_dev_open_best(0, &dev) == NW_OK);
    EXPECT(dev && strcmp(dev->ops->name, "host") == 0 && !dev->simulated);
    nw_dev_close(dev);
    EXPECT(nw_dev_open_best(3, &dev) == NW_ENODEV);
    return failed ? 1 : 0;
}
