/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on names and attributes. Permissions were checked by the kernel (mounted with
 * default_permissions) before a call comes here, so all is done with root's rights.
 */
#include "config.h"
#include "ops.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void run_lookup(struct slowfs_call *base)
{
    struct slowfs_delayed_call *call = (struct slowfs_delayed_call *)base;

    slowfs_reply_entry(base->req, slowfs_node_of(call->ino), call->name);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    slowfs_count(SLOWFS_OP_lookup);
    slowfs_delay(req, SLOWFS_LOOKUP, run_lookup, parent, name, NULL);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t references)
{
    slowfs_count(SLOWFS_OP_forget);
    slowfs_node_forget(slowfs_node_of(ino), references);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++) {
        slowfs_count(SLOWFS_OP_forget);
        slowfs_node_forget(slowfs_node_of(forgets[i].ino), forgets[i].nlookup);
    }
    fuse_reply_none(req);
}

static void reply_attributes(fuse_req_t req, int error, struct stat *st)
{
    if (error != 0) {
        (void)fuse_reply_err(req, error);
        return;
    }
    slowfs_show_times(req, st);
    (void)fuse_reply_attr(req, st, slowfs_context_of(req)->attr_timeout);
}

static void run_getattr(struct slowfs_call *base)
{
    const struct slowfs_delayed_call *call = (const struct slowfs_delayed_call *)base;
    struct stat st;
    int error = slowfs_node_stat(slowfs_node_of(call->ino), &st);

    reply_attributes(base->req, error, &st);
}

/* The kernel's own question before a read of an open file, when it may not trust the
 * attributes that it has. It belongs to the read, which is not delayed. stat and fstat come
 * without the open file. */
static void getattr_for_read(fuse_req_t req, const struct fuse_file_info *fi)
{
    struct stat st;
    int error = fstat(slowfs_handle_fd(slowfs_handle_of(fi)), &st) == 0 ? 0 : errno;

    slowfs_count(SLOWFS_OP_readattr);
    reply_attributes(req, error, &st);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (fi != NULL) {
        getattr_for_read(req, fi);
        return;
    }
    slowfs_count(SLOWFS_OP_getattr);
    slowfs_delay(req, SLOWFS_GETATTR, run_getattr, ino, "", NULL);
}

