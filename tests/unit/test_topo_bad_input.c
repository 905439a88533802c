/* No file makes the reader crash, hang, print or eat memory; what is wrong is said with its line.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/io.h"
#include "tests/unit/topo_machines.h"
#include "topo/topo.h"

#define XML  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define OPEN XML "<topology version=\"2.0\">\n<object type=\"Machine\">\n"
#define DONE "</object>\n</topology>\n"

Test(topo_bad_input, is_refused_with_a_reason)
{
    static const struct {
        const char *text;
        const char *in_error; /* words split at '|' */
    } rows[] = {
        {"", "empty"},
        {" \n\t ", "empty"},
        {"\xef\xbb\xbf", "empty"},
        {"\x7f\x45LF\x02", "no known format"},
        {"\xff\xfe<\x01t\x01", "no known format"},
        {"GPU0 GPU1", "no known format"},
        {"<", "not well-formed"},
        {XML "<topology version=\"2.0\">", "not well-formed"},
        {XML "<topology version=\"2.0\"/>", "without a Machine"},
        {XML "<html><body/></html>", "<html>|hwloc XML"},
        {XML "<topology version=\"4.0\"/>", "version 4.0|1, 2 and 3"},
        {XML "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\"/></system>",
         "NCCL topology file|without a device"},
        {XML "<system version=\"2\"><group><cpu numaid=\"3\"/></group></system>", "<group>|Hygon"},
        {XML "<graphs version=\"1\"/>", "a graph, not a topology"},
        {XML "<!DOCTYPE t [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<topology>&b;</topology>",
         "entities"},
        {XML "<topology version=\"2.0\">\n<object type=\"PU\"/>\n</topology>",
         "m.xml:3|PU|Machine"},
        {OPEN "</object>\n<object type=\"Machine\"/>\n</topology>\n", "m.xml:5|second machine"},
        {OPEN "<support><object type=\"PU\"/></support>\n" DONE, "object inside an element"},
        {OPEN "<object type=\"PCIDev\" pci_busid=\"zz\"/>\n" DONE, "m.xml:4|pci_busid|zz"},
        {OPEN "<object type=\"PCIDev\" pci_busid=\"0000:00:20.0\"/>\n" DONE,
         "pci_busid|PCI address"},
        {OPEN "<object type=\"PCIDev\" pci_busid=\"0000:00:00.0 \"/>\n" DONE, "pci_busid"},
        {OPEN "<object type=\"PCIDev\" pci_type=\"display\"/>\n" DONE, "pci_type|display"},
        {OPEN "<object type=\"PCIDev\" pci_type=\"-302 [10de:2330]\"/>\n" DONE, "pci_type|-302"},
        {OPEN "<object type=\"PCIDev\" pci_type=\"0302 [0x10:2330]\"/>\n" DONE, "pci_type|0x10"},
        {OPEN "<object type=\"PCIDev\" pci_busid=\"-1:00:00.0\"/>\n" DONE, "pci_busid|-1:"},
        {OPEN "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[-1-05]\"/>\n" DONE,
         "bridge_pci|[-1-05]"},
        {OPEN "<object type=\"PCIDev\" pci_link_speed=\"-1\"/>\n" DONE, "pci_link_speed|-1"},
        {OPEN "<object type=\"PCIDev\" pci_link_speed=\"nan\"/>\n" DONE, "pci_link_speed|nan"},
        {OPEN "<object type=\"PCIDev\" pci_link_speed=\"1e400\"/>\n" DONE, "pci_link_speed|1e400"},
        {OPEN "<object type=\"OSDev\" osdev_type=\"GPU\"/>\n" DONE, "osdev_type|GPU"},
        {OPEN "<object type=\"NUMANode\" local_memory=\"-1\"/>\n" DONE, "local_memory|-1"},
        {OPEN "<object type=\"NUMANode\" local_memory=\"18446744073709551616\"/>\n" DONE,
         "local_memory"},
        {OPEN "<object type=\"NUMANode\" os_index=\"1x\"/>\n" DONE, "os_index|1x"},
        {OPEN "<object type=\"NUMANode\" nodeset=\"all\"/>\n" DONE, "nodeset|all"},
        {OPEN "<object type=\"NUMANode\" nodeset=\",0x1\"/>\n" DONE, "m.xml:4|nodeset|,0x1"},
        {OPEN "<object type=\"NUMANode\" nodeset=\"0x1,\"/>\n" DONE, "nodeset"},
        {OPEN "<object type=\"NUMANode\" cpuset=\"0x123456789\"/>\n" DONE, "cpuset|bitmap"},
        {OPEN "<object type=\"NUMANode\" cpuset=\"\"/>\n" DONE, "cpuset"},
        {OPEN "<object type=\"Bridge\" bridge_type=\"2-1\"/>\n" DONE, "bridge_type|2-1"},
        {OPEN
         "</object><distances2 type=\"OSDev\" nbobjs=\"0\" name=\"NVLinkBandwidth\"/></topology>",
         "nbobjs"},
        {OPEN "</object><distances2 type=\"OSDev\" nbobjs=\"99999999999\" "
              "name=\"NVLinkBandwidth\"/></topology>",
         "nbobjs"},
        {OPEN
         "</object><distances2 type=\"OSDev\" nbobjs=\"2\" name=\"NVLinkBandwidth\"><indexes>1 2 "
         "3</indexes></distances2></topology>",
         "indexes"},
        {OPEN
         "</object><distances2 type=\"OSDev\" nbobjs=\"2\" name=\"NVLinkBandwidth\"><indexes>1 2"
         "</indexes><u64values>1 2 3</u64values></distances2></topology>",
         "2 indexes and 3 values"},
        {OPEN
         "</object><distances2 type=\"OSDev\" nbobjs=\"2\" name=\"NVLinkBandwidth\"/></topology>",
         "0 indexes"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = NULL;
        char words[256], *rest = words, *word;

        cr_expect_eq(nw_topo_read_data(rows[i].text, strlen(rows[i].text), "m.xml", &topo),
                     NW_EUSAGE, "row %zu was accepted: %s", i, rows[i].text);
        cr_expect_null(topo);
        snprintf(words, sizeof words, "m.xml|%s", rows[i].in_error);
        while ((word = strsep(&rest, "|")) != NULL)
            cr_expect(strstr(nw_last_error()->text, word) != NULL, "row %zu: no \"%s\" in: %s", i,
                      word, nw_last_error()->text);
    }
}

