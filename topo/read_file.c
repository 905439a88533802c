/* A file: own JSON or hwloc XML, by its first character. */
#include "topo/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "topo/read_ib.h"
#include "topo/read_kernel_log.h"
#include "topo/read_lspci.h"
#include "topo/read_sysfs_dump.h"
#include "topo/read_smi.h"

/* hwloc notes the control group it ran in; whether that hid anything can't be told from the file.
 */
static nw_rc judge_group(const struct nw_raw *raw, struct nw_topo *topo)
{
    const char *group = nw_raw_info(raw, 0, "LinuxCgroup");

    if (group == NULL || strcmp(group, "/") == 0 || strncmp(group, "/user.slice", 11) == 0)
        return NW_OK;
    return nw_findings_add(&topo->findings, NW_FINDING_INFO, "written-in-job", topo->host,
                           "if cores or memory are missing, export again outside the job",
                           "was written inside the control group %.80s: cores and memory that it "
                           "may not use could be left out",
                           group);
}

static nw_rc judge(const struct nw_raw *raw, struct nw_topo *topo)
{
    nw_topo_clean(topo);
    NW_TRY(nw_topo_judge(topo));
    return judge_group(raw, topo);
}

static nw_rc read_xml(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    struct nw_topo *topo = NULL;
    struct nw_raw raw;
    nw_rc rc;

    nw_raw_init(&raw);
    rc = nw_raw_from_xml(data, length, what, &raw);
    if (rc == NW_OK)
        rc = nw_topo_build(&raw, &topo);
    if (rc == NW_OK)
        rc = judge(&raw, topo);
    nw_raw_free(&raw);
    if (rc != NW_OK) {
        nw_topo_free(topo);
        return rc;
    }
    *topo_out = topo;
    return NW_OK;
}

static nw_rc read_json(const char *data, size_t length, const char *what, struct nw_topo **topo_out)
{
    json_error_t error;
    json_t *root = json_loadb(data, length, JSON_REJECT_DUPLICATES, &error);
    nw_rc rc;

    if (root == NULL)
        return nw_fail(NW_EUSAGE, "%s:%d:%d: not valid JSON: %s", what,
                       error.line > 0 ? error.line : 1, error.column > 0 ? error.column : 1,
                       error.text);
    rc = nw_topo_from_json(root, what, topo_out);
    json_decref(root);
    return rc;
}

/* The first character that is no blank. */
static char first_mark(const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r\n", data[i]) == NULL || data[i] == '\0')
            return data[i];
    return '\0';
}

static bool is_json(const char *data, size_t length)
{
    return first_mark(data, length) == '{';
}

/* Not "<6>[ 12.3]", a line of dmesg -r. */
static bool is_xml(const char *data, size_t length)
{
    const char *mark = memchr(data, '<', length);

    return first_mark(data, length) == '<' &&
           !(mark + 1 < data + length && mark[1] >= '0' && mark[1] <= '9');
}

/* The first that recognises the data reads it: special ones before general ones. */
const struct nw_topo_format nw_topo_formats[] = {
    {"sysfs", "JSON of /sys paths and contents", nw_is_sysfs_dump, nw_read_sysfs_dump},
    {"nodeworth", "JSON of nodeworth topo --save", is_json, read_json},
    {"nvidia-smi-xml", "nvidia-smi -q -x", nw_is_smi_xml, nw_read_smi_xml},
    {"nccl-topology", "NCCL's topology file (NCCL_TOPO_DUMP_FILE)", nw_nccl_xml_recognise,
     nw_nccl_xml_read},
    {"hwloc", "hwloc XML of version 1, 2 or 3 (lstopo FILE.xml)", is_xml, read_xml},
    {"nvidia-smi-several", "several outputs of nvidia-smi in one file", nw_is_smi_several,
     nw_read_smi_several},
    {"nvidia-smi-topo", "nvidia-smi topo -m, -mp, -p2p", nw_is_smi_topo, nw_read_smi_topo},
    {"nvidia-smi-q", "nvidia-smi -q", nw_is_smi_query, nw_read_smi_query},
    {"nvidia-smi-nvlink", "nvidia-smi nvlink -s, -e", nw_is_nvlink, nw_read_nvlink},
    {"nvidia-smi-L", "nvidia-smi -L", nw_is_smi_list, nw_read_smi_list},
    {"iblinkinfo", "iblinkinfo, ibnetdiscover", nw_is_ib_fabric, nw_read_ib_fabric},
    {"ibstat", "ibstat, ibstatus, ibv_devinfo, rdma link, ibdev2netdev, show_gids", nw_is_ib,
     nw_read_ib},
    {"lspci", "lspci -vvv", nw_is_lspci, nw_read_lspci},
    {"kernel-log", "dmesg, syslog", nw_is_kernel_log, nw_read_kernel_log},
    {"nvidia-smi-csv", "nvidia-smi --query-gpu=... --format=csv", nw_is_smi_csv, nw_read_smi_csv},
    {"nvidia-smi", "nvidia-smi", nw_is_smi_table, nw_read_smi_table},
    {NULL, NULL, NULL, NULL},
};

