/* What happens to nvidia-smi's output on its way to us, and the layouts of which the field data has
 * none: each is read right, or refused with a reason. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/io.h"
#include "tests/unit/topo_expect.h"

struct row {
    const char *text, *statements;
};

static void check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_text(rows[i].text, rows[i].statements);
}

Test(topo_read_smi_forms, matrices)
{
    static const struct row rows[] = {
        /* a row that disagrees with its counterpart */
        {"\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPIX\tNV4\nGPU1\tSYS\t X \tPHB\nGPU2\tNV6\tPHB\t X \n",
         "gpus 3; pair gpu0 gpu1 -; pair gpu1 gpu2 PHB; pair gpu0 gpu2 NV; "
         "finding matrix-asymmetric; says PIX; says SYS; findings 2"},
        /* a cell was lost: the row does not fit any more */
        {"\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPIX\tSYS\nGPU1\t X \tSYS\nGPU2\tSYS\tSYS\t X \n",
         "gpus 3; pair gpu0 gpu1 PIX; pair gpu1 gpu2 SYS; finding row-refused; finding file-cut"},
        /* a cell too many, so that the X stands below another name */
        {"\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\tPIX\t X \n",
         "pair gpu0 gpu1 PIX; finding row-refused; says more cells"},
        {"GPU0 GPU1 CPU Affinity\nGPU0 X PIX 0-1\nGPU1 PIX X SYS 0-1\n",
         "pair gpu0 gpu1 PIX; finding row-refused; fact gpu1 cpu_affinity -"},
        {"\tGPU0\tGPU1\nGPU0\tPIX\t X \nGPU1\t X \tPIX\n",
         "refused no row that fits|row GPU0 (line 2)|below GPU1"},
        /* words grown together */
        {"GPU0 GPU1 NIC0 NIC1 CPU Affinity NUMA Affinity\nGPU0 XNV12SYSSYS0-31 0\n"
         "GPU1 NV12 X SYSSYS 32-63 1\n",
         "pair gpu0 gpu1 NV12; pair gpu0 nic1 SYS; fact gpu0 cpu_affinity 0-31; numa gpu0 0; "
         "numa gpu1 1"},
        {"GPU0 GPU1 CPU Affinity\nGPU0 X NV120-31\nGPU1 NV12 X 0-31\n",
         "pair gpu0 gpu1 NV12; finding row-refused"},
        /* the last cell is torn: NV1 of NV18 */
        {"GPU0 GPU1 CPU Affinity\nGPU0 X NV1", "gpus 2; pair gpu0 gpu1 -; finding file-cut"},
        {"GPU0 GPU1 CPU Affinity\nGPU0 X NV18 0-1\nGPU1 NV18",
         "gpus 2; pair gpu0 gpu1 NV18; finding row-refused; says gpu1 is missing"},
        /* affinity: missing places, by tabs and by blanks */
        {"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t\t\tN/A\n",
         "numa gpu0 -1; fact gpu0 cpu_affinity -; fact gpu0 gpu_memory_numa_node -"},
        {"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t1\t\tN/A\n",
         "numa gpu0 1; fact gpu0 cpu_affinity -"},
        {"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-7\t\t\t2\n",
         "numa gpu0 -1; fact gpu0 cpu_affinity 0-7; fact gpu0 gpu_memory_numa_node 2"},
        {"        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
         "GPU0     X      SYS                     1               N/A\n"
         "GPU1    SYS      X      8-15                            N/A\n",
         "numa gpu0 1; numa gpu1 -1; fact gpu1 cpu_affinity 8-15; fact gpu0 cpu_affinity -"},
        {"GPU0 CPU Affinity NUMA Affinity\nGPU0 X N/A N/A\n",
         "numa gpu0 -1; fact gpu0 cpu_affinity -"},
        /* before 2017: SOC */
        {"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSOC\t0-7\nGPU1\tSOC\t X \t8-15\n",
         "pair gpu0 gpu1 SYS; fact gpu1 cpu_affinity 8-15"},
        /* -mp says nothing of NVLink */
        {"$ nvidia-smi topo -mp\n\tGPU0\tGPU1\nGPU0\t X \tNODE\nGPU1\tNODE\t X \n",
         "pair gpu0 gpu1 NODE; gap 2"},
        {"\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n\nLegend:\n\n  X    = Self\n  PIX  = one "
         "bridge\n",
         "pair gpu0 gpu1 PIX; gap 2"},
        /* -p2p */
        {"# nvidia-smi topo -p2p n\n\tGPU0\tGPU1\tGPU2\n GPU0\tX\tOK\tNS\n GPU1\tOK\tX\tNS\n "
         "GPU2\tNS\tNS\tX\n",
         "gpus 3; links 1; fact gpu0 peer_gpu_count -; findings 0"},
        {"# nvidia-smi topo -p2p w\n\tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n",
         "fact gpu* peer_gpu_count 0; links 0"},
        {"\tGPU0\tGPU1\n GPU0\tX\tU\n GPU1\tU\tX\n", "fact gpu* peer_gpu_count -"},
        /* colours whose escape character was lost, as pages show them */
        {"\t[4mGPU0\tGPU1\tCPU Affinity[0m\nGPU0\t X \tPHB\t0-7\nGPU1\tPHB\t X \t0-7\n",
         "pair gpu0 gpu1 PHB"},
        {"\xef\xbb\xbf\tGPU0\tGPU1\r\nGPU0\t X \tPHB\r\nGPU1\tPHB\t X \r\n", "pair gpu0 gpu1 PHB"},
        /* quoted in a mail, made a table */
        {"> \tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n> GPU0\t X \tPHB\t0-7\t0\n> GPU1\tPHB\t X "
         "\t8-15\t1\n",
         "pair gpu0 gpu1 PHB; numa gpu1 1; fact gpu0 cpu_affinity 0-7"},
        {"| | GPU0 | GPU1 | NIC0 | CPU Affinity | NUMA Affinity |\n|---|---|---|---|---|---|\n| "
         "GPU0 | X "
         "| NV4 | PIX | 0-7 | 0 |\n| GPU1 | NV4 | X | SYS | 8-15 | 1 |\n| NIC0 | PIX | SYS | X | | "
         "|\n",
         "gpus 2; nics 1; pair gpu0 nic0 PIX; pair gpu1 nic0 SYS; numa gpu1 1; "
         "fact gpu1 cpu_affinity 8-15; findings 0"},
        /* people's words around it */
        {"Hello, GPU0 is slow, see\n\nGPU0 and GPU1:\n\n\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t "
         "X "
         "\n\nGPU0 X GPU1?\n",
         "gpus 2; pair gpu0 gpu1 PHB"},
        /* watch prints it again; the second has another size */
        {"\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t "
         "X "
         "\n",
         "gpus 2; pair gpu0 gpu1 PHB; findings 0"},
        {"\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPHB\tSYS\n[...]\nGPU2\tSYS\tSYS\t X \n",
         "pair gpu0 gpu1 PHB; pair gpu1 gpu2 SYS; says gpu1 is missing"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNVX\nGPU1\tNVX\t X \n", "gpus 2; pair gpu0 gpu1 -"},
        {"\tGPU0\tGPU0\nGPU0\t X \tPHB\nGPU0\tPHB\t X \n", "gpus 2"},
        {"GPU0\t X \tPHB\nGPU1\tPHB\t X \n", "refused line of names"},
        {"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n", "refused no row"},
        {"Unable to determine the device handle for GPU 0000:4E:00.0: Unknown "
         "Error\n\tGPU0\nGPU0\t "
         "X \n",
         "gpus 1; finding gpu-lost"},
        {"mthreads-gmi topo -m\nGPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n", "refused Moore Threads"},
    };

    check(rows, sizeof rows / sizeof *rows);
}

