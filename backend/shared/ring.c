/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "wire/packet.h"

size_t fp_ring_round(size_t n)
{
    return (n + FP_RING_UNIT - 1) / FP_RING_UNIT * FP_RING_UNIT;
}

/* ---- the writer's side ---- */

/* The first position is that of the second lap: none is FP_RING_NOWHERE. */
void fp_ring_init(struct fp_ring *r, struct fp_ring_head *area, const struct fp_ring_ops *ops, void *ctx)
{
    *r = (struct fp_ring){ .area = area, .size = area->size, .ops = ops, .ctx = ctx };
    r->bytes = (uint8_t *)area + area->data;
    r->head = r->tail = r->size;
    atomic_store_explicit(&area->tail, r->tail, memory_order_release);
}

bool fp_ring_create(struct fp_ring *r, const char *name, uint32_t magic, size_t index, size_t bytes,
                    const struct fp_ring_ops *ops, void *ctx)
{
    const size_t data = sizeof(struct fp_ring_head) + index, size = fp_ring_round(bytes);
    int fd;
    struct fp_ring_head *area = fp_area_create(name, data + size, F_SEAL_FUTURE_WRITE, &fd);

    if (area == NULL)
        return false;
    area->magic = magic;
    area->data = data;
    area->size = size;
    fp_ring_init(r, area, ops, ctx);
    r->fd = fd;
    return true;
}

void fp_ring_destroy(struct fp_ring *r)
{
    fp_area_unmap(r->area, r->area->data + r->area->size);
    fp_close(&r->fd);
    free(r->buf);
}

struct fp_ring_counts fp_ring_counts(const struct fp_ring *r)
{
    const uint64_t written = r->head - r->size;

    return (struct fp_ring_counts){ r->kept, r->dropped, (size_t)(written < r->size ? written : r->size) };
}

struct fp_ring_item *fp_ring_at(const struct fp_ring *r, uint64_t at)
{
    return (struct fp_ring_item *)(void *)(r->bytes + at % r->size);
}

bool fp_ring_has(const struct fp_ring *r, uint64_t at)
{
    return at >= r->tail && at < r->head;
}

/* The rest of the lap, if an item of that size does not fit there; else 0. */
static uint64_t filler_for(const struct fp_ring *r, uint64_t size)
{
    const uint64_t left = r->size - r->head % r->size;

    return size > left ? left : 0;
}

static bool has_room(const struct fp_ring *r, uint64_t size)
{
    return filler_for(r, size) + size <= r->size - (r->head - r->tail);
}

