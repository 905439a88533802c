#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/quote.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static nw_rc parse(const char *text, struct nw_quote *quote)
{
    return nw_quote_parse(text, strlen(text), "vendor.ini", quote);
}

static char *template_text(void)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    cr_assert_eq(nw_quote_template(stream), NW_OK);
    fclose(stream);
    return text;
}

Test(results_quote, a_whole_quote_is_read_into_base_units)
{
    static const char text[] = "\xEF\xBB\xBF# an offer\r\n"
                               "[quote]\r\n"
                               "vendor = 示例云 \"A\" ; the second offer\r\n"
                               "  date = 2026-11-30\r\n"
                               "note = rack #5\r\n"
                               "[cluster]\r\n"
                               "nodes=2\r\n"
                               "\r\n"
                               "[gpu]\r\n"
                               "model = H100 SXM\r\n"
                               "\tcount = 8\r\n"
                               "memory_GiB = 80\r\n"
                               "nvlink_GBps = 900 # as on the product page\r\n"
                               "nvlink_is = Bidirectional\r\n"
                               "pcie_gen = 5\r\n"
                               "pcie_width = 16\r\n"
                               "[network]\r\n"
                               "nic_count = 8\r\n"
                               "nic_gbps = 400\r\n"
                               "rdma = yes\r\n"
                               "kind = InfiniBand\r\n"
                               "[price]\r\n"
                               "currency = CNY\r\n"
                               "per_node_month = 400000\r\n"
                               "network_extra = 0\r\n"
                               "storage_extra = 7305";
    struct nw_quote quote;

    cr_assert_eq(parse(text, &quote), NW_OK, "%s", nw_last_error()->text);
    cr_expect_str_eq(quote.vendor, "示例云 \"A\"");
    cr_expect_str_eq(quote.date, "2026-11-30");
    cr_expect_str_eq(quote.note, "rack #5", "a free text keeps its #");
    cr_expect_eq(quote.node_count, 2);
    cr_expect_eq(quote.gpu_count, 8);
    cr_expect_float_eq(quote.gpu_memory_bytes, 80 * 1073741824.0, 0);
    cr_expect_float_eq(quote.nvlink_quoted_bytes_per_s, 900e9, 0);
    cr_expect_float_eq(quote.nvlink_one_way_bytes_per_s, 450e9, 0);
    cr_expect_str_eq(quote.nvlink_is, "bidirectional");
    cr_expect_float_eq(quote.nic_bytes_per_s, 50e9, 0);
    cr_expect_eq(quote.has_rdma, 1);
    cr_expect_str_eq(quote.network_kind, "infiniband");
    cr_expect_float_eq(quote.network_extra_per_month, 0, 0, "an extra of 0 is an offer");
    cr_expect_float_eq(nw_quote_node_hour(&quote), 400000 / 730.5, 1e-9);
    cr_expect_float_eq(nw_quote_extra_hour(&quote), 10, 1e-9);
    cr_expect_eq(nw_quote_line(&quote, "gpu", "nvlink_GBps"), 13);

    /* What was not quoted is unknown, never 0. */
    cr_expect_eq(quote.core_count, 0);
    cr_expect(isnan(quote.ram_bytes) && isnan(quote.nvme_bytes) &&
              isnan(quote.price_per_node_hour));
    cr_expect_eq(nw_quote_line(&quote, "cpu", "cores"), 0);
}

Test(results_quote, one_way_is_not_halved_and_gpu_prices_make_node_prices)
{
    struct nw_quote quote;

    cr_assert_eq(parse("[gpu]\nnvlink_GBps=450\nnvlink_is=one-way\ncount=8\n[price]\ncurrency=CNY\n"
                       "per_gpu_hour=100\n",
                       &quote),
                 NW_OK);
    cr_expect_float_eq(quote.nvlink_one_way_bytes_per_s, 450e9, 0);
    cr_expect_float_eq(nw_quote_node_hour(&quote), 800, 0);
    cr_assert_eq(parse("[network]\nrdma = off\n", &quote), NW_OK);
    cr_expect_eq(quote.has_rdma, 0);
    cr_expect(isnan(nw_quote_node_hour(&quote)));
}