#define HEAD                                                                                       \
    "Timestamp : Mon\nDriver Version : 470.57.02\nCUDA Version : 11.4\n\nAttached GPUs : 1\n"      \
    "GPU 00000000:07:00.0\n"

Test(topo_read_smi_forms, queries)
{
    static const struct row rows[] = {
        /* the layout up to driver 530 */
        {HEAD
         "    Product Name : Tesla V100-SXM2-32GB\n    Ecc Mode\n        Current : Enabled\n"
         "    ECC Errors\n        Volatile\n            Single Bit\n                Device "
         "Memory : 3\n                Total : 4\n            Double Bit\n                Device "
         "Memory : 0\n                Total : 1\n        Aggregate\n            Single Bit\n   "
         "             Total : 9\n            Double Bit\n                Total : 2\n"
         "    Power Readings\n        Power Draw : 55.1 W\n        Power Limit : 300.00 W\n"
         "        Default Power Limit : 300.00 W\n        Enforced Power Limit : 250.00 W\n"
         "    Clocks Throttle Reasons\n        Idle : Not Active\n        SW Power Cap : "
         "Active\n        HW Slowdown : Not Active\n            HW Thermal Slowdown : Active\n",
         "fact gpu0 ecc_corrected_count 4; fact gpu0 ecc_uncorrected_count 1; "
         "fact gpu0 ecc_corrected_lifetime_count 9; fact gpu0 ecc_uncorrected_lifetime_count 2; "
         "fact gpu0 power_limit_w 250 W; fact gpu0 power_default_limit_w 300 W; "
         "fact gpu0 throttle 68; fact gpu0 ecc_enabled yes; fact gpu0 power_w 55.1 W"},
        /* blanks at the beginning of lines lost */
        {HEAD "Product Name : NVIDIA H100\nMIG Mode\nCurrent : Disabled\nPending : Enabled\nMIG "
              "Device\nIndex : 0\nECC Errors\nVolatile\nSRAM Uncorrectable : 7\nAccounting Mode : "
              "Disabled\nGPU Link Info\nPCIe Generation\nMax : 5\nCurrent : 4\nLink Width\nMax : "
              "16x\nCurrent : 8x\nFan Speed : N/A\nECC Errors\nVolatile\nSRAM Uncorrectable : 2\n"
              "Aggregate\nSRAM Uncorrectable : 3\n",
         "model gpu0 NVIDIA H100; fact gpu0 mig_enabled no; fact gpu0 pcie_max_generation 5; "
         "fact gpu0 pcie_generation 4; lanes gpu0 8/16; fact gpu0 ecc_uncorrected_count 2; "
         "fact gpu0 ecc_uncorrected_lifetime_count 3"},
        /* the driver gives errors instead of values */
        {HEAD "    Product Name : NVIDIA A100\n    Serial Number : Unknown Error\n    GPU UUID : "
              "Unknown Error\n    Fan Speed : [Unknown Error]\n",
         "finding gpu-error; says Unknown Error; says 3 times; fact gpu0 uuid -"},
        {HEAD "    Compute Mode : GPU is lost\n", "finding gpu-error; fact gpu0 compute_mode -"},
        {HEAD "    Performance State : GPU requires reset\n    GPU Reset Status\n        Reset "
              "Required : Yes\n",
         "finding gpu-error; fact gpu0 recovery_action reset"},
        {HEAD "    Fabric\n        State : In Progress\n        Status : N/A\n",
         "fact gpu0 fabric_state in progress; fact gpu0 fabric_status -"},
        /* what no GPU has */
        {HEAD
         "    GPU Link Info\n        PCIe Generation\n            Max : 99999\n        Link "
         "Width\n            Max : 400x\n            Current : -1x\n    FB Memory Usage\n       "
         " Total : 99999999999999999999 MiB\n    GPU Power Readings\n        Current Power Limit "
         ": 1e300 W\n",
         "fact gpu0 pcie_max_generation -; lanes gpu0 0/0; memory gpu0 0; fact gpu0 power_limit_w "
         "-"},
        /* -l prints it again */
        {HEAD "    Compute Mode : Default\n" HEAD "    Compute Mode : Prohibited\n",
         "gpus 1; fact gpu0 compute_mode Default; findings 0"},
        {HEAD
         "    Processes\n        GPU instance ID : N/A\n        Process ID : 5\n            Name "
         ": python: GPU 00000000:08:00.0\n",
         "gpus 1"},
        {"==============NVSMI LOG==============\n\nDriver Version : 1\nAttached GPUs : 0\n",
         "refused no section of a GPU"},
        {"==============NVSMI LOG==============\nGPU 00000000:07:00.0\nGPU 99999999:07:00.0\n",
         "gpus 1"},
    };

    check(rows, sizeof rows / sizeof *rows);
}

