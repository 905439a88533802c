#include "tests/unit/system_tree.h"
#include "topo/mounts.h"

#define NVME "sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1"

static const struct tree_file files[] = {
    {"proc/self/mountinfo",
     "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
     "27 1 259:2 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro\n"
     "28 27 0:40 / /home rw,relatime shared:2 master:3 - nfs4 filer:/home rw,vers=4.2\n"
     "29 27 0:41 / /scratch rw - lustre 10.0.0.1@o2ib:/fs rw,flock\n"
     "30 27 9:0 / /data ro,noatime - xfs /dev/md0 rw,attr2\n"
     "31 27 0:42 / /mnt/with\\040blank rw - fuse.juicefs JuiceFS:ours rw\n"
     "torn line\n"
     "32 27 0:43 / /dev/shm rw - tmpfs tmpfs rw,size=1k\n"
     "33 27 0:44 / /b rw - btrfs /dev/sda2 rw,subvol=/\n"
     "34 27 0:45 / /lx rw - fuse.lxcfs lxcfs rw\n"
     "35 27 8:16 / /old rw - ext4 /dev/sdb rw\n"
     "36 35 0:46 / /old rw - overlay overlay rw,lowerdir=/l,upperdir=/u\n"
     "37 27 0:47 / /hidden rw - nfs covered:/ rw\n"
     "38 27 8:16 / /hidden rw - ext4 /dev/sdb rw\n"
     "39 27 259:9 / /far rw - ext4 /dev/nvme1n1 rw\n"
     "40 27 254:0 / /vm rw - ext4 /dev/vda rw\n"
     "41 27 259:20 / /ebs rw - ext4 /dev/nvme2n1 rw\n"
     "42 27 253:0 / /lv rw - xfs /dev/mapper/vg-lv rw\n"
     "43 27 0:50 / /tank rw - zfs tank/data rw\n"},
    {NVME "/nvme0n1p2/partition", "2\n"},
    {NVME "/queue/rotational", "0\n"},
    {NVME "/device", "@.."},
    {"sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/transport", "pcie\n"},
    {"sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/model", "SAMSUNG MZQL23T8    \n"},
    {"sys/class/block/nvme0n1", "@../../devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1"},
    {"sys/class/block/nvme0n1p2",
     "@../../devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2"},
    {"sys/dev/block/259:2", "@../../devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2"},
    /* a mirror of two disks' partitions */
    {"sys/devices/virtual/block/md0/slaves/sdb1", "@../../../../pci/sdb/sdb1"},
    {"sys/devices/virtual/block/md0/slaves/sda1", "@../../../../pci/sda/sda1"},
    {"sys/devices/pci/sda/sda1/partition", "1\n"},
    {"sys/devices/pci/sda/sda2/partition", "2\n"},
    {"sys/devices/pci/sda/queue/rotational", "0\n"},
    {"sys/devices/pci/sdb/sdb1/partition", "1\n"},
    {"sys/devices/pci/sdb/queue/rotational", "1\n"},
    {"sys/class/block/md0", "@../../devices/virtual/block/md0"},
    {"sys/class/block/sda", "@../../devices/pci/sda"},
    {"sys/class/block/sda1", "@../../devices/pci/sda/sda1"},
    {"sys/class/block/sda2", "@../../devices/pci/sda/sda2"},
    {"sys/class/block/sdb", "@../../devices/pci/sdb"},
    {"sys/class/block/sdb1", "@../../devices/pci/sdb/sdb1"},
    {"sys/dev/block/9:0", "@../../devices/virtual/block/md0"},
    {"sys/dev/block/8:16", "@../../devices/pci/sdb"},
    /* a volume on that mirror */
    {"sys/devices/virtual/block/dm-0/slaves/md0", "@../../md0"},
    {"sys/class/block/dm-0", "@../../devices/virtual/block/dm-0"},
    {"sys/dev/block/253:0", "@../../devices/virtual/block/dm-0"},
    /* NVMe over a network, seen through the multipath layer */
    {"sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1/size", "1\n"},
    {"sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1/device", "@.."},
    {"sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1/transport", "tcp\n"},
    {"sys/class/block/nvme1n1", "@../../devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1"},
    {"sys/dev/block/259:9", "@../../devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1"},
    {"sys/devices/vd/vda/queue/rotational", "1\n"},
    {"sys/class/block/vda", "@../../devices/vd/vda"},
    {"sys/dev/block/254:0", "@../../devices/vd/vda"},
    {"sys/devices/ebs/nvme2n1/device/model", "Amazon Elastic Block Store\n"},
    {"sys/class/block/nvme2n1", "@../../devices/ebs/nvme2n1"},
    {"sys/dev/block/259:20", "@../../devices/ebs/nvme2n1"},
};