static nw_rc refuse(const char *what)
{
    char accepted[900] = "";

    for (const struct nw_topo_format *format = nw_topo_formats; format->name != NULL; format++) {
        const size_t length = strlen(accepted);

        snprintf(accepted + length, sizeof accepted - length, "%s%s", length > 0 ? "; " : "",
                 format->title);
    }
    return nw_fail(NW_EUSAGE, "%s: no known format. Accepted: %s", what, accepted);
}

/* Readers may count on a NUL behind the data; callers need not have one. `lines` empty ones come
 * before the data, so that errors tell the file's own numbers; an XML declaration must come first.
 */
static nw_rc read_known(const char *data, size_t length, size_t lines, const char *what,
                        struct nw_topo **topo_out)
{
    const struct nw_topo_format *format = nw_topo_formats;
    const size_t before = length >= 5 && memcmp(data, "<?xml", 5) == 0 ? 0 : lines;
    char *copy = malloc(before + length + 1);
    nw_rc rc;

    if (copy == NULL)
        return nw_fail(NW_ENOMEM, "%s: out of memory for its %zu bytes", what, length);
    memset(copy, '\n', before);
    memcpy(copy + before, data, length);
    copy[before + length] = '\0';
    while (format->name != NULL && !format->recognise(copy + before, length))
        format++;
    rc = format->name != NULL ? format->read(copy, before + length, what, topo_out) : refuse(what);
    free(copy);
    return rc;
}

nw_rc nw_topo_read_data(const char *data, size_t length, const char *what,
                        struct nw_topo **topo_out)
{
    static const char utf8_mark[] = "\xef\xbb\xbf";
    size_t lines = 0;

    if (nw_utf16_is(data, length)) {
        char *text;
        nw_rc rc;

        NW_TRY(nw_utf16_to_utf8(data, length, &text, &length));
        rc = nw_utf16_is(text, length) ? nw_fail(NW_EUSAGE, "%s: UTF-16 twice", what)
                                       : nw_topo_read_data(text, length, what, topo_out);
        free(text);
        return rc;
    }
    if (length >= 3 && memcmp(data, utf8_mark, 3) == 0) {
        data += 3;
        length -= 3;
    }
    while (length > 0 && strchr(" \t\r\n", data[0]) != NULL && data[0] != '\0') {
        lines += data[0] == '\n';
        data++;
        length--;
    }
    if (length == 0)
        return nw_fail(NW_EUSAGE, "%s: is empty", what);
    if (data[0] == '\0' || (length > 1 && data[1] == '\0'))
        return nw_fail(NW_EUSAGE,
                       "%s: UTF-16 without its mark, or no text; convert it with \"iconv -f "
                       "UTF-16LE -t UTF-8\" (or UTF-16BE)",
                       what);
    return read_known(data, length, lines, what, topo_out);
}

nw_rc nw_topo_read_file(const char *path, struct nw_topo **topo_out)
{
    char *data;
    size_t length;
    nw_rc rc;

    NW_TRY(nw_file_read(path, NW_TOPO_MAX_FILE_BYTES, &data, &length));
    rc =
        nw_topo_read_data(data, length, strcmp(path, "-") == 0 ? "standard input" : path, topo_out);
    free(data);
    return rc;
}