Test(topo_read_smi_forms, columns)
{
    static const struct row rows[] = {
        {"index, name, memory.total [MiB], power.limit [W], enforced.power.limit [W], "
         "pcie.link.width.current\n0, NVIDIA A100-SXM4-40GB, 40536, 400.00, 250.00, 16\n3, NVIDIA "
         "A100-SXM4-40GB, 40536 MiB, 400.00 W, [N/A], 8\n",
         "gpus 2; memory gpu0 40536; memory gpu3 40536; fact gpu0 power_limit_w 250 W; "
         "fact gpu3 power_limit_w 400 W; lanes gpu3 8/0; fact gpu3 gpu_index 3"},
        {"$ nvidia-smi --query-gpu=index,gpu_name,clocks.max.sm --format=csv,noheader\n0, NVIDIA "
         "H100 NVL, 1785 MHz\n",
         "gpus 1; model gpu0 NVIDIA H100 NVL; fact gpu0 sm_max_clock_hz 1785 MHz"},
        {"0, NVIDIA H100 NVL, 95830 MiB\n1, NVIDIA H100 NVL, 95830 MiB\n",
         "refused line of their names|noheader"},
        {"GPU-12345678-1234-1234-1234-123456789012, 00000000:17:00.0\n", "refused noheader"},
        {"name, pci.bus_id\nNVIDIA L4, 00000000:31:00.0\nNVIDIA L4\nNVIDIA L4, 00000000:32:00.0, "
         "x\n",
         "gpus 1; finding row-refused; says line 4"},
        {"name, pci.bus_id, count\nNVIDIA L4, 00000000:31:00.0, 4\n", "gpus 1; finding file-cut"},
        {"uuid, serial, pci.bus_id\nGPU-1a, 7, 00000000:31:00.0\nGPU-1a, 8, 00000000:32:00.0\n",
         "gpus 2; fact gpu* uuid -; fact gpu1 serial 8"},
        {"name, clocks_throttle_reasons.active, clocks_throttle_reasons.hw_slowdown\n"
         "Tesla T4, 0x0000000000000028, Active\n",
         "fact gpu0 throttle 40"},
        {"name, ecc.errors.uncorrected.volatile.total, ecc.errors.uncorrected.volatile.dram\n"
         "Tesla T4, 5, 3\nTesla T4, [N/A], 3\n",
         "fact gpu0 ecc_uncorrected_count 5; fact gpu1 ecc_uncorrected_count 3"},
        {"name, pci.bus_id\n", "refused no line of a GPU"},
        {"name, pci.bus_id\nUnable to determine the device handle for GPU 0000:4E:00.0: GPU is "
         "lost.\nTesla T4, 00000000:31:00.0\n",
         "gpus 1; finding gpu-lost"},
    };

    check(rows, sizeof rows / sizeof *rows);
}

