/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "changes/mount_list.h"
#include "changes/noise.h"
#include "changes/watch.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/server_clock.h"
#include "workers/calls.h"
#include "workers/whereabouts.h"

#define MOUNT_ROOT  0x2000u /* of statx(2)'s stx_attributes; older headers lack it, */
#define NOSYMFOLLOW 0x2000u /* and of statfs(2)'s f_flags */

int fp_resolver_init(struct fp_resolver *r, const struct fp_resolver_settings *settings)
{
    r->settings = settings;
    r->pid = getpid();
    fp_resolver_at(r, 0);
    r->slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return r->slash == -1 ? -1 : 0;
}

void fp_resolver_at(const struct fp_resolver *r, uint32_t mount)
{
    fp_whereabouts_set(r->settings->whereabouts, r->pid, mount);
}

bool fp_resolver_is_within(const struct fp_resolver *r, const char *path, size_t len)
{
    return fp_path_is_within(path, len, r->settings->roots);
}

/* A link may lead out of the roots: the kernel knows where the file really is. */
bool fp_resolver_opened_within(const struct fp_resolver *r, int fd)
{
    char name[FP_FD_NAME], real[FP_MAX_PATH + 1];
    ssize_t n;

    if (r->settings->roots == NULL || r->settings->roots[0] == NULL)
        return true;
    fp_fd_name(name, fd);
    n = readlink(name, real, sizeof(real));
    return n > 0 && (size_t)n < sizeof(real) && fp_resolver_is_within(r, real, (size_t)n);
}

/* ---- looking ---- */

static struct fp_time time_of(const struct statx_timestamp *ts)
{
    return (struct fp_time){ .sec = ts->tv_sec, .nsec = ts->tv_nsec };
}

void fp_meta_from_statx(struct fp_meta *m, const struct statx *st)
{
    m->mode = st->stx_mode;
    m->uid = st->stx_uid;
    m->gid = st->stx_gid;
    m->dev = makedev(st->stx_dev_major, st->stx_dev_minor);
    m->ino = st->stx_ino;
    m->nlink = st->stx_nlink;
    m->size = st->stx_size;
    m->blocks = st->stx_blocks;
    m->atime = time_of(&st->stx_atime);
    m->mtime = time_of(&st->stx_mtime);
    m->ctime = time_of(&st->stx_ctime);
    m->blksize = st->stx_blksize;
}

/* Returns 0 where the kernel does not say (before Linux 5.8). */
static uint32_t mount_in(const struct statx *st)
{
    return (st->stx_mask & STATX_MNT_ID) != 0 ? (uint32_t)st->stx_mnt_id : 0;
}

fp_status fp_look(int fd, struct fp_meta *m, uint32_t *mount_r)
{
    return fp_look_synced(fd, AT_STATX_SYNC_AS_STAT, m, mount_r);
}

fp_status fp_look_synced(int fd, int sync, struct fp_meta *m, uint32_t *mount_r)
{
    struct statx st;

    if (fp_call_statx(fd, "", AT_EMPTY_PATH | sync, STATX_BASIC_STATS | STATX_MNT_ID, &st) == -1)
        return fp_status_from_errno(errno);
    if ((st.stx_attributes & STATX_ATTR_AUTOMOUNT) != 0)
        return FP_REFUSED;
    fp_meta_from_statx(m, &st);
    fp_server_clock_note(m->dev, &m->ctime);
    if (mount_r != NULL)
        *mount_r = mount_in(&st);
    return FP_OK;
}

void fp_node_identify(struct fp_node *n)
{
    struct statx st;

    n->mount = 0;
    n->dev = n->ino = n->uid = 0;
    if (statx(n->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID | STATX_MNT_ID, &st) == -1)
        return;
    n->mount = mount_in(&st);
    /* File systems set the inode without being asked. */
    if ((st.stx_mask & STATX_INO) == 0)
        return;
    n->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
    n->ino = st.stx_ino;
    n->uid = st.stx_uid;
}

struct fp_mount_traits fp_resolver_traits(const struct fp_resolver *r, uint32_t mount)
{
    if (r->settings->mounts == NULL)
        return (struct fp_mount_traits){ .local = true, .verdict = FP_TTL_UNWATCHED };
    return fp_mount_list_find(r->settings->mounts, mount);
}

int fp_resolver_sync(const struct fp_resolver *r, uint32_t mount)
{
    return fp_resolver_traits(r, mount).local ? AT_STATX_SYNC_AS_STAT : AT_STATX_FORCE_SYNC;
}

bool fp_resolver_asks_first(const struct fp_resolver *r, uint32_t mount)
{
    return fp_resolver_traits(r, mount).by_directory;
}

/* As fp_resolver_traits(), of links and processes alone, also where the kernel has to be asked. */
static struct fp_mount_traits traits_at(const struct fp_resolver *r, const struct fp_node *dir)
{
    struct fp_mount_traits traits = fp_resolver_traits(r, dir->mount);
    struct statfs fs;

