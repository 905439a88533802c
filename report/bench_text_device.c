#include "report/bench_text_parts.h"

const struct nw_bench_layout nw_bench_device_layouts[] = {
    {.case_name = NULL},
};
