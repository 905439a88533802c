/* Public. What is mounted here (/proc/self/mountinfo), and what a path lies on: file system,
 * device, medium.
 *
 *     struct nw_mounts mounts;
 *     NW_TRY(nw_mounts_read("", &mounts));                   // the live system
 *     NW_TRY(nw_place_of("", &mounts, "/data", &place));     // place.type "nfs4", place.shared
 *     nw_mounts_free(&mounts);
 *
 * `root` stands before /proc and /sys; tests put their own trees there.
 */
#ifndef NW_TOPO_MOUNTS_H
#define NW_TOPO_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nw_mount {
    int id;
    unsigned major, minor;          /* major 0: no block device of its own */
    char type[32];                  /* "nfs4" "ext4" "fuse.juicefs" */
    char *point, *source, *options; /* owned; options: the mount's, a comma, the file system's */
};

struct nw_mounts {
    struct nw_mount *items; /* in the order of the file: later ones cover earlier ones */
    size_t count;
};

nw_rc nw_mounts_read(const char *root, struct nw_mounts *mounts_out);
/* The text of a mountinfo file, which is changed. Lines that are none are left out. */
nw_rc nw_mounts_parse(char *data, struct nw_mounts *mounts_out);
void nw_mounts_free(struct nw_mounts *mounts); /* leaves it empty */
/* The mount that a path without links, "." and ".." lies on; NULL: none. */
const struct nw_mount *nw_mounts_find(const struct nw_mounts *mounts, const char *path);
bool nw_mount_has_option(const struct nw_mount *mount, const char *option);

/* Several hosts see the same files: NFS, Lustre, GPFS, a FUSE client … */
bool nw_mount_is_shared(const struct nw_mount *mount);
/* Made for that with many servers: Lustre, GPFS, BeeGFS, CephFS, WekaFS … */
bool nw_mount_is_parallel(const struct nw_mount *mount);
/* "lustre at /scratch, nfs4 at /home", sorted by place; what does not fit is counted. "" for none.
 */
void nw_mounts_shared_text(const struct nw_mounts *mounts, char *text, size_t size);

struct nw_place {
    char path[256];   /* resolved; cut when longer */
    char type[32];    /* of the file system */
    char source[192]; /* "server:/export" "/dev/md0" */
    char point[192];
    char device[64]; /* of the disks: "nvme0n1", "md0 of nvme0n1, nvme1n1"; "": none, or unknown */
    char model[64];  /* of the (first) disk; "": unknown */
    char medium[48]; /* "NVMe SSD" "SSD" "hard disk" "virtual disk" "NVMe over tcp" "shared"
                        "memory" "container layer"; "": unknown */
    bool shared, parallel, read_only;
    bool local_disk; /* on a disk of this machine */
};

/* `path` must be resolved (realpath). NW_EIO: no mount is known for it. */
nw_rc nw_place_of(const char *root, const struct nw_mounts *mounts, const char *path,
                  struct nw_place *place_out);

#endif