/* Every cut of a real file is refused; every flipped or zeroed byte is refused or read. */
Test(topo_bad_input, torn_and_damaged_exports, .timeout = 110)
{
    static const char *const files[] = {"hgx-8gpu-hwloc2.xml", "sandy-3gpu-1ib-wholeio.xml"};

    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[1024], *data;
        size_t length;

        cr_assert(machine_path(files[f], path, sizeof path));
        cr_assert_eq(nw_file_read(path, 1 << 24, &data, &length), NW_OK);
        for (size_t cut = 0; cut + 12 < length; cut += 97) {
            struct nw_topo *topo = NULL;

            cr_expect_eq(nw_topo_read_data(data, cut, "cut", &topo), NW_EUSAGE, "cut at %zu", cut);
        }
        for (size_t at = 0; at < length; at += 61) {
            const char before = data[at];

            for (int damage = 0; damage < 3; damage++) {
                struct nw_topo *topo = NULL;

                data[at] = (char)(damage == 0 ? 0 : damage == 1 ? before ^ 0x15 : '9');
                if (nw_topo_read_data(data, length, "damaged", &topo) == NW_OK)
                    nw_topo_free(topo);
                else
                    cr_expect_null(topo);
            }
            data[at] = before;
        }
        free(data);
    }
}

static char *repeated(const char *head, const char *part, size_t count, const char *tail,
                      size_t *length_out)
{
    char *text = malloc(strlen(head) + strlen(part) * count + strlen(tail) + 1), *at = text;

    at = stpcpy(at, head);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, part);
    at = stpcpy(at, tail);
    *length_out = (size_t)(at - text);
    return text;
}