static int set_owner(int fd, const struct stat *attr, int to_set)
{
    uid_t uid = (to_set & FUSE_SET_ATTR_UID) != 0 ? attr->st_uid : (uid_t)-1;
    gid_t gid = (to_set & FUSE_SET_ATTR_GID) != 0 ? attr->st_gid : (gid_t)-1;

    return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

static struct timespec time_to_set(const struct timespec *given, int to_set, int set, int set_now)
{
    struct timespec t = *given;

    if ((to_set & set_now) != 0)
        t.tv_nsec = UTIME_NOW;
    else if ((to_set & set) == 0)
        t.tv_nsec = UTIME_OMIT;
    return t;
}

static int set_times(int fd, const struct stat *attr, int to_set)
{
    const struct timespec times[2] = {
        time_to_set(&attr->st_atim, to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
        time_to_set(&attr->st_mtim, to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW),
    };

    return utimensat(fd, "", times, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

/* fd is an O_PATH descriptor; calls that take none use its name in /proc. */
static int set_attributes(int fd, const struct stat *attr, int to_set)
{
    char path[64];
    int error = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if ((to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0)
        error = set_owner(fd, attr, to_set);
    /* After the owner: a change of owner clears the set-user-id bit. */
    if (error == 0 && (to_set & FUSE_SET_ATTR_MODE) != 0)
        error = chmod(path, attr->st_mode & 07777) == 0 ? 0 : errno;
    if (error == 0 && (to_set & FUSE_SET_ATTR_SIZE) != 0)
        error = truncate(path, attr->st_size) == 0 ? 0 : errno;
    if (error == 0
        && (to_set
            & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW))
               != 0)
        error = set_times(fd, attr, to_set);
    return error;
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    struct stat st;
    int fd;
    int error;

    (void)fi;
    slowfs_count(SLOWFS_OP_setattr);
    error = slowfs_node_path_fd(slowfs_node_of(ino), &fd);
    if (error == 0) {
        error = set_attributes(fd, attr, to_set);
        if (error == 0 && fstat(fd, &st) != 0)
            error = errno;
        (void)close(fd);
    }
    reply_attributes(req, error, &st);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char target[PATH_MAX + 1];
    ssize_t length = -1;
    int fd;
    int error;

    slowfs_count(SLOWFS_OP_readlink);
    error = slowfs_node_path_fd(slowfs_node_of(ino), &fd);
    if (error == 0) {
        length = readlinkat(fd, "", target, sizeof(target) - 1);
        error = length < 0 ? errno : 0;
        (void)close(fd);
    }
    if (error != 0) {
        (void)fuse_reply_err(req, error);
        return;
    }
    target[length] = '\0';
    (void)fuse_reply_readlink(req, target);
}

/* Answers a call that made `name`; error is that of making it. */
static void reply_made(fuse_req_t req, fuse_ino_t parent, const char *name, int error)
{
    struct slowfs_node *directory = slowfs_node_of(parent);

    if (error == 0)
        error = slowfs_give_to_caller(req, slowfs_node_dirfd(directory), name);
    if (error != 0)
        (void)fuse_reply_err(req, error);
    else
        slowfs_reply_entry(req, directory, name);
}

static int parent_fd(fuse_ino_t parent)
{
    return slowfs_node_dirfd(slowfs_node_of(parent));
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    slowfs_count(SLOWFS_OP_mknod);
    reply_made(req, parent, name, mknodat(parent_fd(parent), name, mode, rdev) == 0 ? 0 : errno);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    slowfs_count(SLOWFS_OP_mkdir);
    reply_made(req, parent, name, mkdirat(parent_fd(parent), name, mode) == 0 ? 0 : errno);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    slowfs_count(SLOWFS_OP_symlink);
    reply_made(req, parent, name, symlinkat(target, parent_fd(parent), name) == 0 ? 0 : errno);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    int fd;
    int error;

    slowfs_count(SLOWFS_OP_link);
    error = slowfs_node_path_fd(slowfs_node_of(ino), &fd);
    if (error == 0) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (linkat(AT_FDCWD, path, parent_fd(parent), name, AT_SYMLINK_FOLLOW) != 0)
            error = errno;
        (void)close(fd);
    }
    if (error != 0)
        (void)fuse_reply_err(req, error);
    else
        slowfs_reply_entry(req, slowfs_node_of(parent), name);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    slowfs_count(SLOWFS_OP_unlink);
    (void)fuse_reply_err(req, unlinkat(parent_fd(parent), name, 0) == 0 ? 0 : errno);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    slowfs_count(SLOWFS_OP_rmdir);
    (void)fuse_reply_err(req, unlinkat(parent_fd(parent), name, AT_REMOVEDIR) == 0 ? 0 : errno);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
    slowfs_count(SLOWFS_OP_rename);
    if (renameat2(parent_fd(parent), name, parent_fd(new_parent), new_name, flags) != 0) {
        (void)fuse_reply_err(req, errno);
        return;
    }
    slowfs_nodes_renamed(slowfs_node_of(parent), name, slowfs_node_of(new_parent), new_name,
                         (flags & RENAME_EXCHANGE) != 0);
    (void)fuse_reply_err(req, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st;

    (void)ino;
    slowfs_count(SLOWFS_OP_statfs);
    if (fstatvfs(slowfs_node_dirfd(slowfs_nodes_root()), &st) != 0)
        (void)fuse_reply_err(req, errno);
    else
        (void)fuse_reply_statfs(req, &st);
}

void slowfs_name_ops_fill(struct fuse_lowlevel_ops *ops)
{
    ops->lookup = op_lookup;
    ops->forget = op_forget;
    ops->forget_multi = op_forget_multi;
    ops->getattr = op_getattr;
    ops->setattr = op_setattr;
    ops->readlink = op_readlink;
    ops->mknod = op_mknod;
    ops->mkdir = op_mkdir;
    ops->symlink = op_symlink;
    ops->link = op_link;
    ops->unlink = op_unlink;
    ops->rmdir = op_rmdir;
    ops->rename = op_rename;
    ops->statfs = op_statfs;
}
