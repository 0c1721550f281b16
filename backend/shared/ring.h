/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of items in shared memory: one process appends, others read without a lock.
 *
 * Bytes have positions that only grow: position p lies at p % size.  Items are appended at the
 * head; at the tail the oldest is overwritten.  Each begins at a multiple of FP_RING_UNIT and
 * is as long as a multiple of it.  None wraps around the end: a filler takes the rest.
 *
 * A reader copies an item, and then looks at the tail: if the item's position is not below it,
 * the copy is whole.  For the writer moves the tail past an item before it overwrites its first
 * byte, and a position never comes back.  A reader that dies in the middle holds nothing.
 *
 * Ordering: the writer stores the tail, a full fence, then bytes.  The fence is a full one, since large
 * copies may use stores that no release orders.  A reader loads bytes, an acquire fence, then the tail.  If
 * any loaded byte is of a later item, the tail that it loads is beyond the former one.  A place is published
 * (index, message) by a store with release after the item's last byte.
 *
 * Second chance: the owner may have an item that is about to go appended again, as CLOCK does.  Each
 * append keeps at most FP_RING_KEEP items and, but for the last, FP_RING_KEEP_BYTES.
 */
#ifndef FP_RING_H
#define FP_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/area.h"

#define FP_RING_UNIT       16u
#define FP_RING_SHARE      4u /* an item has at most this part of the ring */
#define FP_RING_KEEP       8u
#define FP_RING_KEEP_BYTES (256u * 1024)
#define FP_RING_NOWHERE    0u /* no item's position */

/* The first bytes of an area that holds a ring. */
struct fp_ring_head {
    uint32_t magic;     /* which area, and in which layout */
    uint32_t n_buckets; /* of the index behind the head; a power of two, or 0 if there is none */
    uint64_t data;      /* the ring's offset in the area, */
    uint64_t size;      /* and its bytes: a multiple of FP_RING_UNIT */
    uint8_t key[16];    /* of the index's hash */
    uint8_t zero[24];
    _Atomic uint64_t tail; /* in a cache line without the others, which never change */
    uint8_t rest[56];
};
_Static_assert(sizeof(struct fp_ring_head) == 128, "docs/protocol.md says so");

/* The first bytes of each item. */
struct fp_ring_item {
    uint32_t size; /* bytes, these included */
    uint32_t len;  /* the owner's; 0: a filler */
};

/* ---- the writer's side ---- */

struct fp_ring_ops {
    /* True if the item, which is about to be overwritten, shall be appended again. */
    bool (*keep)(void *ctx, uint64_t at, const struct fp_ring_item *item);
    /* The item was appended again. */
    void (*moved)(void *ctx, uint64_t from, uint64_t to, const struct fp_ring_item *item);
    /* The item was not appended again, and is about to be overwritten; may be NULL. */
    void (*dropped)(void *ctx, uint64_t at, const struct fp_ring_item *item);
};

struct fp_ring {
    struct fp_ring_head *area;
    uint8_t *bytes;
    uint64_t size, head, tail;
    const struct fp_ring_ops *ops;
    void *ctx;
    void *buf; /* for an item on its way from tail to head */
    size_t buf_size;
    int fd; /* of the area */
    uint64_t kept, dropped; /* items that were appended again, and that were not */
};

struct fp_ring_counts {
    uint64_t kept, overwritten; /* items */
    size_t bytes; /* of the ring that were ever written: memory in use, but for the index */
};

/* Makes a ring in memory of zeros whose head says where it lies; the memory stays the caller's. */
void fp_ring_init(struct fp_ring *r, struct fp_ring_head *area, const struct fp_ring_ops *ops, void *ctx);
/* Makes an area of that name, with room for an index, and in it a ring of about so many bytes.  The area can be
 * written by this process alone.  False with errno. */
bool fp_ring_create(struct fp_ring *r, const char *name, uint32_t magic, size_t index, size_t bytes,
                    const struct fp_ring_ops *ops, void *ctx);
/* Gives up such a ring and its area. */
void fp_ring_destroy(struct fp_ring *r);
struct fp_ring_counts fp_ring_counts(const struct fp_ring *r);

/*
 * Makes room at the head for an item of so many bytes, by overwriting the oldest items.  Returns its
 * position, for fp_ring_at(); the caller fills in all of it at once.  The item is a filler until then.
 * FP_RING_NOWHERE: it is larger than the ring allows.
 */
uint64_t fp_ring_append(struct fp_ring *r, size_t size);
struct fp_ring_item *fp_ring_at(const struct fp_ring *r, uint64_t at);
/* True while an item at that position has not been overwritten. */
bool fp_ring_has(const struct fp_ring *r, uint64_t at);

/* n, rounded up to whole units. */
size_t fp_ring_round(size_t n);

/* ---- a reader's side ---- */

/* The area, and the numbers that a reader may rely on once it has checked them. */
struct fp_ring_view {
    struct fp_area_view area;
    uint64_t data, size;
};

/* Checks the head of the area, which is mapped at least.  False: the area is no ring, or not all of the ring
 * lies inside. */
bool fp_ring_view_init(struct fp_ring_view *v, const struct fp_area_view *area, uint32_t magic);
/* Opens the area of a descriptor, which stays the caller's, for fp_area_view_close().  map: maps all of it.  False
 * with EPROTO: the descriptor is no such area, or not sealed. */
bool fp_ring_view_open(struct fp_ring_view *v, int fd, uint32_t magic, bool map);

/* Copies the item there, whole, if it has at most capacity bytes.  Returns its size; 0: no item can lie
 * there, or it has been overwritten. */
size_t fp_ring_view_item(const struct fp_ring_view *v, uint64_t at, void *to, size_t capacity);
/* Copies bytes, of which none may be good; false: they do not lie inside the ring, or cannot be read. */
bool fp_ring_view_copy(const struct fp_ring_view *v, uint64_t at, void *to, size_t n);
/* True if a copy from there, made before, is whole. */
bool fp_ring_view_is_whole(const struct fp_ring_view *v, uint64_t at);

#endif
