/* nvidia-smi nvlink: every file of tests/field/nvlink, and what else it prints. */
#include <criterion/criterion.h>

#include "tests/unit/topo_expect.h"

#define GPU(n)                                                                                     \
    "GPU " n ": NVIDIA H100 80GB HBM3 (UUID: GPU-1234abcd-0000-0000-0000-00000000000" n ")\n"

Test(topo_read_nvlink, files_of_the_field)
{
    static const struct {
        const char *file, *statements;
    } rows[] = {
        {"a100x8-status.txt",
         "gpus 8; fact gpu* nvlink_active_count 12; fact gpu* nvlink_bytes_per_s 25.0 GB/s; "
         "fact gpu* nvlink_inactive_count 0; fact gpu* nvlink_inactive -; fact gpu7 gpu_index 7; "
         "model gpu* NVIDIA A100-SXM4-80GB; findings 0"},
        {"azhpc-v100-2links-inactive.txt",
         "gpus 1; model gpu3 Tesla V100-SXM2-32GB; fact gpu3 nvlink_active_count 4; "
         "fact gpu3 nvlink_inactive_count 2; fact gpu3 nvlink_inactive 3, 5; "
         "fact gpu3 nvlink_bytes_per_s 25.8 GB/s; fact gpu3 uuid -; findings 0"},
        {"capture-4080s-nvlink.txt",
         "gpus 1; model gpu0 NVIDIA GeForce RTX 4080 SUPER; fact gpu0 nvlink_active_count 0; "
         "fact gpu0 nvlink_inactive -; fact gpu0 nvlink_inactive_count -; findings 0"},
        {"capture-h200-nvlink.txt",
         "gpus 1; fact gpu0 nvlink_active_count 18; fact gpu0 nvlink_bytes_per_s 26.6 GB/s; "
         "fact gpu0 nvlink_inactive_count 0; findings 0"},
        {"capture-l40s-nvlink.txt",
         "gpus 1; model gpu0 NVIDIA L40S; fact gpu0 nvlink_active_count 0; findings 0"},
        {"capture-win-2080s-591-nvlink.txt",
         "gpus 1; fact gpu0 nvlink_active_count 0; fact gpu0 nvlink_inactive all; findings 0"},
        {"capture-win-2080s-610-nvlink.txt",
         "gpus 1; fact gpu0 nvlink_active_count 0; fact gpu0 nvlink_inactive all; findings 0"},
        {"h100-elided-book.txt",
         "gpus 1; fact gpu0 nvlink_active_count -; fact gpu0 nvlink_bytes_per_s 26.6 GB/s; "
         "finding file-cut; says at least 18 links; says links 1-16 are left out; findings 1"},
        {"ndv4-gpu7-good.txt", "gpus 1; fact gpu7 gpu_index 7; fact gpu7 nvlink_active_count 12; "
                               "fact gpu7 nvlink_bytes_per_s 25.0 GB/s; findings 0"},
    };
    char file[200];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(file, sizeof file, "tests/field/nvlink/%s", rows[i].file);
        expect_topology(file, rows[i].statements);
    }
}

Test(topo_read_nvlink, other_forms)
{
    static const struct {
        const char *text, *statements;
    } rows[] = {
        {GPU("0") "\t Link 0: <inactive>\n\t Link 1: <inactive>\n",
         "fact gpu0 nvlink_active_count 0; fact gpu0 nvlink_inactive 0, 1; "
         "fact gpu0 nvlink_bytes_per_s -; findings 0"},
        /* the file ends in the second GPU's list */
        {GPU("0") " Link 0: 25 GB/s\n Link 1: 25 GB/s\n Link 2: 25 GB/s\n" GPU(
             "1") " Link 0: 25 GB/s\n Link 1: 25 GB",
         "fact gpu0 nvlink_active_count 3; fact gpu1 nvlink_active_count -; finding file-cut"},
        {GPU("0") " Link 0: 25 GB/s\n Link 1: 25 GB/s\n" GPU("1") " Link 0: 25 GB/s\n",
         "fact gpu0 nvlink_active_count 2; fact gpu1 nvlink_active_count -; finding file-cut"},
        /* two rates: neither is the rate of all */
        {GPU("0") " Link 0: 25.781 GB/s\n Link 1: 20 GB/s\n",
         "fact gpu0 nvlink_active_count 2; fact gpu0 nvlink_bytes_per_s -"},
        /* nvlink -e */
        {GPU("0") " Link 0: Replay Errors: 2\n Link 0: Recovery Errors: 0\n Link 0: CRC Errors: "
                  "5\n",
         "fact gpu0 nvlink_error_count 7; fact gpu0 nvlink_active_count -; findings 0"},
        /* nvlink -R, -c: nothing that is told here */
        {GPU("0") " Link 0: Remote Device 00000000:C8:00.0: Link 3\n",
         "gpus 1; fact gpu0 nvlink_active_count -; fact gpu0 nvlink_error_count -"},
        {"root@x:~# nvidia-smi nvlink -s\r\n" GPU("0") "\t Link 0: 50 GB/s\r\n",
         "fact gpu0 nvlink_active_count 1; fact gpu0 nvlink_bytes_per_s 50.0 GB/s; findings 0"},
        {GPU("0") " Link 0: 25 GB/s\nUnable to determine the device handle for GPU 0000:4E:00.0: "
                  "GPU "
                  "is lost.  Reboot the system to recover this GPU\n",
         "gpus 1; finding gpu-lost; says 0000:4E:00.0"},
        /* without links it is nvidia-smi -L */
        {GPU("0") GPU("1"), "gpus 2; fact gpu1 nvlink_active_count -; fact gpu1 gpu_index 1"},
        {GPU("0") " Link 99: 25 GB/s\n", "gpus 1; fact gpu0 nvlink_active_count -"},
        {GPU("0") " Link 0: -25 GB/s\n Link 1: nan GB/s\n Link 2: 1e9 GB/s\n",
         "gpus 1; fact gpu0 nvlink_active_count -; fact gpu0 nvlink_bytes_per_s -"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_text(rows[i].text, rows[i].statements);
}
