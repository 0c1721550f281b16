/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/local_types.h"

#include <linux/magic.h>
#include <stddef.h>
#include <string.h>

/* The numbers that linux/magic.h has not, or not everywhere. */
#define BCACHEFS 0xca451a4eu
#define EROFS    0xe0f5e1e2u
#define EXFAT    0x2011bab0u
#define JFS      0x3153464au
#define NTFS3    0x7366746eu
#define UDF      0x15013346u
#define XFS      0x58465342u
#define ZFS      0x2fc12fc1u

static const struct {
    const char *name;
    uint32_t number;
    bool reports_all;
} types[] = {
    { "bcachefs", BCACHEFS, true },
    { "btrfs", BTRFS_SUPER_MAGIC, true },
    { "erofs", EROFS, true },
    { "exfat", EXFAT, true },
    { "ext2", EXT4_SUPER_MAGIC, true },
    { "ext3", EXT4_SUPER_MAGIC, true },
    { "ext4", EXT4_SUPER_MAGIC, true },
    { "f2fs", F2FS_SUPER_MAGIC, true },
    { "iso9660", ISOFS_SUPER_MAGIC, true },
    { "jfs", JFS, true },
    { "nilfs2", NILFS_SUPER_MAGIC, false },
    { "ntfs3", NTFS3, true },
    { "overlay", OVERLAYFS_SUPER_MAGIC, false },
    { "ramfs", RAMFS_MAGIC, true },
    { "reiserfs", REISERFS_SUPER_MAGIC, true },
    { "squashfs", SQUASHFS_MAGIC, true },
    { "tmpfs", TMPFS_MAGIC, true },
    { "udf", UDF, true },
    { "vfat", MSDOS_SUPER_MAGIC, true },
    { "xfs", XFS, true },
    { "zfs", ZFS, false }, /* a rollback or receive reports nothing */
};

#define TYPES (sizeof(types) / sizeof(types[0]))

/* TYPES if no type has that name. */
static size_t find(const char *name)
{
    size_t i = 0;

    while (i < TYPES && strcmp(types[i].name, name) != 0)
        i++;
    return i;
}

bool fp_type_reports_all(const char *name)
{
    const size_t i = find(name);

    return i < TYPES && types[i].reports_all;
}

bool fp_type_is_remote(const char *name)
{
    return find(name) == TYPES;
}

bool fp_type_may_be_mapped(uint32_t number)
{
    for (size_t i = 0; i < TYPES; i++) {
        if (types[i].number == number)
            return true;
    }
    return false;
}
