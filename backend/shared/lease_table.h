/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory through which the daemon says, without a message, for how long its answers are
 * valid.
 *
 * Each entry of the cache has a slot, one 64-bit word: a generation and an expiry.  An answer
 * names the slot and the generation of each of its steps.  A client may keep the answer (a
 * lease).  It may use that while all of these generations are current, none has expired, and the
 * daemon goes on writing its heartbeat.  The heartbeat is the time until which the table can be
 * trusted, written a few times within each FP_HEARTBEAT_MS.  A daemon that died, hangs or is behind
 * with its events is not trusted for longer.  A daemon that revalidates an entry and finds no change
 * moves its expiry, and with it all leases on the slot.
 *
 * There are two areas, each a memfd of fixed size, sealed so that a mapping stays whole.  One has the
 * words, which only the daemon can write (F_SEAL_FUTURE_WRITE).  The other has one byte a slot, which
 * clients set to say that they used it ("referenced").  With those bytes a client can harm nothing but
 * the order of eviction and of refreshes.  A table of another size is another table.  The daemon then
 * retires the old one, which ends all leases on it, and clients get the new one when they connect
 * again.
 *
 * A client sees a change at once.  The kernel queues an event before the call that made the change
 * returns.  The client has an epoll set that holds the daemon's queues: it can ask whether they
 * are empty, and read nothing from them.  The daemon sets busy before it reads a queue and clears it
 * after the last word that the events concern.  So a client that finds the queues empty, then not
 * busy, sees in the words every change whose call returned before it looked.  The set also
 * holds the reading end of a pipe whose other end the daemon alone has.  Once the daemon is gone
 * that end is ready for ever, and queues that went with the daemon are not taken for empty ones.
 *
 * Ordering: generation and expiry are one word, so they are always of the same moment.  The
 * daemon changes words first; after them it clears busy and writes the heartbeat (release).  A client
 * looks at the queues, reads busy and the heartbeat (acquire), and words after them.  The heartbeat
 * bounds the harm of a spoilt set.  A client for which the table is current until t sees every change
 * that was reported before t - FP_HEARTBEAT_MS.  A generation only grows, also
 * when the slot gets another owner, and never comes back.  At the greatest generation the slot is
 * exhausted, valid for nobody and not taken again.
 */
#ifndef FP_LEASE_TABLE_H
#define FP_LEASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define FP_NO_SLOT      0u  /* slot 0 belongs to nobody */
#define FP_HEARTBEAT_MS 45u /* for how long a heartbeat makes the table current */
#define FP_MAX_SLOTS    (1u << 24)
#define FP_SLOT_TICK_MS 16u /* 32 bits of these are two years */
/* An expiry is at most so many ticks ahead (three days, more than
 * any TTL); one that seems to lie farther ahead lies behind. */
#define FP_SLOT_TICKS_AHEAD (1u << 24)

/* ---- the daemon's side ---- */

struct fp_lease_table;

/* Makes a table of n slots, at least 1.  NULL with errno. */
struct fp_lease_table *fp_lease_table_create(uint32_t n);
void fp_lease_table_destroy(struct fp_lease_table **t);


/* The descriptors to send to clients; they stay the table's. */
int fp_lease_table_generations_fd(const struct fp_lease_table *t);
int fp_lease_table_referenced_fd(const struct fp_lease_table *t);

/* Ends all leases on the table; its memory goes with the last client that maps it. */
void fp_lease_table_retire(struct fp_lease_table *t);

/* Takes a slot; FP_NO_SLOT when all are taken. */
uint32_t fp_lease_table_take(struct fp_lease_table *t);
/* Gives the slot back and ends all leases on it.  FP_NO_SLOT is allowed, here and below. */
void fp_lease_table_release(struct fp_lease_table *t, uint32_t slot);

/* The generation that a lease on the slot has to have now; not for FP_NO_SLOT. */
uint32_t fp_lease_table_generation(const struct fp_lease_table *t, uint32_t slot);
/* Ends all leases on the slot, because its entry has changed. */
void fp_lease_table_invalidate(struct fp_lease_table *t, uint32_t slot);
/* True if no lease on the slot can be valid any more: release it and take another one. */
bool fp_lease_table_is_exhausted(const struct fp_lease_table *t, uint32_t slot);
/* expires_ms: in milliseconds of CLOCK_MONOTONIC, rounded down to FP_SLOT_TICK_MS. */
void fp_lease_table_set_expiry(struct fp_lease_table *t, uint32_t slot, uint64_t expires_ms);

