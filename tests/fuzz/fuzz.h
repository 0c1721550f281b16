/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that the fuzz targets share.  A target is a function of libFuzzer's interface
 * that gives bytes to what takes them from outside, and demands what must hold
 * whatever they are.  driver.c runs it over its corpus without libFuzzer.
 */
#ifndef FP_FUZZ_H
#define FP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/packet.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

#define FUZZ_MUST(condition) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__))

/* An encoded frame has exactly this body. */
static inline void fuzz_must_be_body(const struct fp_writer *frame, const void *body, size_t size)
{
    FUZZ_MUST(frame->len == FP_FRAME_HEADER + size);
    FUZZ_MUST(memcmp(frame->data + FP_FRAME_HEADER, body, size) == 0);
}

/* One of the pieces that an input is made of: what to do beside (u8), a length (u16), bytes. */
struct fuzz_piece {
    uint8_t how;
    const uint8_t *bytes;
    size_t size;
};

/* The last one may be shorter than it says.  False: there are no more. */
static inline bool fuzz_next(struct fp_reader *r, struct fuzz_piece *p)
{
    size_t left;

    p->how = fp_get_u8(r);
    p->size = fp_get_u16(r);
    left = (size_t)(r->end - r->pos);
    if (p->size > left)
        p->size = left;
    p->bytes = fp_get_bytes(r, p->size);
    return p->bytes != NULL;
}

/* An anonymous file with this content, read from its beginning. */
static inline int fuzz_file(const void *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    FUZZ_MUST(fd != -1 && pwrite(fd, data, size, 0) == (ssize_t)size);
    return fd;
}

/* One packet with up to four descriptors, unless the socket is full or the peer gone. */
static inline void fuzz_send(int sock, const void *data, size_t size, const int *fds, size_t n)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (n > 0) {
        memset(&control, 0, sizeof(control));
        msg.msg_control = control.room;
        msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
        CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, n * sizeof(int));
    }
    if (sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == -1)
        return;
}

/* The lowest number that no descriptor has: it grows when one is lost. */
static inline int fuzz_free_fd(void)
{
    int fd = dup(STDIN_FILENO), found = fd;

    FUZZ_MUST(fd != -1);
    fp_close(&fd);
    return found;
}

#endif
