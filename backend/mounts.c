/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "mounts.h"

#include <linux/magic.h>
#include <stddef.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define REMEMBERED 64

/* Where <linux/magic.h> has no name for them. */
#define MAGIC_BCACHEFS 0xca451a4e
#define MAGIC_JFS      0x3153464a
#define MAGIC_ZFS      0x2fc12fc1
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static const unsigned long local_types[] = {
    BTRFS_SUPER_MAGIC, EROFS_SUPER_MAGIC_V1, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC,
    MAGIC_BCACHEFS, MAGIC_JFS, MAGIC_ZFS, MSDOS_SUPER_MAGIC, RAMFS_MAGIC,
    REISERFS_SUPER_MAGIC, SQUASHFS_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC,
};

static bool is_local_type(unsigned long type)
{
    for (size_t i = 0; i < sizeof(local_types) / sizeof(local_types[0]); i++) {
        if (local_types[i] == type)
            return true;
    }
    return false;
}

bool fp_mount_is_local(int fd, dev_t dev)
{
    static struct { dev_t dev; bool local; } known[REMEMBERED];
    static size_t n;
    struct statfs fs;
    bool local;

    for (size_t i = 0; i < n && i < REMEMBERED; i++) {
        if (known[i].dev == dev)
            return known[i].local;
    }
    if (fstatfs(fd, &fs) == -1)
        return false;
    local = is_local_type((unsigned long)fs.f_type & 0xffffffffUL);
    /* A number without a driver behind it (major 0) is soon another mount's:
     * then not local is the safe thing to remember. */
    if (local && major(dev) == 0)
        return true;
    /* The oldest makes room. */
    known[n % REMEMBERED].dev = dev;
    known[n++ % REMEMBERED].local = local;
    return local;
}