/* Moves the tail: the item there may be overwritten from now on, see ring.h. */
static void pass(struct fp_ring *r, uint64_t size)
{
    r->tail += size;
    atomic_store_explicit(&r->area->tail, r->tail, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

static void drop(struct fp_ring *r)
{
    const struct fp_ring_item *item = fp_ring_at(r, r->tail);

    if (item->len != 0) {
        r->dropped++;
        if (r->ops->dropped != NULL)
            r->ops->dropped(r->ctx, r->tail, item);
    }
    pass(r, item->size);
}

static void put_filler(struct fp_ring *r, uint64_t size)
{
    *fp_ring_at(r, r->head) = (struct fp_ring_item){ (uint32_t)size, 0 };
    r->head += size;
}

/* Places an item at the head, which has room for it. */
static uint64_t place(struct fp_ring *r, uint64_t size)
{
    const uint64_t filler = filler_for(r, size);
    uint64_t at;

    if (filler > 0)
        put_filler(r, filler);
    at = r->head;
    put_filler(r, size);
    return at;
}

/* Copies the oldest item; NULL: no memory. */
static struct fp_ring_item *take_out(struct fp_ring *r, const struct fp_ring_item *item)
{
    if (item->size > r->buf_size) {
        void *buf = realloc(r->buf, item->size);

        if (buf == NULL)
            return NULL;
        r->buf = buf;
        r->buf_size = item->size;
    }
    return memcpy(r->buf, item, item->size);
}

/* Other items go for the one that is kept, without being asked about: so this comes to an end. */
static bool keep_oldest(struct fp_ring *r)
{
    const uint64_t from = r->tail;
    const struct fp_ring_item *item = fp_ring_at(r, from);
    uint64_t to;

    if (item->len == 0 || !r->ops->keep(r->ctx, from, item) || (item = take_out(r, item)) == NULL)
        return false;
    pass(r, item->size);
    while (!has_room(r, item->size))
        drop(r);
    to = place(r, item->size);
    memcpy(fp_ring_at(r, to), item, item->size);
    r->kept++;
    r->ops->moved(r->ctx, from, to, item);
    return true;
}

uint64_t fp_ring_append(struct fp_ring *r, size_t size)
{
    unsigned kept = 0;
    uint64_t bytes = 0;

    if (size > r->size / FP_RING_SHARE || size < sizeof(struct fp_ring_item) || size % FP_RING_UNIT != 0)
        return FP_RING_NOWHERE;
    while (!has_room(r, size)) {
        const uint32_t oldest = fp_ring_at(r, r->tail)->size;

        if (kept < FP_RING_KEEP && bytes < FP_RING_KEEP_BYTES && keep_oldest(r)) {
            kept++;
            bytes += oldest;
        } else {
            drop(r);
        }
    }
    return place(r, size);
}

/* ---- a reader's side ---- */

static const struct fp_ring_head *head_of(const struct fp_area_view *area)
{
    return (const void *)area->bytes;
}

bool fp_ring_view_init(struct fp_ring_view *v, const struct fp_area_view *area, uint32_t magic)
{
    const struct fp_ring_head *head = head_of(area);
    /* Each is read once: the checked values are the used ones. */
    const uint64_t data = head->data, size = head->size;

    if (head->magic != magic || data < sizeof(*head) || data > area->size || size == 0
        || size > area->size - data || data % FP_RING_UNIT != 0 || size % FP_RING_UNIT != 0)
        return false;
    *v = (struct fp_ring_view){ *area, data, size };
    return true;
}

bool fp_ring_view_open(struct fp_ring_view *v, int fd, uint32_t magic, bool map)
{
    struct fp_area_view area;

    if (fp_area_view_open(&area, fd, sizeof(struct fp_ring_head), map) && fp_ring_view_init(v, &area, magic))
        return true;
    fp_area_view_close(&area);
    errno = EPROTO;
    return false;
}

/* True if n bytes at that position lie in one piece inside the ring. */
static bool is_inside(const struct fp_ring_view *v, uint64_t at, uint64_t n)
{
    return n <= v->size && at % v->size <= v->size - n;
}

/* The size that is checked is the copy's. */
size_t fp_ring_view_item(const struct fp_ring_view *v, uint64_t at, void *to, size_t capacity)
{
    struct fp_ring_item item;

    if (at % FP_RING_UNIT != 0 || !fp_ring_view_copy(v, at, &item, sizeof(item)))
        return 0;
    if (item.len == 0 || item.size < sizeof(item) || !is_inside(v, at, item.size))
        return 0;
    if (item.size <= capacity) {
        if (!fp_ring_view_copy(v, at, to, item.size))
            return 0;
        memcpy(to, &item, sizeof(item));
    }
    return fp_ring_view_is_whole(v, at) ? item.size : 0;
}

bool fp_ring_view_copy(const struct fp_ring_view *v, uint64_t at, void *to, size_t n)
{
    return is_inside(v, at, n) && fp_area_view_copy(&v->area, (size_t)(v->data + at % v->size), to, n);
}

bool fp_ring_view_is_whole(const struct fp_ring_view *v, uint64_t at)
{
    atomic_thread_fence(memory_order_acquire);
    return at >= atomic_load_explicit(&head_of(&v->area)->tail, memory_order_relaxed);
}