#define TABLE                                                                                      \
    "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n"            \
    "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"            \
    "|===============================+======================+======================|\n"

Test(topo_read_smi_forms, tables_and_lists)
{
    static const struct row rows[] = {
        {"+------------------------------------------------------+\n| NVIDIA-SMI 352.39     Driver "
         "Version: 352.39         |\n| GPU  Name        Persistence-M| Bus-Id        Disp.A | "
         "Volatile Uncorr. ECC "
         "|\n|===============================+======================+==========="
         "===========|\n|   0  Tesla K80           Off  | 0000:06:00.0     Off |                   "
         " 0 |\n| N/A   35C    P8    26W / 149W |     55MiB / 11519MiB |      0%      Default "
         "|\n+-------------------------------+----------------------+----------------------+\n",
         "gpus 1; model gpu0 Tesla K80; pci gpu0 0000:06:00.0; memory gpu0 11519; "
         "fact machine driver_version 352.39; fact gpu0 power_limit_w 149 W; findings 0"},
        {TABLE
         "|   2  NVIDIA A100-SXM...  On   | 00000000:4E:00.0 Off |                  Off "
         "|\n|ERR!  ERR! ERR!    ERR! / ERR! |      0MiB / 40536MiB |    ERR!      Default "
         "|\n|                               |                      |             Enabled "
         "|\n+-------------------------------+----------------------+----------------------+\n",
         "gpus 1; model gpu2 ; fact gpu2 ecc_enabled no; fact gpu2 mig_enabled yes; "
         "finding gpu-error; finding name-cut; fact gpu2 power_w -"},
        {TABLE "|   0  Tesla T4            Off  | 00000000:4E:00.0 Off |                    3 |\n",
         "gpus 1; fact gpu0 ecc_uncorrected_count 3; finding file-cut"},
        {TABLE, "refused no line of a GPU"},
        {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make "
         "sure\n",
         "refused kernel module is not loaded|t.txt:1"},
        {"$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n",
         "refused different versions|t.txt:2"},
        {"No devices were found\n", "refused finds no GPU"},
        {"bash: nvidia-smi: command not found\n", "refused no NVIDIA driver is installed"},
        {"GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1234abcd-0000-0000-0000-000000000001)\n  MIG "
         "1g.5gb      Device  0: (UUID: MIG-1234abcd-0000-0000-0000-000000000001)\nGPU 1: NVIDIA "
         "A100-SXM4-40GB (UUID: GPU-1234abcd-0000-0000-0000-000000000002)\n",
         "gpus 2; fact gpu0 mig_enabled yes; fact gpu1 mig_enabled -; "
         "fact gpu1 uuid GPU-1234abcd-0000-0000-0000-000000000002"},
    };

    check(rows, sizeof rows / sizeof *rows);
}