Test(results_quote, bad_files_name_line_key_and_what_is_accepted)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "vendor.ini: is empty"},
        {"# only\n[gpu]\n", "no key is set"},
        {"\n\n[gpu]\n\nnvlnk_gbps = 900\n",
         "vendor.ini:5: unknown key \"nvlnk_gbps\" in [gpu]; did you mean \"nvlink_GBps\"? "
         "Accepted: model, count, memory_GiB, nvlink_GBps, nvlink_is, pcie_gen, pcie_width"},
        {"[gpu]\nxyzzy = 1\n", "vendor.ini:2: unknown key \"xyzzy\" in [gpu]. Accepted: model"},
        {"[gpus]\ncount = 8\n",
         "vendor.ini:1: unknown section \"gpus\"; did you mean \"gpu\"? "
         "Accepted: quote, cluster, gpu, network, cpu, disk, software, price"},
        {"[gpu]\n[]\n", "vendor.ini:2: unknown section \"\""},
        {"count = 8\n", "vendor.ini:1: \"count\" stands outside a section"},
        {"[gpu]\ncount = 8\ncount = 8\n", "vendor.ini:3: \"count\" in [gpu] is given a second "
                                          "time; first in line 2"},
        {"[gpu]\ncount = 8\n[cpu]\ncores=1\n[gpu]\ncount = 4\n", "vendor.ini:6: \"count\""},
        {"[gpu]\nmemory_GiB = nan\n", "vendor.ini:2: memory_GiB in [gpu]: \"nan\""},
        {"[gpu]\nmemory_GiB = inf\n", "accepted: a number from 0.1 to 100000 (GiB)"},
        {"[gpu]\nmemory_GiB = 1e400\n", "\"1e400\" is out of range"},
        {"[gpu]\nmemory_GiB = -80\n", "\"-80\" is out of range"},
        {"[gpu]\nmemory_GiB = 80GiB\n", "\"80GiB\" is not a number"},
        {"[gpu]\ncount = 8.5\n", "\"8.5\" is not a whole number; accepted: 1 to 1024"},
        {"[gpu]\ncount = 0\n", "out of range"},
        {"[gpu]\ncount = 99999999999999999999999\n", "out of range"},
        {"[gpu]\ncount =\n", "vendor.ini:2: count in [gpu]: nothing stands behind"},
        {"[gpu]\ncount = # eight\n", "nothing stands behind"},
        {"[gpu]\nmodel =\n", "nothing stands behind"},
        {"[gpu]\ncount\n", "vendor.ini:2: \"count\" is neither"},
        {"[gpu\ncount = 8\n", "vendor.ini:1: a section line"},
        {"[gpu] count = 8\n", "vendor.ini:1: a section line"},
        {"[gpu]\nnvlink_GBps = 900\n",
         "vendor.ini:2: \"nvlink_GBps\" in [gpu] needs \"nvlink_is\""},
        {"[gpu]\nnvlink_is = one-way\n", "needs \"nvlink_GBps\""},
        {"[gpu]\nnvlink_GBps = 900\nnvlink_is = both\n",
         "vendor.ini:3: nvlink_is in [gpu]: \"both\" is not known; accepted: one-way, "
         "bidirectional"},
        {"[gpu]\npcie_gen = 5\npcie_width = 3\n", "vendor.ini:3: pcie_width in [gpu]: there is no "
                                                  "PCIe x3"},
        {"[gpu]\npcie_width = 16\n", "needs \"pcie_gen\""},
        {"[gpu]\npcie_gen = 9\n", "accepted: a whole number from 1 to 6"},
        {"[network]\nrdma = perhaps\n", "accepted: yes, no"},
        {"[price]\nper_node_hour = 5\n", "needs \"currency\""},
        {"[price]\ncurrency = CNY\nper_node_hour = 0\n", "out of range"},
        {"[gpu]\nmodel = caf\xE9\n", "vendor.ini:2: byte 0xE9 is not UTF-8"},
        {"[gpu]\nmodel = a\x01"
         "b\n",
         "vendor.ini:2: byte 0x01"},
        {"\x7F"
         "ELF\x02\x01",
         "vendor.ini:1: byte 0x7F: this is no text file"},
        {"[gpu]\rcount = 8\r", "vendor.ini:1: a carriage return"},
        {"[price]\ncurrency = a currency with a long name\n", "at most 15"},
    };
    struct nw_quote quote = {.gpu_count = 77};

    for (size_t i = 0; i < COUNT(rows); i++) {
        cr_expect_eq(parse(rows[i].text, &quote), NW_EUSAGE, "taken: %s", rows[i].text);
        cr_expect(strstr(nw_last_error()->text, rows[i].says) != NULL, "%s\n said: %s",
                  rows[i].text, nw_last_error()->text);
    }
    cr_expect_eq(quote.gpu_count, 77, "the out value is untouched");
    cr_expect_eq(nw_rc_exit_code(NW_EUSAGE), 2);
    cr_expect_eq(nw_quote_parse("[gpu]\ncount = 8\0\n", 17, "v", &quote), NW_EUSAGE, "a NUL");
}