/* Of this process: others may keep the machine busy. */
static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Large and deep: refused within seconds and within 200 MB. */
Test(topo_bad_input, large_and_deep_files_are_bounded, .timeout = 110)
{
    static const struct {
        const char *head, *part;
        size_t count;
        const char *tail;
    } rows[] = {
        {OPEN, "<object type=\"PU\"/>", 1000000, DONE},
        {OPEN, "<object type=\"NUMANode\" os_index=\"1\"/>", 90000, DONE},
        {OPEN, "<object type=\"Package\"/>", 90000, DONE},
        {OPEN, "<object type=\"PCIDev\" pci_type=\"0302 [10de:2330]\"/>", 90000, DONE},
        {OPEN, "<object type=\"Group\">", 5000, ""},
        {OPEN, "<object type=\"Group\">", 200, ""},
        {XML "<topology version=\"2.0\">", "<x>", 100000, ""},
        {"{", "\"a\":{", 100000, ""},
        {"{\"a\":", "[", 1000000, ""},
        {"{\"a\":\"", "0123456789", 4000000, "\"}"},
        {XML "<topology version=\"2.0\" x=\"", "0123456789", 4000000, "\"/>"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = NULL;
        size_t length;
        char *text = repeated(rows[i].head, rows[i].part, rows[i].count, rows[i].tail, &length);
        const double start = cpu_seconds();

        cr_expect_eq(nw_topo_read_data(text, length, "large", &topo), NW_EUSAGE, "row %zu", i);
        cr_expect_lt(cpu_seconds() - start, 5, "row %zu took %.1f s", i, cpu_seconds() - start);
        free(text);
    }
#ifndef __SANITIZE_ADDRESS__
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    cr_expect_lt(usage.ru_maxrss, 200 * 1024, "%ld KiB", usage.ru_maxrss);
#endif
}

/* Terminals obey control characters: none comes through. */
Test(topo_bad_input, control_characters_and_torn_utf8_are_replaced)
{
    static const char text[] =
        OPEN "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:2330]\">"
             "<object type=\"OSDev\" osdev_type=\"1\" name=\"nvml0&#x9;&#x85;x\">"
             "<info name=\"GPUModel\" value=\"A&amp;B &lt;C&gt; "
             "&#x9b;31mred\"/></object></object>\n" DONE;
    const struct nw_topo_node *gpu;
    struct nw_topo *topo;

    cr_assert_eq(nw_topo_read_data(text, sizeof text - 1, "m.xml", &topo), NW_OK, "%s",
                 nw_last_error()->text);
    gpu = nw_topo_nth(topo, NW_NODE_GPU, 0);
    cr_assert_not_null(gpu);
    cr_expect_str_eq(gpu->model, "A&B <C> ??31mred", "%s", gpu->model);
    cr_expect_str_eq(gpu->os_names, "nvml0 ??x", "%s", gpu->os_names);
    nw_topo_free(topo);
}

/* Empty lines before the data are lines of the file, too. */
Test(topo_bad_input, lines_are_counted_from_the_beginning_of_the_file)
{
    static const struct {
        const char *text, *in_error;
    } rows[] = {
        {"{\"nodes\": ]}", "text:1:"},
        {"\n \n\r\n{\"nodes\": ]}", "text:4:"},
        {"\xef\xbb\xbf\n{\"nodes\":\n]}", "text:3:"},
        {"Option -m is missing its value\n", "text:1:"},
        {"\n\n\nOption -m is missing its value\n", "text:4:"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = NULL;

        cr_expect_eq(nw_topo_read_data(rows[i].text, strlen(rows[i].text), "text", &topo),
                     NW_EUSAGE, "%zu", i);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].in_error), "%zu: %s", i,
                           nw_last_error()->text);
    }
}

/* Each line another device: the end comes by number, not by patience. */
Test(topo_bad_input, texts_of_endless_devices_end_early, .timeout = 30)
{
    static const struct {
        const char *line; /* of domain, bus, device */
        const char *in_error;
    } rows[] = {
        {"[ 1.0] NVRM: Xid (PCI:%04x:%02x:%02x): 79, GPU has fallen off the bus.\n",
         "text: more than 4096 devices"},
        {"%04x:%02x:%02x.0 3D controller: NVIDIA Corporation GH100 (rev a1)\n",
         "text: more than 8192 PCI devices"},
        {"CA 'mlx5_%x_%x_%x'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n",
         "text: more than 2048 devices and ports"},
        {"link mlx5_%x_%x_%x/1 state ACTIVE physical_state LINK_UP\n",
         "text: more than 2048 devices and ports"},
    };
    enum { LINES = 20000, LINE_SIZE = 128 };
    char *text = malloc((size_t)LINES * LINE_SIZE);

    cr_assert_not_null(text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nw_topo *topo = NULL;
        size_t length = 0;

        for (unsigned n = 0; n < LINES; n++)
            length += (size_t)snprintf(text + length, LINE_SIZE, rows[i].line, n >> 13,
                                       n >> 5 & 0xff, n & 0x1f);
        cr_expect_eq(nw_topo_read_data(text, length, "text", &topo), NW_EUSAGE, "%zu", i);
        cr_expect_not_null(strstr(nw_last_error()->text, rows[i].in_error), "%zu: %s", i,
                           nw_last_error()->text);
    }
    free(text);
}