#define XML "<?xml version=\"1.0\" ?>\n"

Test(topo_read_smi_forms, xml)
{
    static const struct row rows[] = {
        {"$ nvidia-smi -q -x\n" XML "<nvidia_smi_log><driver_version>418.87</driver_version><gpu "
         "id=\"00000000:06:00.0\"><ecc_errors><volatile><single_bit><total>4</total></single_bit>"
         "<double_bit><total>2</total></double_bit></volatile></ecc_errors><power_readings>"
         "<power_limit>300.00 W</power_limit><enforced_power_limit>200.00 W</enforced_power_limit>"
         "</power_readings></gpu></nvidia_smi_log>",
         "gpus 1; fact gpu0 ecc_corrected_count 4; fact gpu0 ecc_uncorrected_count 2; "
         "fact gpu0 power_limit_w 200 W; fact machine driver_version 418.87"},
        {XML "<nvidia_smi_log><gpu id=\"00000000:06:00.0\"><mig_devices><mig_device>"
             "<ecc_error_count><volatile><sram_uncorrectable>9</sram_uncorrectable></volatile>"
             "</ecc_error_count></mig_device></mig_devices><processes><process_info><uuid>GPU-1"
             "</uuid></process_info></processes></gpu></nvidia_smi_log>",
         "gpus 1; fact gpu0 ecc_uncorrected_count -; fact gpu0 uuid -"},
        {XML "<nvidia_smi_log><attached_gpus>2</attached_gpus><gpu id=\"00000000:06:00.0\"></gpu>"
             "</nvidia_smi_log>",
         "gpus 1; finding file-cut"},
        {XML "<nvidia_smi_log></nvidia_smi_log>", "refused no <gpu>"},
        {XML "<nvidia_smi_log><gpu id=\"zz\"></gpu></nvidia_smi_log>", "refused t.txt:2|zz"},
        {XML "<nvidia_smi_log><gpu id=\"00000000:06:00.0\"><pci>", "refused t.txt|cut off"},
        {XML "<!DOCTYPE nvidia_smi_log [<!ENTITY a \"aa\">]><nvidia_smi_log>&a;</nvidia_smi_log>",
         "refused entities"},
        {XML "<html><nvidia_smi_log/></html>", "refused outermost element is <html>"},
    };

    check(rows, sizeof rows / sizeof *rows);
}

