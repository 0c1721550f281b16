/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct slowfs_context *slowfs_context_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

struct slowfs_node *slowfs_node_of(fuse_ino_t ino)
{
    /* A node's number is its address: it is the kernel's until the kernel forgets it. */
    return ino == FUSE_ROOT_ID ? slowfs_nodes_root() : (struct slowfs_node *)(uintptr_t)ino;
}

struct slowfs_handle *slowfs_handle_of(const struct fuse_file_info *fi)
{
    return (struct slowfs_handle *)(uintptr_t)fi->fh;
}

void slowfs_delay(fuse_req_t req, enum slowfs_delayed kind, void (*run)(struct slowfs_call *), fuse_ino_t ino,
                  const char *name, const struct fuse_file_info *fi)
{
    size_t name_size = strlen(name) + 1;
    struct slowfs_delayed_call *call = calloc(1, sizeof(*call) + name_size);

    if (call == NULL) {
        (void)fuse_reply_err(req, ENOMEM);
        return;
    }
    call->base.req = req;
    call->base.kind = kind;
    call->base.run = run;
    call->ino = ino;
    if (fi != NULL)
        call->fi = *fi;
    memcpy(call->name, name, name_size);
    slowfs_queue_submit(slowfs_context_of(req)->queue, &call->base);
}

static void show_time(const struct slowfs_context *context, struct timespec *t)
{
    const double s = (double)t->tv_sec + (double)t->tv_nsec / 1e9 - context->clock_lag;

    *t = (struct timespec){ .tv_sec = (time_t)s };
}

void slowfs_show_times(fuse_req_t req, struct stat *st)
{
    const struct slowfs_context *context = slowfs_context_of(req);

    if (!context->whole_seconds)
        return;
    show_time(context, &st->st_mtim);
    show_time(context, &st->st_ctim);
}

int slowfs_make_entry(fuse_req_t req, struct slowfs_node *parent, const char *name,
                      struct fuse_entry_param *entry_r, struct slowfs_node **node_r)
{
    const struct slowfs_context *context = slowfs_context_of(req);
    int error;

    *entry_r = (struct fuse_entry_param){ 0 };
    error = slowfs_node_lookup(parent, name, &entry_r->attr, node_r);
    if (error != 0)
        return error;
    entry_r->ino = (fuse_ino_t)(uintptr_t)*node_r;
    entry_r->attr_timeout = context->attr_timeout;
    entry_r->entry_timeout = context->entry_timeout;
    slowfs_show_times(req, &entry_r->attr);
    return 0;
}

void slowfs_reply_entry(fuse_req_t req, struct slowfs_node *parent, const char *name)
{
    struct fuse_entry_param entry;
    struct slowfs_node *node;
    int error = slowfs_make_entry(req, parent, name, &entry, &node);

    /* The kernel caches an entry without an inode, but never an error. */
    if (error == ENOENT && slowfs_context_of(req)->absent_timeout > 0) {
        entry = (struct fuse_entry_param){ .entry_timeout = slowfs_context_of(req)->absent_timeout };
        (void)fuse_reply_entry(req, &entry);
    } else if (error != 0) {
        (void)fuse_reply_err(req, error);
    } else if (fuse_reply_entry(req, &entry) != 0) {
        slowfs_node_forget(node, 1);
    }
}

int slowfs_give_to_caller(fuse_req_t req, int dirfd, const char *name)
{
    const struct fuse_ctx *caller = fuse_req_ctx(req);
    gid_t gid = caller->gid;
    struct stat directory;

    if (fstat(dirfd, &directory) != 0)
        return errno;
    if ((directory.st_mode & S_ISGID) != 0)
        gid = directory.st_gid;
    return fchownat(dirfd, name, caller->uid, gid, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

void slowfs_ops_fill(struct fuse_lowlevel_ops *ops)
{
    *ops = (struct fuse_lowlevel_ops){ 0 };
    slowfs_name_ops_fill(ops);
    slowfs_file_ops_fill(ops);
}
