/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "parallel.h"

#include <stdio.h>

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)

int slowfs_parallel_lookups(struct fuse_session *session)
{
    (void)session;
    return 0;
}

#elif FUSE_VERSION < FUSE_MAKE_VERSION(3, 13)

/* No fuse_session_custom_io() yet: the delays are right, but those in one directory add up. */
int slowfs_parallel_lookups(struct fuse_session *session)
{
    (void)session;
    (void)fputs("slowfs: this libfuse lets lookups in one directory wait for each other; "
                "3.13 or newer does not\n",
                stderr);
    return 0;
}

#else

#include <fcntl.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_bool init_answered;

/* The first reply that libfuse writes is the one to FUSE_INIT. */
static void amend_init(const struct iovec *iov, int count)
{
    const struct fuse_out_header *header = iov[0].iov_base;
    struct fuse_init_out *reply;

    if (atomic_exchange(&init_answered, true))
        return;
    if (count != 2 || header->error != 0 || iov[1].iov_len < FUSE_COMPAT_22_INIT_OUT_SIZE)
        return;
    reply = iov[1].iov_base;
    reply->flags |= FUSE_PARALLEL_DIROPS;
}

static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
    (void)userdata;
    if (!atomic_load_explicit(&init_answered, memory_order_relaxed))
        amend_init(iov, count);
    return writev(fd, iov, count);
}

static ssize_t read_request(int fd, void *buffer, size_t size, void *userdata)
{
    (void)userdata;
    return read(fd, buffer, size);
}

static ssize_t splice_either(int in, off_t *in_offset, int out, off_t *out_offset, size_t size,
                             unsigned flags, void *userdata)
{
    (void)userdata;
    return splice(in, in_offset, out, out_offset, size, flags);
}

int slowfs_parallel_lookups(struct fuse_session *session)
{
    static const struct fuse_custom_io io = {
        .writev = write_reply,
        .read = read_request,
        .splice_receive = splice_either,
        .splice_send = splice_either,
    };
    int result = fuse_session_custom_io(session, &io, fuse_session_fd(session));

    if (result != 0)
        (void)fprintf(stderr, "slowfs: cannot take over the device: error %d\n", result);
    return result == 0 ? 0 : -1;
}

#endif
