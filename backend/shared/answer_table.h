/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of answers for all clients, in memory that the daemon alone writes.
 *
 * A sealed memfd: the head of a ring (ring.h), an index, the ring, whose items are records.
 *
 * A record is a LEAF or a DIR.  Its key is its kind (one byte) and the path.  A LEAF has the last step of the
 * answer about its path.  A DIR has the steps from "/" to a directory, once for all files in it.  It belongs
 * to a LEAF only if its last step has the very slot and generation that the LEAF tells.  Where a directory
 * further up has changed, it is the newer one.  The steps are encoded as in an ANSWER, and a reader decodes a
 * copy.  docs/protocol.md has each field.
 *
 * The index is buckets of eight 64-bit words, one cache line each.  A word has 16 bits of the key's hash
 * (SipHash under a random key) and the record's position in units; 0: none.  A new record takes the word
 * of its key, else one whose record is gone, else the oldest's.  So nothing is ever removed: a word
 * whose record was overwritten is worth nothing, and a reader sees that by the ring's tail.
 *
 * Half a record is never seen.  The writer stores a word (release) after the record's last byte, and a
 * reader loads the word (acquire) before its first.  The reader copies, then looks whether the ring's
 * tail has passed the record meanwhile (ring.h).  Its copy then was the answer when it was published.
 * Each step's slot in the lease table, looked at after the copy, says whether it still is
 * (lease_table.h).
 *
 * A reader that does not map the table may copy half of a word. It then leads to some place of the ring. The
 * reader accepts only a record of its own key there. No other bytes can look like one: a record has numbers
 * with zeros in front of its key, and paths have none.
 *
 * Bytes are arbitrary to a reader: every size is checked against the area before use.
 *
 * Second chance: a record that would be overwritten is appended again under two conditions.  Its last
 * step's generation is current, and a client has used it since.  Clients mark the slots of an answer's
 * last step and of the step above: the LEAF's and the DIR's.
 *
 * Not promised: that an answer the daemon knows is in the table.  A client that finds none asks.
 */
#ifndef FP_ANSWER_TABLE_H
#define FP_ANSWER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/ring.h"

struct fp_answer;
struct fp_chosen;

#define FP_ANSWERS_LEAST (256u * 1024) /* bytes of the ring */

/* ---- the daemon's side ---- */

struct fp_answer_table;

/* True if that is the slot's present generation, and clients used it since the last call. */
typedef bool fp_slot_is_used(void *ctx, uint32_t slot, uint32_t generation);

/* Makes a ring of about so many bytes, and an index for as many records as may lie there.  NULL with
 * errno. */
struct fp_answer_table *fp_answer_table_create(size_t bytes, fp_slot_is_used *is_used, void *ctx);
void fp_answer_table_destroy(struct fp_answer_table **t);

/* The descriptor to send to clients; it stays the table's. */
int fp_answer_table_fd(const struct fp_answer_table *t);

/*
 * Publishes the answer about that path, if it is leasable.  A record that has it already is left; to find
 * that costs two look-ups.
 */
void fp_answer_table_publish(struct fp_answer_table *t, const char *path, size_t len,
                             const struct fp_answer *a);

struct fp_ring_counts fp_answer_table_counts(const struct fp_answer_table *t);

/* ---- a client's side ---- */

struct fp_answer_view;

/* Maps the table.  chosen: of the daemon's access files those that answers are to have; copied.  The descriptor stays
 * the caller's.  NULL with errno; EPROTO: the descriptor is no such table, or not sealed. */
struct fp_answer_view *fp_answer_view_create(int fd, const struct fp_chosen *chosen);
void fp_answer_view_destroy(struct fp_answer_view **v);

/*
 * The answer about a path in normal form.  *a is then a leasable answer from the cache without a descriptor,
 * in itself good.  a->readable says that there is a file; with a->content its content is at a->content_at.  The
 * answer may be used once the lease table is current and each step's slot is valid there, both looked at
 * afterwards.  False if there is none.  No system call, no lock; may be called by several threads.
 */
bool fp_answer_view_find(const struct fp_answer_view *v, const char *path, size_t len, struct fp_answer *a);

/*
 * The steps to a directory in normal form, whose path has len bytes.  a->may_look and a->above_watched are
 * about them.  The rest is as above: they may be used once the lease table says so, looked at afterwards.
 * False if there are none.
 */
bool fp_answer_view_find_dir(const struct fp_answer_view *v, const char *path, size_t len,
                             struct fp_answer *a);

#endif
