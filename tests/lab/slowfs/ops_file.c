/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on open files and directories. Every open reaches slowfs (it must never answer
 * ENOSYS to open, which would switch the kernel to zero-message opens).
 *
 * Reads are not delayed.
 */
#include "config.h"
#include "ops.h"
#include "stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void fill_file_info(fuse_req_t req, struct slowfs_handle *handle, struct fuse_file_info *fi)
{
    fi->fh = (uint64_t)(uintptr_t)handle;
    /* Without it the kernel drops the file's cached pages at every open. */
    fi->keep_cache = slowfs_context_of(req)->keep_cache ? 1 : 0;
}

static void run_open(struct slowfs_call *base)
{
    struct slowfs_delayed_call *call = (struct slowfs_delayed_call *)base;
    struct slowfs_handle *handle;
    int error = slowfs_node_open(slowfs_node_of(call->ino), call->fi.flags, &handle);

    if (error != 0) {
        (void)fuse_reply_err(base->req, error);
        return;
    }
    fill_file_info(base->req, handle, &call->fi);
    if (fuse_reply_open(base->req, &call->fi) != 0)
        slowfs_handle_close(&handle);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    slowfs_count(SLOWFS_OP_open);
    slowfs_delay(req, SLOWFS_OPEN, run_open, ino, "", fi);
}

/* Makes the file as the caller's, or opens it when another process has made it meanwhile. */
static int create_file(fuse_req_t req, int dirfd, const char *name, mode_t mode, int flags, int *fd_r)
{
    flags |= O_NOFOLLOW | O_CLOEXEC;
    *fd_r = openat(dirfd, name, flags | O_CREAT | O_EXCL, mode);
    if (*fd_r >= 0) {
        int error = slowfs_give_to_caller(req, dirfd, name);

        if (error != 0)
            (void)close(*fd_r);
        return error;
    }
    if (errno == EEXIST && (flags & O_EXCL) == 0)
        *fd_r = openat(dirfd, name, flags & ~O_CREAT);
    return *fd_r < 0 ? errno : 0;
}

static void reply_created(fuse_req_t req, struct slowfs_node *parent, const char *name, int fd,
                          struct fuse_file_info *fi)
{
    struct fuse_entry_param entry;
    struct slowfs_node *node;
    struct slowfs_handle *handle;
    int error = slowfs_make_entry(req, parent, name, &entry, &node);

    if (error != 0) {
        (void)close(fd);
        (void)fuse_reply_err(req, error);
        return;
    }
    error = slowfs_node_adopt(node, fd, &handle);
    if (error != 0) {
        slowfs_node_forget(node, 1);
        (void)fuse_reply_err(req, error);
        return;
    }
    fill_file_info(req, handle, fi);
    if (fuse_reply_create(req, &entry, fi) != 0) {
        slowfs_handle_close(&handle);
        slowfs_node_forget(node, 1);
    }
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct slowfs_node *directory = slowfs_node_of(parent);
    int fd;
    int error;

    slowfs_count(SLOWFS_OP_create);
    error = create_file(req, slowfs_node_dirfd(directory), name, mode, fi->flags, &fd);
    if (error != 0)
        (void)fuse_reply_err(req, error);
    else
        reply_created(req, directory, name, fd, fi);
}

static struct fuse_bufvec file_buffer(const struct fuse_file_info *fi, size_t size, off_t offset)
{
    struct fuse_bufvec buffer = FUSE_BUFVEC_INIT(size);

    buffer.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    buffer.buf[0].fd = slowfs_handle_fd(slowfs_handle_of(fi));
    buffer.buf[0].pos = offset;
    return buffer;
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    struct fuse_bufvec buffer = file_buffer(fi, size, offset);

    (void)ino;
    slowfs_count(SLOWFS_OP_read);
    (void)fuse_reply_data(req, &buffer, FUSE_BUF_SPLICE_MOVE);
}

static void op_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *in, off_t offset,
                         struct fuse_file_info *fi)
{
    struct fuse_bufvec out = file_buffer(fi, fuse_buf_size(in), offset);
    ssize_t written;