    if (!traits.known) {
        const bool told = fstatfs(dir->fd, &fs) == 0;

        traits.nosymfollow = told && ((unsigned long)fs.f_flags & NOSYMFOLLOW) != 0;
        /* Unknown is as in /proc: httpd looks itself. */
        traits.processes = !told || fs.f_type == PROC_SUPER_MAGIC;
    }
    return traits;
}

fp_status fp_resolver_follows(const struct fp_resolver *r, const struct fp_node *dir)
{
    const struct fp_mount_traits traits = traits_at(r, dir);

    return traits.nosymfollow ? FP_LOOP : traits.processes ? FP_REFUSED : FP_OK;
}

bool fp_resolver_is_process(const struct fp_resolver *r, const struct fp_node *dir, const char *name)
{
    return name[0] >= '0' && name[0] <= '9' && traits_at(r, dir).processes;
}

fp_status fp_resolver_may_follow(int dir, const struct fp_meta *link)
{
    struct fp_meta m;
    fp_status st;

    if (link->uid == geteuid())
        return FP_OK;
    st = fp_look(dir, &m, NULL);
    if (st == FP_OK && link->uid != m.uid && (m.mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH))
        return FP_REFUSED;
    return st;
}

static bool is_mount_root(int fd)
{
    struct statx st;

    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) == 0
           && (st.stx_attributes & MOUNT_ROOT) != 0;
}

bool fp_resolver_is_automount(const struct fp_resolver *r, const struct fp_node *dir)
{
    const struct fp_mount_traits traits = fp_resolver_traits(r, dir->mount);
    struct statfs fs;

    if (!traits.known)
        return fstatfs(dir->fd, &fs) == -1 || fs.f_type == AUTOFS_SUPER_MAGIC;
    return traits.automount && !(traits.names_are_mounted && is_mount_root(dir->fd));
}

void fp_resolver_sync_names(const struct fp_resolver *r, int dir, uint32_t mount)
{
    struct statx st;

    if (fp_resolver_traits(r, mount).by_directory)
        fp_call_statx(dir, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st);
}

/* ---- opening ---- */

fp_status fp_why_not_opened(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? FP_BUSY : fp_status_from_errno(errno);
}

/* Tries O_DIRECTORY first, where more is to come: it makes an automount mount, which O_PATH alone
 * does not. */
int fp_open_name(int dir, const char *name, bool more, bool *is_directory_r)
{
    int fd = -1;

    if (more)
        fd = fp_call_openat(dir, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    *is_directory_r = fd != -1;
    if (!more || (fd == -1 && errno == ENOTDIR))
        fd = fp_call_openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd;
}

/* ---- watching ---- */

static enum fp_left_out left_out(const struct fp_resolver_settings *settings, const struct fp_node *n)
{
    if (settings->noise == NULL)
        return FP_LEFT_OUT_NOT;
    return fp_noise_list_find(settings->noise, &(struct fp_noise_object){ n->dev, n->ino, n->uid });
}

/* Linux's SMB client reports a file that is made, other than exclusively, only when it is written. */
static bool tells_only_writes(const struct fp_mount_traits *traits)
{
    return traits->folds && !traits->local;
}

bool fp_node_watch(const struct fp_resolver *r, struct fp_node *n, bool directory,
                   struct fp_walk_result *result, unsigned step)
{
    const struct fp_mount_traits traits = fp_resolver_traits(r, n->mount);
    enum fp_left_out out;
    uint64_t began_us;
    fp_status st;

    if (n->watch.len > 0 || !fp_verdict_is_reported(traits.verdict))
        return false;
    fp_walk_result_judge(result, step, traits.verdict);
    out = left_out(r->settings, n);
    if (out != FP_LEFT_OUT_NOT)
        fp_walk_result_judge(result, step, FP_REPORTED_NOISE);
    n->quiet = out == FP_LEFT_OUT_ATTRIBUTES && directory;
    if (out != FP_LEFT_OUT_NOT && (!n->quiet || tells_only_writes(&traits)))
        return false;
    began_us = fp_now_us();
    st = fp_watch_place(r->settings->watch, n->fd,
                        !directory                   ? FP_WATCH_FILE
                        : n->quiet                   ? FP_WATCH_NAMES
                        : tells_only_writes(&traits) ? FP_WATCH_WRITTEN
                                                     : FP_WATCH_DIRECTORY,
                        &n->watch);
    fp_call_note(FP_CALL_WATCH, began_us);
    if (st != FP_OK)
        n->watch.len = 0;
    n->unwatchable = st != FP_OK;
    n->watch.dev = n->dev;
    n->watch.ino = n->ino;
    n->watch.uid = n->uid;
    if (st == FP_BUSY) {
        fp_walk_result_judge(result, step, FP_REPORTED_LIMIT);
        result->unwatched++;
    }
    return st == FP_OK;
}
