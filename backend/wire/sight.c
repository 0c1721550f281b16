/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/sight.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mount_table.h"
#include "base/path.h"
#include "wire/packet.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u
#endif

static uint64_t namespace_of(const char *link)
{
    struct stat st;

    return stat(link, &st) == 0 ? st.st_ino : 0;
}

void fp_sight_take(struct fp_sight *v)
{
    struct statx st;
    struct stat root;

    *v = (struct fp_sight){ .mounts_ns = namespace_of("/proc/self/ns/mnt"),
                            .users_ns = namespace_of("/proc/self/ns/user"),
                            .time_ns = namespace_of("/proc/self/ns/time") };
    if (fp_identify(AT_FDCWD, "/", &root) == -1)
        return;
    v->root_dev = root.st_dev;
    v->root_ino = root.st_ino;
    if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) == 0 && (st.stx_mask & STATX_MNT_ID) != 0)
        v->root_mount = st.stx_mnt_id;
}

/* ---- what is mounted where ---- */

/* True for places without documents, where mounts come and go in some namespaces alone.  These are the
 * kernel's, those that systemd makes for its services, and those of containers. */
static bool is_the_systems(const struct fp_mount *m)
{
    static const char *const prefixes[] = {
        "/proc",
        "/sys",
        "/dev",
        "/run/containerd",
        "/run/credentials",
        "/run/docker",
        "/run/netns",
        "/run/snapd",
        "/run/systemd",
        "/run/user",
        "/lib/modules",
        "/usr/lib/modules",
        "/var/lib/containerd",
        "/var/lib/containers",
        "/var/lib/docker",
        "/var/lib/kubelet",
    };
    const size_t len = strlen(m->point);

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (fp_path_is_below(m->point, len, prefixes[i]))
            return true;
    }
    /* The file of a namespace. */
    return strcmp(m->type, "nsfs") == 0;
}

/* True if the point would lead to the same directory without this mount. */
static bool leads_there_anyway(const struct fp_mount_table *t, const struct fp_mount *m)
{
    const size_t len = strlen(m->point);
    const struct fp_mount_row *above =
        len > 1 ? fp_mount_table_of_path(t, m->point, fp_path_parent_len(m->point, len)) : NULL;
    const char *rest, *root = m->root;
    size_t n;

    if (above == NULL || above->mount.dev != m->dev)
        return false;
    rest = strcmp(above->mount.point, "/") == 0 ? m->point : m->point + strlen(above->mount.point);
    n = strcmp(above->mount.root, "/") == 0 ? 0 : strlen(above->mount.root);
    return strncmp(root, above->mount.root, n) == 0 && strcmp(root + n, rest) == 0;
}

uint64_t fp_sight_mounts(const struct fp_mount_table *t)
{
    crypto_generichash_state state;
    unsigned char hash[crypto_generichash_BYTES_MIN];
    uint64_t number;

    crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    for (size_t i = 0; i < t->n_visible; i++) {
        const struct fp_mount *m = &t->visible[i]->mount;
        const uint64_t dev = m->dev;

        if (is_the_systems(m) || leads_there_anyway(t, m))
            continue;
        crypto_generichash_update(&state, (const unsigned char *)m->point, strlen(m->point) + 1);
        crypto_generichash_update(&state, (const unsigned char *)m->root, strlen(m->root) + 1);
        crypto_generichash_update(&state, (const unsigned char *)&dev, sizeof(dev));
    }
    crypto_generichash_final(&state, hash, sizeof(hash));
    memcpy(&number, hash, sizeof(number));
    return number;
}

/* Returns 0 if it is unknown. */
static uint64_t own_mounts(void)
{
    struct fp_mount_table t = { 0 };
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    uint64_t number = fd != -1 && fp_mount_table_read(&t, fd) == 0 ? fp_sight_mounts(&t) : 0;

    fp_mount_table_free(&t);
    fp_close(&fd);
    return number;
}

enum fp_sight_difference fp_sight_compare(const struct fp_sight *theirs, bool files)
{
    struct fp_sight ours;

    fp_sight_take(&ours);
    if (files && (ours.root_ino != theirs->root_ino || ours.root_dev != theirs->root_dev))
        return FP_SIGHT_ROOT;
    if (ours.mounts_ns == 0)
        return FP_SIGHT_UNKNOWN;
    if (ours.users_ns != theirs->users_ns)
        return FP_SIGHT_USERS;
    if (ours.time_ns != theirs->time_ns)
        return FP_SIGHT_TIME;
    if (!files || (ours.mounts_ns == theirs->mounts_ns && ours.root_mount == theirs->root_mount))
        return FP_SIGHT_SAME;
    return own_mounts() == theirs->mounts ? FP_SIGHT_SAME : FP_SIGHT_MOUNTS;
}

const char *fp_sight_text(enum fp_sight_difference d)
{
    static const char *const texts[] = {
        [FP_SIGHT_SAME] = "it sees what this process sees",
        [FP_SIGHT_ROOT] = "it has another root directory (chroot, a container)",
        [FP_SIGHT_MOUNTS] = "it sees other mounts (a mount namespace, as of PrivateTmp= or ProtectHome=)",
        [FP_SIGHT_USERS] = "it is in another user namespace",
        [FP_SIGHT_TIME] = "it is in another time namespace",
        [FP_SIGHT_UNKNOWN] = "this process cannot find out what it sees itself, as /proc is not mounted",
    };

    return d < FP_SIGHT_DIFFERENCES ? texts[d] : "unknown";
}
