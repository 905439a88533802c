/* The table for people: fits a screen, says what is missing. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/topo_text.h"
#include "tests/unit/topo_machines.h"

static char *text_of(const char *path)
{
    struct nw_topo *topo;
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_assert_not_null(stream);
    cr_assert_eq(nw_topo_read_file(path, &topo), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(nw_report_topo(stream, topo), NW_OK, "%s", nw_last_error()->text);
    fclose(stream);
    nw_topo_free(topo);
    return text;
}

/* Characters, not bytes: the tree and the dash are UTF-8. */
static int width_of(const char *line, size_t length)
{
    int width = 0;

    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)line[i] & 0xc0) != 0x80;
    return width;
}

Test(topo_text, every_machine_fits_100_columns)
{
    for (int i = 0; i < MACHINE_COUNT; i++) {
        char path[1024], *text;
        int number = 0;

        if (!machine_path(all_machines[i], path, sizeof path))
            continue;
        text = text_of(path);
        for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
            const size_t length = strcspn(line, "\n");

            number++;
            if (strncmp(line, "source: ", 8) != 0) /* a path is not broken */
                cr_expect_leq(width_of(line, length), 100, "%s: line %d has %d columns: %.*s",
                              all_machines[i], number, width_of(line, length), (int)length, line);
        }
        free(text);
    }
}

Test(topo_text, the_tree_of_an_8_gpu_machine_fits_one_screen)
{
    char path[1024], *text;
    int lines = 0;

    cr_assert(machine_path("hgx-8gpu-hwloc2.xml", path, sizeof path));
    text = text_of(path);
    for (const char *at = text, *paths = strstr(text, "what joins them, as"); *at != '\0'; at++) {
        lines += *at == '\n';
        if (at == paths)
            cr_expect_leq(lines, 50, "%d lines before the paths", lines);
    }
    cr_expect_leq(lines, 90, "%d lines", lines);
    free(text);
}

Test(topo_text, what_matters_is_said)
{
    static const struct {
        const char *file, *words; /* split at '|' */
    } rows[] = {
        {"hgx-8gpu-hwloc2.xml",
         "8 GPUs (8 × NVIDIA H100 80GB HBM3), 8 NICs, 1 disk|450 GB/s one way (18 links)|gpu7: "
         "mlx5_7 "
         "(PIX)|2 packages, 8 cores, 16 hardware threads, 2 NUMA nodes, 2 TiB|4 devices"},
        {"sandy-noio.xml", "unknown, the source does not tell|not in this file"},
        {"jetson-xavier.xml", "unknown, the source does not tell"},
        {"coral-ea-4xp100-hwloc1.xml", "no word on NVLink|unknown"},
        {"coral-lassen-4xv100-hwloc2.xml", "160 of 176 hardware threads"},
        {"rocm-tioga-mi250x.xml", "no NVIDIA GPU|XGMI|16 devices"},
        {"misc-libxml2-topo.xml", "iWARP|persistent memory|0 GPUs"},
        {"lenovo-sd665n-4xh200-nvml.xml", "every pair of gpu0 to gpu3 has 150 GB/s|port down"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[1024], words[512], *rest = words, *word, *text;

        if (!machine_path(rows[i].file, path, sizeof path))
            continue;
        text = text_of(path);
        snprintf(words, sizeof words, "%s", rows[i].words);
        while ((word = strsep(&rest, "|")) != NULL)
            cr_expect(strstr(text, word) != NULL, "%s: no \"%s\" in\n%s", rows[i].file, word, text);
        if (strstr(rows[i].words, "unknown, the source") != NULL)
            cr_expect(strstr(text, "0 GPUs") == NULL, "%s claims 0 GPUs", rows[i].file);
        free(text);
    }
}

/* A machine whose NVLinks differ gets a matrix, and its weak GPU is named. */
Test(topo_text, uneven_nvlinks_are_shown_pair_by_pair)
{
    static const char xml[] =
        "<topology version=\"2.0\"><object type=\"Machine\"><info name=\"hwlocVersion\" "
        "value=\"2.9.0\"/>"
        "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:20b0]\">"
        "<object type=\"OSDev\" name=\"nvml0\" osdev_type=\"1\" gp_index=\"11\"/></object>"
        "<object type=\"PCIDev\" pci_busid=\"0000:02:00.0\" pci_type=\"0302 [10de:20b0]\">"
        "<object type=\"OSDev\" name=\"nvml1\" osdev_type=\"1\" gp_index=\"12\"/></object>"
        "<object type=\"PCIDev\" pci_busid=\"0000:03:00.0\" pci_type=\"0302 [10de:20b0]\">"
        "<object type=\"OSDev\" name=\"nvml2\" osdev_type=\"1\" gp_index=\"13\"/></object>"
        "</object><distances2 type=\"OSDev\" nbobjs=\"3\" name=\"NVLinkBandwidth\" indexing=\"gp\">"
        "<indexes>11 12 13</indexes>"
        "<u64values>1000000 100000 50000 100000 1000000 0 50000 0 1000000</u64values>"
        "</distances2></topology>";
    struct nw_topo *topo;
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_assert_eq(nw_topo_read_data(xml, sizeof xml - 1, "m.xml", &topo), NW_OK, "%s",
                 nw_last_error()->text);
    cr_assert_eq(topo->link_count, 2);
    cr_expect_eq(topo->links[0].lane_count, 4);
    cr_expect_eq(topo->links[1].lane_count, 2);
    cr_expect_eq(nw_report_topo(stream, topo), NW_OK);
    fclose(stream);
    cr_expect(strstr(text, "GB/s one way") != NULL && strstr(text, "–") != NULL, "%s", text);
    cr_expect(strstr(text, "fewer NVLinks than their neighbours have: gpu1, gpu2") != NULL, "%s",
              text);
    free(text);
    nw_topo_free(topo);
}
