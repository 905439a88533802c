/* Format: proc_pid_mountinfo(5). */
#include "topo/mounts.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/io.h"
#include "topo/system_text.h"

enum {
    MAX_BYTES = 16 << 20, /* a host of a thousand containers has some 10^4 mounts, 2 MB */
};

/* File systems of other hosts. A FUSE client with a name of its own is one unless listed below. */
static const struct {
    const char *type;
    bool parallel;
} shared_types[] = {
    {"nfs", false},          {"nfs4", false},          {"cifs", false},
    {"smb3", false},         {"smbfs", false},         {"9p", false},
    {"virtiofs", false},     {"afs", false},           {"lustre", true},
    {"gpfs", true},          {"mmfs", true},           {"beegfs", true},
    {"fhgfs", true},         {"ceph", true},           {"wekafs", true},
    {"panfs", true},         {"orangefs", true},       {"pvfs2", true},
    {"glusterfs", true},     {"gfs2", false},          {"ocfs2", false},
    {"vboxsf", false},       {"prl_fs", false},        {"yrfs", true},
    {"fuse.ceph", true},     {"fuse.cephfs", true},    {"fuse.dfuse", true},
    {"fuse.daos", true},     {"fuse.glusterfs", true}, {"fuse.juicefs", true},
    {"fuse.quobyte", true},  {"fuse.yrfs", true},      {"fuse.cpfs", true},
    {"alifuse", true},       {"fuse.moosefs", true},   {"fuse.mfs", true},
    {"fuse.lizardfs", true}, {"fuse.seaweedfs", true},
};

/* FUSE file systems that show this machine's own files. */
static const char *const local_fuse[] = {
    "fuse.lxcfs",      "fuse.portal",        "fuse.gvfsd-fuse",     "fuse.snapfuse",
    "fuse.squashfuse", "fuse.squashfuse_ll", "fuse.bindfs",         "fuse.mergerfs",
    "fuse.unionfs",    "fuse.ntfs-3g",       "fuse.fuse-overlayfs", "fuse.gocryptfs",
    "fuse.encfs",      "fuse.archivemount",  "fuse.zfs-fuse",       "fuse.fuseiso",
    "fuse.ntfs",       "fuse.exfat",         "fuse.appimage",       "fuse.rar2fs",
};

/* --- the table --- */

/* "\040" and its like to the character, in place. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
            from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

/* 36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue */
static bool parse_line(char *line, struct nw_mount *mount)
{
    char *fields[6], *after[3], *rest = strstr(line, " - ");

    if (rest == NULL)
        return false;
    *rest = '\0';
    rest += 3;
    for (size_t i = 0; i < 6; i++)
        if ((fields[i] = strsep(&line, " ")) == NULL)
            return false;
    for (size_t i = 0; i < 3; i++)
        if ((after[i] = strsep(&rest, " ")) == NULL)
            return false;
    if (sscanf(fields[0], "%9d", &mount->id) != 1 ||
        sscanf(fields[2], "%9u:%9u", &mount->major, &mount->minor) != 2)
        return false;
    unescape(fields[4]);
    unescape(after[1]);
    snprintf(mount->type, sizeof mount->type, "%s", after[0]);
    mount->point = strdup(fields[4]);
    mount->source = strdup(after[1]);
    if (asprintf(&mount->options, "%s,%s", fields[5], after[2]) < 0)
        mount->options = NULL;
    return true;
}

static void free_mount(struct nw_mount *mount)
{
    free(mount->point);
    free(mount->source);
    free(mount->options);
}

static nw_rc add_line(struct nw_mounts *mounts, size_t *capacity, char *line)
{
    struct nw_mount mount = {0};

    if (!parse_line(line, &mount))
        return NW_OK; /* a line that is none */
    if (mounts->count == *capacity) {
        const size_t wanted = *capacity > 0 ? 2 * *capacity : 64;
        struct nw_mount *items = realloc(mounts->items, wanted * sizeof *items);

        if (items == NULL) {
            free_mount(&mount);
            return nw_fail(NW_ENOMEM, "no memory for %zu mounts", wanted);
        }
        mounts->items = items;
        *capacity = wanted;
    }
    mounts->items[mounts->count++] = mount;
    if (mount.point == NULL || mount.source == NULL || mount.options == NULL)
        return nw_fail(NW_ENOMEM, "no memory for %zu mounts", mounts->count);
    return NW_OK;
}