Test(topo_read_smi_forms, several_outputs_in_one_file)
{
    static const struct row rows[] = {
        {"$ nvidia-smi\n" TABLE
         "|   0  Tesla T4            Off  | 00000000:4E:00.0 Off |                    3 |\n"
         "| N/A   35C    P8    26W / 70W  |     55MiB / 15360MiB |      0%      Default |\n"
         "+-------------------------------+----------------------+----------------------+\n"
         "|   1  Tesla T4            Off  | 00000000:5E:00.0 Off |                    0 |\n"
         "| N/A   35C    P8    26W / 70W  |     55MiB / 15360MiB |      0%      Default |\n"
         "+-------------------------------+----------------------+----------------------+\n"
         "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X "
         "\tSYS\t0-7,16-23\t0\nGPU1\tSYS\t X \t8-15\t1\n\n"
         "$ nvidia-smi --query-gpu=index,name,clocks.max.sm --format=csv\nindex, name, "
         "clocks.max.sm [MHz]\n0, Tesla T4, 1590 MHz\n1, Tesla T4, 1590 MHz\n",
         "gpus 2; pair gpu0 gpu1 SYS; numa gpu1 1; memory gpu0 15360; pci gpu1 0000:5e:00.0; "
         "fact gpu0 ecc_uncorrected_count 3; fact gpu1 sm_max_clock_hz 1590 MHz; findings 0"},
        {"GPU 0: NVIDIA L4 (UUID: GPU-1234abcd-0000-0000-0000-000000000001)\nGPU 1: NVIDIA L4 "
         "(UUID: "
         "GPU-1234abcd-0000-0000-0000-000000000002)\n\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X "
         "\n",
         "gpus 2; model gpu1 NVIDIA L4; pair gpu0 gpu1 PHB; findings 0"},
        {"GPU 0: NVIDIA L4 (UUID: GPU-1234abcd-0000-0000-0000-000000000001)\nGPU0\t X \tPHB\n",
         "gpus 1; model gpu0 NVIDIA L4; finding part-refused; says line of names"},
        {"====NVSMI LOG====\n\nname, pci.bus_id\n", "refused no section of a GPU"},
    };

    check(rows, sizeof rows / sizeof *rows);
}

/* Cut anywhere, a file of each kind is read or refused, and what is read can be handed on. */
Test(topo_read_smi_forms, every_cut_is_read_or_refused, .timeout = 110)
{
    static const struct {
        const char *file;
        size_t step;
    } rows[] = {
        {"topom/b200x8-10nic-ansi.txt", 1},
        {"topom/dlperf-mixed-tabs.txt", 1},
        {"topom/gb200x4-8nic.txt", 1},
        {"topom/h100-p2p-status-book.txt", 1},
        {"topom/rtx6000pro-x8-numa-suffix.txt", 1},
        {"nvlink/a100x8-status.txt", 1},
        {"nvlink/azhpc-v100-2links-inactive.txt", 1},
        {"smi/a100-remapped-row-pending-q.txt", 1},
        {"smi/capture-h100-mig-q.txt", 37},
        {"smi/capture-h200-query.csv", 23},
        {"smi/smi-550-table.txt", 7},
        {"smi/telegraf-t4.xml", 41},
        {"smi/h100-query-vbios.csv", 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[1024], *data;
        size_t length, read = 0;

        snprintf(path, sizeof path, "%s/tests/field/%s", NW_SOURCE_DIR, rows[i].file);
        cr_assert_eq(nw_file_read(path, 1 << 24, &data, &length), NW_OK);
        for (size_t at = 1; at < length + rows[i].step; at += rows[i].step) {
            const size_t cut = at < length ? at : length;
            char *part = malloc(cut); /* of exactly its size, for the sanitizer */
            struct nw_topo *topo = NULL;
            nw_rc rc;

            cr_assert_not_null(part);
            memcpy(part, data, cut);
            rc = nw_topo_read_data(part, cut, "cut", &topo);
            cr_expect(rc == NW_OK || rc == NW_EUSAGE, "%s cut at %zu", rows[i].file, cut);
            read += rc == NW_OK;
            nw_topo_free(topo);
            free(part);
        }
        cr_expect(read > 0, "%s: no cut was read", rows[i].file);
        free(data);
    }
}