static const struct {
    const char *path, *type, *device, *medium;
    bool shared, parallel, read_only, local;
} places[] = {
    {"/", "ext4", "nvme0n1", "NVMe SSD", false, false, false, true},
    {"/homework", "ext4", "nvme0n1", "NVMe SSD", false, false, false, true},
    {"/home", "nfs4", "", "shared", true, false, false, false},
    {"/home/u/x", "nfs4", "", "shared", true, false, false, false},
    {"/scratch/x", "lustre", "", "shared", true, true, false, false},
    {"/data/set", "xfs", "md0 of sda, sdb", "SSD", false, false, true, true},
    {"/lv", "xfs", "dm-0 of sda, sdb", "SSD", false, false, false, true},
    {"/mnt/with blank/a", "fuse.juicefs", "", "shared", true, true, false, false},
    {"/dev/shm", "tmpfs", "", "memory", false, false, false, false},
    {"/b/c", "btrfs", "sda", "SSD", false, false, false, true},
    {"/old", "overlay", "", "container layer", false, false, false, false},
    {"/hidden/x", "ext4", "sdb", "hard disk", false, false, false, true},
    {"/far", "ext4", "nvme1n1", "NVMe over tcp", false, false, false, false},
    {"/vm", "ext4", "vda", "virtual disk", false, false, false, false},
    {"/ebs", "ext4", "nvme2n1", "network disk", false, false, false, false},
    {"/tank", "zfs", "", "", false, false, false, false},
};

static void check_places(const char *root, const struct nw_mounts *mounts)
{
    struct nw_place place;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        cr_assert_eq(nw_place_of(root, mounts, places[i].path, &place), NW_OK, "%s",
                     nw_last_error()->text);
        cr_expect_str_eq(place.type, places[i].type, "%s: %s", places[i].path, place.type);
        cr_expect_str_eq(place.device, places[i].device, "%s: %s", places[i].path, place.device);
        cr_expect_str_eq(place.medium, places[i].medium, "%s: %s", places[i].path, place.medium);
        cr_expect_eq(place.shared, places[i].shared, "%s", places[i].path);
        cr_expect_eq(place.parallel, places[i].parallel, "%s", places[i].path);
        cr_expect_eq(place.read_only, places[i].read_only, "%s", places[i].path);
        cr_expect_eq(place.local_disk, places[i].local, "%s", places[i].path);
    }
    cr_assert_eq(nw_place_of(root, mounts, "/", &place), NW_OK);
    cr_expect_str_eq(place.model, "SAMSUNG MZQL23T8");
    cr_assert_eq(nw_place_of(root, mounts, "/home", &place), NW_OK);
    cr_expect_str_eq(place.source, "filer:/home");
}

Test(topo_mounts, file_system_device_and_medium_of_a_path)
{
    char root[] = "/tmp/nw-mounts-XXXXXX", text[192], small[50];
    struct nw_mounts mounts;

    cr_assert_not_null(mkdtemp(root));
    tree_add(root, files, sizeof files / sizeof *files);
    cr_assert_eq(nw_mounts_read(root, &mounts), NW_OK, "%s", nw_last_error()->text);
    cr_expect_eq(mounts.count, 18, "%zu", mounts.count);
    check_places(root, &mounts);
    nw_mounts_shared_text(&mounts, text, sizeof text);
    cr_expect_str_eq(text, "nfs4 at /home, fuse.juicefs at /mnt/with blank, lustre at /scratch",
                     "a mount that another one covers is not told: %s", text);
    nw_mounts_shared_text(&mounts, small, sizeof small);
    cr_expect_str_eq(small, "nfs4 at /home, and 2 more");
    nw_mounts_free(&mounts);
    tree_remove(root);
}

Test(topo_mounts, no_table_and_no_mount_are_errors)
{
    char root[] = "/tmp/nw-mounts-XXXXXX";
    struct nw_mounts mounts;
    struct nw_place place;

    cr_assert_not_null(mkdtemp(root));
    cr_expect_eq(nw_mounts_read(root, &mounts), NW_EIO);
    tree_write(root, "proc/self/mountinfo", "a\n - b\n1 2 3:4 / /x\n", 19);
    cr_assert_eq(nw_mounts_read(root, &mounts), NW_OK);
    cr_expect_eq(mounts.count, 0);
    cr_expect_eq(nw_place_of(root, &mounts, "/x", &place), NW_EIO);
    nw_mounts_free(&mounts);
    tree_remove(root);
}

Test(topo_mounts, this_machine)
{
    struct nw_mounts mounts;
    struct nw_place place;

    cr_assert_eq(nw_mounts_read("", &mounts), NW_OK, "%s", nw_last_error()->text);
    cr_assert_eq(nw_place_of("", &mounts, "/proc", &place), NW_OK);
    cr_expect_str_eq(place.type, "proc");
    cr_expect_not(place.local_disk || place.shared);
    nw_mounts_free(&mounts);
}