nw_rc nw_mounts_parse(char *data, struct nw_mounts *mounts_out)
{
    struct nw_mounts mounts = {0};
    size_t capacity = 0;
    char *line;
    nw_rc rc = NW_OK;

    while (rc == NW_OK && (line = strsep(&data, "\n")) != NULL)
        rc = add_line(&mounts, &capacity, line);
    if (rc != NW_OK) {
        nw_mounts_free(&mounts);
        return rc;
    }
    *mounts_out = mounts;
    return NW_OK;
}

nw_rc nw_mounts_read(const char *root, struct nw_mounts *mounts_out)
{
    char path[PATH_MAX], *data;
    size_t length;
    nw_rc rc;

    if (snprintf(path, sizeof path, "%s/proc/self/mountinfo", root) >= (int)sizeof path)
        return nw_fail(NW_EUSAGE, "%.80s…: longer than a path may be", root);
    NW_TRY(nw_file_read(path, MAX_BYTES, &data, &length));
    rc = nw_mounts_parse(data, mounts_out);
    free(data);
    return rc;
}

void nw_mounts_free(struct nw_mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        free_mount(&mounts->items[i]);
    free(mounts->items);
    *mounts = (struct nw_mounts){0};
}

static bool is_below(const char *path, const char *point)
{
    const size_t length = strlen(point);

    if (strcmp(point, "/") == 0)
        return path[0] == '/';
    return strncmp(path, point, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

const struct nw_mount *nw_mounts_find(const struct nw_mounts *mounts, const char *path)
{
    const struct nw_mount *found = NULL;

    for (size_t i = 0; i < mounts->count; i++) {
        const struct nw_mount *mount = &mounts->items[i];

        if (is_below(path, mount->point) &&
            (found == NULL || strlen(mount->point) >= strlen(found->point)))
            found = mount;
    }
    return found;
}

bool nw_mount_has_option(const struct nw_mount *mount, const char *option)
{
    const size_t length = strlen(option);

    for (const char *at = mount->options; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, option, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* --- kinds --- */

static bool is_listed_local(const char *type)
{
    for (size_t i = 0; i < sizeof local_fuse / sizeof *local_fuse; i++)
        if (strcmp(local_fuse[i], type) == 0)
            return true;
    return false;
}

bool nw_mount_is_shared(const struct nw_mount *mount)
{
    for (size_t i = 0; i < sizeof shared_types / sizeof *shared_types; i++)
        if (strcmp(shared_types[i].type, mount->type) == 0)
            return true;
    return strncmp(mount->type, "fuse.", 5) == 0 && !is_listed_local(mount->type);
}

bool nw_mount_is_parallel(const struct nw_mount *mount)
{
    for (size_t i = 0; i < sizeof shared_types / sizeof *shared_types; i++)
        if (strcmp(shared_types[i].type, mount->type) == 0)
            return shared_types[i].parallel;
    return false;
}

static int compare_points(const void *a, const void *b)
{
    const struct nw_mount *const *left = a, *const *right = b;

    return strcmp((*left)->point, (*right)->point);
}

/* "type at /path" behind what is there; false, unchanged: no room with `reserve` bytes left. */
static bool append_mount(char *text, size_t size, size_t reserve, const struct nw_mount *mount)
{
    const size_t used = strlen(text);
    const int needed = snprintf(text + used, size - used, "%s%s at %s", used > 0 ? ", " : "",
                                mount->type, mount->point);

    if (needed >= 0 && used + (size_t)needed + reserve < size)
        return true;
    text[used] = '\0';
    return false;
}

void nw_mounts_shared_text(const struct nw_mounts *mounts, char *text, size_t size)
{
    const struct nw_mount **shared = calloc(mounts->count + 1, sizeof(*shared));
    size_t count = 0, told = 0;

    text[0] = '\0';
    for (size_t i = 0; i < mounts->count && shared != NULL; i++)
        if (nw_mount_is_shared(&mounts->items[i]) && /* not covered by a later one */
            nw_mounts_find(mounts, mounts->items[i].point) == &mounts->items[i])
            shared[count++] = &mounts->items[i];
    if (count > 1)
        qsort(shared, count, sizeof(*shared), compare_points);
    while (told < count &&
           append_mount(text, size, told + 1 < count ? sizeof ", and 99999 more" : 0, shared[told]))
        told++;
    if (told < count)
        snprintf(text + strlen(text), size - strlen(text), "%s%zu more", told > 0 ? ", and " : "",
                 count - told);
    free(shared);
}

/* --- the medium --- */

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The last part of what a link below root/sys points to. */
static bool link_name(char *name, size_t size, const char *root, const char *link)
{
    char path[PATH_MAX], target[PATH_MAX];
    const char *slash;

    if (snprintf(path, sizeof path, "%s%s", root, link) >= (int)sizeof path ||
        realpath(path, target) == NULL || (slash = strrchr(target, '/')) == NULL)
        return false;
    return snprintf(name, size, "%s", slash + 1) < (int)size;
}

/* The whole disk of a partition: its folder lies in the disk's. */
static bool disk_of(const char *root, const char *name, char *disk, size_t size)
{
    char link[PATH_MAX], path[PATH_MAX], *slash;

    snprintf(link, sizeof link, "%s/sys/class/block/%.60s", root, name);
    if (realpath(link, path) == NULL)
        return false;
    if (nw_system_exists("%s/partition", path)) {
        slash = strrchr(path, '/');
        *slash = '\0';
    }
    slash = strrchr(path, '/');
    return slash != NULL && snprintf(disk, size, "%s", slash + 1) < (int)size;
}

/* Disks that clouds and hypervisors give, by the model they show. Sources: the clouds'
 * documentation of their NVMe and SCSI disks. */
static const struct {
    const char *model, *medium;
} known_models[] = {
    {"Amazon Elastic Block Store", "network disk"},
    {"nvme_card-pd", "network disk"}, /* Google persistent disk; nvme_card is local */
    {"PersistentDisk", "network disk"},
    {"MSFT NVMe Accelerator", "network disk"},
    {"Alibaba Cloud Elastic Block Storage", "network disk"},
    {"QEMU", "virtual disk"},
    {"VBOX", "virtual disk"},
    {"VMware", "virtual disk"},
    {"Virtual disk", "virtual disk"},
    {"Virtual Disk", "virtual disk"},
};

/* By the beginning of the kernel's name of the disk. */
static const struct {
    const char *name, *medium;
} known_names[] = {
    {"vd", "virtual disk"},  {"xvd", "virtual disk"}, {"rbd", "network disk"},
    {"nbd", "network disk"}, {"ram", "memory"},       {"zram", "memory"},
    {"pmem", "memory"},
};

/* "pcie", "tcp", "rdma", "fc"; of a multipath disk its first path's. "": not said. */
static void nvme_transport(const char *root, const char *disk, char *text, size_t size)
{
    char path[PATH_MAX], entry[64];
    struct nw_system_folder folder;

    snprintf(path, sizeof path, "%s/sys/class/block/%s/device", root, disk);
    if (nw_system_text(text, size, "%s/transport", path))
        return;
    nw_system_open_folder(&folder, path);
    while (text[0] == '\0' && nw_system_next(&folder, entry, sizeof entry))
        if (starts(entry, "nvme"))
            nw_system_text(text, size, "%s/%s/transport", path, entry);
    nw_system_close_folder(&folder);
}

static void find_medium(const char *root, const char *disk, struct nw_place *place)
{
    char value[32];

    for (size_t i = 0; i < sizeof known_models / sizeof *known_models; i++)
        if (starts(place->model, known_models[i].model)) {
            snprintf(place->medium, sizeof place->medium, "%s", known_models[i].medium);
            return;
        }
    for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++)
        if (starts(disk, known_names[i].name)) {
            snprintf(place->medium, sizeof place->medium, "%s", known_names[i].medium);
            return;
        }
    if (starts(disk, "nvme")) {
        nvme_transport(root, disk, value, sizeof value);
        place->local_disk = value[0] == '\0' || strcmp(value, "pcie") == 0;
        snprintf(place->medium, sizeof place->medium, "NVMe %s%s",
                 place->local_disk ? "SSD" : "over ", place->local_disk ? "" : value);
    } else if (nw_system_text(value, sizeof value, "%s/sys/class/block/%s/queue/rotational", root,
                              disk)) {
        place->local_disk = true;
        snprintf(place->medium, sizeof place->medium, "%s",
                 strcmp(value, "1") == 0 ? "hard disk" : "SSD");
    }
}

/* Disks below a volume (md, dm), partitions as their disks, in `names`; how many. */
static size_t add_slaves(const char *root, const char *volume, char (*names)[32], size_t max,
                         int depth)
{
    char folder[PATH_MAX], entry[64], disk[32];
    struct nw_system_folder list;
    size_t count = 0;

    snprintf(folder, sizeof folder, "%s/sys/class/block/%s/slaves", root, volume);
    nw_system_open_folder(&list, folder);
    while (nw_system_next(&list, entry, sizeof entry) && count < max) {
        size_t below;

        if (!disk_of(root, entry, disk, sizeof disk))
            continue;
        below = depth > 0 ? add_slaves(root, disk, names + count, max - count, depth - 1) : 0;
        if (below == 0)
            snprintf(names[count], sizeof names[count], "%s", disk);
        count += below > 0 ? below : 1;
    }
    nw_system_close_folder(&list);
    return count;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void describe_device(const char *root, const char *name, struct nw_place *place)
{
    char disk[32], names[16][32];
    size_t count, used;

    if (!disk_of(root, name, disk, sizeof disk))
        return;
    snprintf(place->device, sizeof place->device, "%s", disk);
    count = add_slaves(root, disk, names, sizeof names / sizeof *names, 4);
    if (count == 0) {
        snprintf(names[0], sizeof names[0], "%s", disk);
    } else {
        qsort(names, count, sizeof names[0], compare_names);
        for (size_t i = 0; i < count && (used = strlen(place->device)) < sizeof place->device - 1;
             i++)
            snprintf(place->device + used, sizeof place->device - used, "%s%s",
                     i == 0 ? " of " : ", ", names[i]);
    }
    nw_system_text(place->model, sizeof place->model, "%s/sys/class/block/%s/device/model", root,
                   names[0]);
    find_medium(root, names[0], place);
}

static void find_device(const char *root, const struct nw_mount *mount, struct nw_place *place)
{
    char link[64], name[32];
    const char *slash = strrchr(mount->source, '/');

    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", mount->major, mount->minor);
    if (mount->major != 0 && link_name(name, sizeof name, root, link))
        describe_device(root, name, place);
    else if (starts(mount->source, "/dev/") && slash != NULL) /* btrfs has no number of its own */
        describe_device(root, slash + 1, place);
}

/* By its magic number (linux/magic.h); "unknown" for others. */
static const char *type_of(const char *path)
{
    static const struct {
        unsigned long magic;
        const char *type;
    } types[] = {{0xef53, "ext4"},      {0x58465342, "xfs"},     {0x9123683e, "btrfs"},
                 {0x01021994, "tmpfs"}, {0x794c7630, "overlay"}, {0x6969, "nfs"}};
    struct statfs status;

    for (size_t i = 0; statfs(path, &status) == 0 && i < sizeof types / sizeof *types; i++)
        if (types[i].magic == ((unsigned long)status.f_type & 0xffffffff))
            return types[i].type;
    return "unknown";
}

nw_rc nw_place_of(const char *root, const struct nw_mounts *mounts, const char *path,
                  struct nw_place *place_out)
{
    const struct nw_mount *mount = nw_mounts_find(mounts, path);
    struct nw_place place = {0};
    struct statx status;

    /* The kernel knows best which mount covers which (Linux 5.8). */
    if (root[0] == '\0' && statx(AT_FDCWD, path, 0, STATX_MNT_ID, &status) == 0 &&
        (status.stx_mask & STATX_MNT_ID) != 0)
        for (size_t i = 0; i < mounts->count; i++)
            if ((uint64_t)mounts->items[i].id == status.stx_mnt_id)
                mount = &mounts->items[i];
    if (mount == NULL && root[0] == '\0') { /* in a chroot: its root is no mount */
        snprintf(place.path, sizeof place.path, "%s", path);
        snprintf(place.type, sizeof place.type, "%s", type_of(path));
        place.shared = strcmp(place.type, "nfs") == 0;
        *place_out = place;
        return NW_OK;
    }
    if (mount == NULL)
        return nw_fail(NW_EIO, "%s: none of the %zu mounts is above it", path, mounts->count);
    snprintf(place.path, sizeof place.path, "%s", path);
    snprintf(place.type, sizeof place.type, "%s", mount->type);
    snprintf(place.source, sizeof place.source, "%s", mount->source);
    snprintf(place.point, sizeof place.point, "%s", mount->point);
    place.read_only = nw_mount_has_option(mount, "ro");
    place.shared = nw_mount_is_shared(mount);
    place.parallel = nw_mount_is_parallel(mount);
    if (place.shared)
        snprintf(place.medium, sizeof place.medium, "shared");
    else if (strcmp(mount->type, "tmpfs") == 0 || strcmp(mount->type, "ramfs") == 0)
        snprintf(place.medium, sizeof place.medium, "memory");
    else if (strcmp(mount->type, "overlay") == 0 || strcmp(mount->type, "aufs") == 0)
        snprintf(place.medium, sizeof place.medium, "container layer");
    else
        find_device(root, mount, &place);
    *place_out = place;
    return NW_OK;
}