    (void)ino;
    slowfs_count(SLOWFS_OP_write);
    written = fuse_buf_copy(&out, in, 0);
    if (written < 0)
        (void)fuse_reply_err(req, (int)-written);
    else
        (void)fuse_reply_write(req, (size_t)written);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
    int fd = slowfs_handle_fd(slowfs_handle_of(fi));

    (void)ino;
    slowfs_count(SLOWFS_OP_fsync);
    (void)fuse_reply_err(req, (data_only ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : errno);
}

static void run_flush(struct slowfs_call *base)
{
    (void)fuse_reply_err(base->req, 0);
}

void slowfs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    slowfs_count(SLOWFS_OP_flush);
    slowfs_delay(req, SLOWFS_FLUSH, run_flush, ino, "", fi);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct slowfs_handle *handle = slowfs_handle_of(fi);

    (void)ino;
    slowfs_count(SLOWFS_OP_release);
    slowfs_handle_close(&handle);
    (void)fuse_reply_err(req, 0);
}

static DIR *stream_of(const struct fuse_file_info *fi)
{
    return (DIR *)(uintptr_t)fi->fh;
}

static DIR *open_stream(struct slowfs_node *node)
{
    int fd = openat(slowfs_node_dirfd(node), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream;

    if (fd < 0)
        return NULL;
    stream = fdopendir(fd);
    if (stream == NULL)
        (void)close(fd);
    return stream;
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    DIR *stream;

    slowfs_count(SLOWFS_OP_opendir);
    stream = open_stream(slowfs_node_of(ino));
    if (stream == NULL) {
        (void)fuse_reply_err(req, errno);
        return;
    }
    fi->fh = (uint64_t)(uintptr_t)stream;
    if (fuse_reply_open(req, fi) != 0)
        (void)closedir(stream);
}

/* Fills the buffer with entries; returns the bytes used, or -1 with errno. */
static ssize_t fill_entries(fuse_req_t req, DIR *stream, char *buffer, size_t size)
{
    size_t used = 0;

    for (;;) {
        struct stat st = { 0 };
        const struct dirent *entry;
        size_t needed;

        errno = 0;
        entry = readdir(stream);
        if (entry == NULL)
            return errno != 0 && used == 0 ? -1 : (ssize_t)used;
        st.st_ino = entry->d_ino;
        st.st_mode = DTTOIF(entry->d_type);
        needed = fuse_add_direntry(req, buffer + used, size - used, entry->d_name, &st, entry->d_off);
        if (needed > size - used)
            return (ssize_t)used;
        used += needed;
    }
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    char *buffer = malloc(size);
    ssize_t used = -1;

    (void)ino;
    slowfs_count(SLOWFS_OP_readdir);
    if (buffer != NULL) {
        /* The entry that did not fit last time has been read: always go back to the offset. */
        seekdir(stream_of(fi), offset);
        used = fill_entries(req, stream_of(fi), buffer, size);
    }
    if (used < 0)
        (void)fuse_reply_err(req, errno);
    else
        (void)fuse_reply_buf(req, buffer, (size_t)used);
    free(buffer);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
    (void)ino;
    (void)data_only;
    slowfs_count(SLOWFS_OP_fsync);
    (void)fuse_reply_err(req, fsync(dirfd(stream_of(fi))) == 0 ? 0 : errno);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    slowfs_count(SLOWFS_OP_release);
    (void)closedir(stream_of(fi));
    (void)fuse_reply_err(req, 0);
}

void slowfs_file_ops_fill(struct fuse_lowlevel_ops *ops)
{
    ops->open = op_open;
    ops->create = op_create;
    ops->read = op_read;
    ops->write_buf = op_write_buf;
    ops->fsync = op_fsync;
    ops->release = op_release;
    ops->opendir = op_opendir;
    ops->readdir = op_readdir;
    ops->fsyncdir = op_fsyncdir;
    ops->releasedir = op_releasedir;
}