/* True if a client has used the slot since the last call. */
bool fp_lease_table_take_referenced(struct fp_lease_table *t, uint32_t slot);
/* True if a client has used the slot since this reader's own last call. */
enum fp_lease_reader { FP_READER_ANSWERS = 2, FP_READER_CONTENTS = 4 };
bool fp_lease_table_take_recent(struct fp_lease_table *t, uint32_t slot, enum fp_lease_reader reader);
/* fp_lease_table_take_recent() as FP_READER_ANSWERS, if that is the slot's present generation; table: the
 * lease table. */
bool fp_lease_table_is_used(void *table, uint32_t slot, uint32_t generation);
/* True if any lease has been used since the last call. */
bool fp_lease_table_take_use(struct fp_lease_table *t);

/* To be called around reading the queues of events, until all words that they concern are written. */
void fp_lease_table_set_busy(struct fp_lease_table *t);
void fp_lease_table_clear_busy(struct fp_lease_table *t);

/* To be called when all changes before now_ms have been applied. */
void fp_lease_table_heartbeat(struct fp_lease_table *t, uint64_t now_ms);

/* How long after a change that nobody reports an answer of before it may be used at most, the duration of a
 * walk included.  0, as at first: unknown. */
void fp_lease_table_set_unreported(struct fp_lease_table *t, uint64_t ms);

/* ---- a client's side ---- */

struct fp_lease_view;
struct fp_answer_view;
struct fp_contents_view;

/*
 * Maps both areas.  events is the epoll set that came with them.  alive is the end of the pipe that it
 * holds, for a set forgets descriptors that nobody has open.  The descriptors stay the caller's.
 * One reference is the caller's.  NULL with errno; EPROTO: the descriptors are no such table, or not sealed.
 */
struct fp_lease_view *fp_lease_view_create(int generations, int referenced, int events, int alive);
/* Attaches the tables that came with it, or NULL for either; the view
 * owns them then.  To be called once, before the view is shared. */
void fp_lease_view_attach(struct fp_lease_view *v, struct fp_answer_view *answers,
                          struct fp_contents_view *contents);
/* The answers whose slots it has, and their contents; they live as long as the view. */
const struct fp_answer_view *fp_lease_view_answers(const struct fp_lease_view *v);
const struct fp_contents_view *fp_lease_view_contents(const struct fp_lease_view *v);
/* As fp_lease_table_set_unreported(). */
uint64_t fp_lease_view_unreported_ms(const struct fp_lease_view *v);
/* Tells the view from all others that this process makes, those that have ended included. 0: v is NULL. */
uint64_t fp_lease_view_number(const struct fp_lease_view *v);
/* The client has another view now: the daemon has other tables, or there is another daemon. Leases on this
 * one do not become current again. */
void fp_lease_view_supersede(struct fp_lease_view *v);
bool fp_lease_view_is_superseded(const struct fp_lease_view *v);
/* True if the view maps those generations. */
bool fp_lease_view_is_of(const struct fp_lease_view *v, int generations);
void fp_lease_view_retain(struct fp_lease_view *v);
/* Drops *v's reference and leaves NULL; the last one unmaps. */
void fp_lease_view_release(struct fp_lease_view **v);

/* True if the words show every change until now: no event waits, and the last heartbeat still
 * counts.  One system call. */
bool fp_lease_view_is_current(const struct fp_lease_view *v, uint64_t now_ms);
/* True if the heartbeat does not count any more: then the view is not current.  No system call. */
bool fp_lease_view_is_overdue(const struct fp_lease_view *v, uint64_t now_ms);
/* True if a heartbeat counted less than silence_ms ago; never for a retired table. */
bool fp_lease_view_is_alive(const struct fp_lease_view *v, uint64_t now_ms, uint32_t silence_ms);
/* To be called for a table that is current at now_ms.  True if this is still the slot's
 * generation and has not expired. */
bool fp_lease_view_is_valid(const struct fp_lease_view *v, uint32_t slot, uint32_t generation,
                            uint64_t now_ms);
/* How many ms that is true for, about, if nothing changes; 0: it is not true. */
uint64_t fp_lease_view_ms_left(const struct fp_lease_view *v, uint32_t slot, uint32_t generation, uint64_t now_ms);
/* True if this is still the slot's generation, whether or not it has expired. */
bool fp_lease_view_is_known(const struct fp_lease_view *v, uint32_t slot, uint32_t generation);
/* Says that a lease on this slot was used. */
void fp_lease_view_reference(const struct fp_lease_view *v, uint32_t slot);

#endif
