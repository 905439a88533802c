/* Where the topology tests find their machines: exports of hwloc. */
#ifndef NW_TESTS_TOPO_MACHINES_H
#define NW_TESTS_TOPO_MACHINES_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static inline bool machine_path(const char *name, char *path, size_t size)
{
    static const char *const folders[] = {"tests/machines", "tests/field/hwloc"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, size, "%s/%s/%s", NW_SOURCE_DIR, folders[i], name);
        if (access(path, R_OK) == 0)
            return true;
    }
    fprintf(stderr, "%s: not here\n", name);
    return false;
}

static const char *const all_machines[] = {
    "hgx-8gpu-hwloc2.xml",
    "aws-g4dn-metal-8xt4.xml",
    "chimera-mixed-gpus-hwloc1.xml",
    "coral-ea-4xp100-hwloc1.xml",
    "coral-lassen-4xv100-hwloc2.xml",
    "gh200-grace-hopper.xml",
    "jetson-xavier.xml",
    "lenovo-sd665n-4xh200-nonvml.xml",
    "lenovo-sd665n-4xh200-nvml.xml",
    "misc-libxml2-topo.xml",
    "rocm-tioga-mi250x.xml",
    "sandy-3gpu-1ib-wholeio.xml",
    "sandy-noio.xml",
    "sierra2-4xv100-hwloc1.xml",
    "westmere-3gpu-1ib.xml",
    "made-up-dgx2.xml",
};
enum { MACHINE_COUNT = sizeof all_machines / sizeof *all_machines };

#endif
