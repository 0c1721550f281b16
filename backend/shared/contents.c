/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/path.h"
#include "shared/area.h"
#include "shared/ring.h"
#include "wire/packet.h"

#define MAGIC      0x46504331u /* "FPC1": another layout, another number */
#define COPY_LARGE 131072u     /* bytes, as of malloc(3)'s M_MMAP_THRESHOLD before it grows */

struct item {
    struct fp_ring_item ring; /* len: the path's */
    uint64_t size;            /* the content's */
    char path[];              /* and behind it the content */
};

struct fp_contents {
    struct fp_ring ring;
    const struct fp_contents_ops *ops; /* NULL: none is kept */
    void *ctx;
};

static uint64_t content_at(uint64_t item_at, size_t path_len)
{
    return item_at + sizeof(struct item) + path_len;
}

static bool keep(void *ctx, uint64_t at, const struct fp_ring_item *ring_item)
{
    const struct fp_contents *c = ctx;
    const struct item *item = (const struct item *)ring_item;

    return c->ops != NULL && c->ops->keep(c->ctx, item->path, item->ring.len, content_at(at, item->ring.len));
}

static void moved(void *ctx, uint64_t from, uint64_t to, const struct fp_ring_item *ring_item)
{
    const struct fp_contents *c = ctx;
    const struct item *item = (const struct item *)ring_item;
    const size_t len = item->ring.len;

    c->ops->moved(c->ctx, item->path, len, content_at(from, len), content_at(to, len));
}

static void dropped(void *ctx, uint64_t at, const struct fp_ring_item *ring_item)
{
    const struct fp_contents *c = ctx;
    const struct item *item = (const struct item *)ring_item;

    if (c->ops != NULL)
        c->ops->dropped(c->ctx, item->path, item->ring.len, content_at(at, item->ring.len));
}

static const struct fp_ring_ops ring_ops = { keep, moved, dropped };

size_t fp_contents_most(size_t bytes)
{
    return bytes < FP_CONTENTS_LEAST
               ? 0
               : bytes / FP_RING_SHARE - sizeof(struct item) - FP_MAX_PATH - FP_RING_UNIT;
}

struct fp_contents *fp_contents_create(size_t bytes)
{
    struct fp_contents *c = calloc(1, sizeof(*c));

    if (bytes < FP_CONTENTS_LEAST)
        bytes = FP_CONTENTS_LEAST;
    if (c == NULL || fp_ring_create(&c->ring, "flashpache-contents", MAGIC, 0, bytes, &ring_ops, c))
        return c;
    free(c);
    return NULL;
}

void fp_contents_destroy(struct fp_contents **cp)
{
    if (*cp != NULL)
        fp_ring_destroy(&(*cp)->ring);
    free(*cp);
    *cp = NULL;
}

void fp_contents_set_ops(struct fp_contents *c, const struct fp_contents_ops *ops, void *ctx)
{
    c->ops = ops;
    c->ctx = ctx;
}

int fp_contents_fd(const struct fp_contents *c)
{
    return c->ring.fd;
}

uint64_t fp_contents_put(struct fp_contents *c, const char *path, size_t len, int fd, uint64_t size)
{
    struct item *item;
    uint64_t at;

    if (size == 0 || size > c->ring.size)
        return FP_NO_CONTENT;
    at = fp_ring_append(&c->ring, fp_ring_round(sizeof(*item) + len + (size_t)size));
    if (at == FP_RING_NOWHERE)
        return FP_NO_CONTENT;
    item = (struct item *)fp_ring_at(&c->ring, at);
    if (!fp_area_read(fd, 0, item->path + len, (size_t)size))
        return FP_NO_CONTENT; /* the item stays a filler */
    memcpy(item->path, path, len);
    item->size = size;
    item->ring.len = (uint32_t)len;
    /* A process that hears of the position sees the bytes. */
    atomic_thread_fence(memory_order_release);
    return content_at(at, len);
}

struct fp_ring_counts fp_contents_counts(const struct fp_contents *c)
{
    return fp_ring_counts(&c->ring);
}

/* ---- a client's side ---- */

struct fp_contents_view {
    struct fp_ring_view ring;
};

struct fp_contents_view *fp_contents_view_create(int fd, bool map)
{
    struct fp_contents_view *v = calloc(1, sizeof(*v));

    if (v == NULL || fp_ring_view_open(&v->ring, fd, MAGIC, map))
        return v;
    free(v);
    errno = EPROTO;
    return NULL;
}

void fp_contents_view_destroy(struct fp_contents_view **vp)
{
    if (*vp != NULL)
        fp_area_view_close(&(*vp)->ring.area);
    free(*vp);
    *vp = NULL;
}

bool fp_contents_view_has(const struct fp_contents_view *v, uint64_t at)
{
    return fp_ring_view_is_whole(&v->ring, at);
}

bool fp_contents_view_read(const struct fp_contents_view *v, uint64_t at, void *buf, size_t size)
{
    return fp_ring_view_copy(&v->ring, at, buf, size) && fp_ring_view_is_whole(&v->ring, at);
}

bool fp_contents_read_file(int fd, char *buf, size_t size)
{
    size_t done = 0;

    while (done <= size) {
        const ssize_t n = pread(fd, buf + done, size + 1 - done, (off_t)done);

        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done == size;
}

void *fp_copy_take(size_t size)
{
    void *copy;

    if (size < COPY_LARGE)
        return malloc(size);
    copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return copy != MAP_FAILED ? copy : NULL;
}

void fp_copy_give_back(void *copy, size_t size)
{
    if (size < COPY_LARGE)
        free(copy);
    else if (copy != NULL)
        munmap(copy, size);
}
