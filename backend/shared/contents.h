/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of small files in memory that the daemon writes and all clients read.
 *
 * A sealed memfd with a ring (ring.h), without an index: an answer says where its file's content
 * lies.  An item is its ring header, whose len is the path's, the content's length, the path and the
 * content.  That length has 64 bits in the machine's byte order.  The path is for the writer, who
 * asks by it whether a content that is about to be overwritten is in use.
 *
 * A content is whole, and the one that the answer meant, if the ring's tail is not beyond its
 * position after it was read.  Whether the answer still holds is for the lease table to say.
 */
#ifndef FP_CONTENTS_H
#define FP_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/ring.h"

#define FP_CONTENTS_LEAST 65536u        /* bytes of the ring; a smaller one is never used */
#define FP_NO_CONTENT     ((uint64_t)0) /* no content's position */

/* ---- the daemon's side ---- */

struct fp_contents;

struct fp_contents_ops {
    /* True if the content at that position is in use, and shall have another position. */
    bool (*keep)(void *ctx, const char *path, size_t len, uint64_t at);
    /* The content has another position now. */
    void (*moved)(void *ctx, const char *path, size_t len, uint64_t from, uint64_t to);
    /* The content has no other position, and is about to be overwritten. */
    void (*dropped)(void *ctx, const char *path, size_t len, uint64_t at);
};

/* The largest file whose content a ring of about so many bytes takes; 0: the ring is too small for any. */
size_t fp_contents_most(size_t bytes);

/* Makes a ring of about so many bytes.  NULL with errno. */
struct fp_contents *fp_contents_create(size_t bytes);
void fp_contents_destroy(struct fp_contents **c);
/* To be called before the first content. */
void fp_contents_set_ops(struct fp_contents *c, const struct fp_contents_ops *ops, void *ctx);

/* The descriptor to send to clients; it stays the ring's. */
int fp_contents_fd(const struct fp_contents *c);

/* Copies the size bytes, at least 1, of a memfd, as the content of the file at path.  Returns its position.
 * FP_NO_CONTENT: it is larger than a quarter of the ring, or the memfd is shorter. */
uint64_t fp_contents_put(struct fp_contents *c, const char *path, size_t len, int fd, uint64_t size);

struct fp_ring_counts fp_contents_counts(const struct fp_contents *c);

/* ---- a client's side ---- */

struct fp_contents_view;

/*
 * map: map all of it, for processes with many threads (area.h).  The descriptor stays the caller's.  NULL
 * with errno; EPROTO: the descriptor is no such ring, or not sealed.
 */
struct fp_contents_view *fp_contents_view_create(int fd, bool map);
void fp_contents_view_destroy(struct fp_contents_view **v);

/* True if the content at that position has not been overwritten yet.  No system call. */
bool fp_contents_view_has(const struct fp_contents_view *v, uint64_t at);
/* Copies the size bytes of the content at that position of an answer.  False: it has been overwritten, or
 * cannot be one; buf has anything then.  May be called by several threads. */
bool fp_contents_view_read(const struct fp_contents_view *v, uint64_t at, void *buf, size_t size);

/* Reads all of the file, of size bytes, for an answer with its descriptor. buf has one byte more. False: it
 * has another length, or cannot be read. */
bool fp_contents_read_file(int fd, char *buf, size_t size);

/* Memory for a copy.  The system has a large one back as soon as it is given back: malloc(3) would keep it,
 * in each of a thousand children.  NULL if there is none. */
void *fp_copy_take(size_t size);
/* size: as it was taken.  copy may be NULL. */
void fp_copy_give_back(void *copy, size_t size);

#endif