Test(results_quote, a_line_too_long_is_refused_and_the_longest_is_read_whole)
{
    char text[600];
    struct nw_quote quote;

    for (size_t length = 100; length < 400; length++) {
        const int head = snprintf(text, sizeof text, "[quote]\nnote = ");

        memset(text + head, 'x', length);
        text[(size_t)head + length] = '\0';
        const nw_rc rc = parse(text, &quote);

        if (rc == NW_OK)
            cr_expect_eq(strlen(quote.note), length, "cut at %zu", length);
        else
            cr_expect(length > 150 && strstr(nw_last_error()->text, "vendor.ini:2: the line has"),
                      "%zu: %s", length, nw_last_error()->text);
        cr_expect(length < 400 && (rc == NW_OK || length > 180));
    }
}

Test(results_quote, the_template_says_nothing_until_a_line_is_uncommented)
{
    char *text = template_text();
    struct nw_quote quote;

    cr_expect_eq(parse(text, &quote), NW_EUSAGE);
    cr_expect(strstr(nw_last_error()->text, "no key is set") != NULL, "%s", nw_last_error()->text);
    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (line[0] == '#' && line[1] != ' ')
            line[0] = ' ';
    }
    cr_assert_eq(parse(text, &quote), NW_OK, "%s\n%s", nw_last_error()->text, text);
    for (size_t i = 0; i < nw_quote_row_count; i++)
        cr_expect_gt(quote.lines[i], 0, "%s is not in the template", nw_quote_rows[i].key);
    cr_expect_eq(quote.gpu_count, 8);
    free(text);
}

Test(results_quote, json_has_units_in_its_keys_and_only_what_was_quoted)
{
    struct nw_quote quote;
    json_t *json;

    cr_assert_eq(parse("[gpu]\ncount=8\nnvlink_GBps=900\nnvlink_is=bidirectional\n", &quote),
                 NW_OK);
    cr_assert_eq(nw_quote_to_json(&quote, &json), NW_OK);
    cr_expect_eq(json_object_size(json), 4);
    cr_expect_eq(json_integer_value(json_object_get(json, "gpu_count")), 8);
    cr_expect_float_eq(json_real_value(json_object_get(json, "nvlink_one_way_bytes_per_s")), 450e9,
                       0);
    json_decref(json);
}

Test(results_quote, files_are_read_and_what_cannot_be_read_is_said)
{
    char path[] = "/tmp/nw-test-quote-XXXXXX"; /* the same test may run in two builds at a time */
    FILE *file = fdopen(mkstemp(path), "w");
    struct nw_quote quote;

    cr_assert_not_null(file);
    fputs("[cluster]\nnodes = 2\n", file);
    fclose(file);
    cr_expect_eq(nw_quote_read(path, &quote), NW_OK);
    cr_expect_eq(quote.node_count, 2);
    cr_expect_str_eq(quote.path, path);
    unlink(path);
    cr_expect_eq(nw_quote_read(path, &quote), NW_EIO);
    cr_expect_eq(nw_quote_read("/tmp", &quote), NW_EUSAGE);
    cr_expect_eq(nw_quote_read("/dev/zero", &quote), NW_EUSAGE);
}
