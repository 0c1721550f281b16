/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory in which the daemon tells its askers for how long an answer
 * holds, without a message.
 *
 * Everything the daemon knows of a path has a slot, one 64-bit word: a
 * generation and until when what is told of it may be believed.  An answer names
 * the slot and the generation of each of its steps; whoever keeps the answer (a
 * lease) may use it while all of them still stand there and none has run out,
 * and while the daemon keeps saying that it is up to date: it writes until when
 * the table can be trusted, a few times within each FP_HEARTBEAT_MS.  A daemon that
 * died, hangs or is behind with its events is not believed for longer.  A daemon
 * that looked again and found nothing changed moves the time on, and with it all
 * leases.
 *
 * Two areas, each a memfd of fixed size (sealed, so that a mapping never ends
 * early): the words, which only the daemon can write (F_SEAL_FUTURE_WRITE), and
 * one byte for each slot in which askers mark what they use.  With the second
 * they can harm nothing but the order of eviction and what is looked at again.
 * A table of another size is another table: the old one is given up, which ends
 * all leases on it, and askers get the new one when they connect again.
 *
 * Ordering: generation and time are one word, so they are always of the same
 * moment: no lease sees the time of what came after it.  The daemon changes
 * words first and says "up to date" after (release); an asker reads "up to
 * date" first (acquire) and words after.  So whoever sees a table as fresh until
 * t sees every change that was told before t - FP_HEARTBEAT_MS.  A generation only
 * grows, also when the slot gets another owner, and never comes back: at the
 * greatest the slot is exhausted, holds for nobody and is not used again.
 */
#ifndef FP_LEASE_TABLE_H
#define FP_LEASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FP_NO_SLOT   0u      /* slot 0 belongs to nobody */
#define FP_HEARTBEAT_MS  45u     /* how long "up to date" holds */
#define FP_MAX_SLOTS (1u << 24)
#define FP_SLOT_TICK_MS 16u  /* 32 bits of these are two years: times are compared
                                within one year of each other */

/* ---- the daemon's side ---- */

struct fp_lease_table;

/* n slots, at least 1.  NULL with errno. */
struct fp_lease_table *fp_lease_table_create(uint32_t n);
void fp_lease_table_destroy(struct fp_lease_table **s);

/* As many as it was made with. */
uint32_t fp_lease_table_count(const struct fp_lease_table *s);

/* The descriptors to pass; they stay the table's. */
int fp_lease_table_generations_fd(const struct fp_lease_table *s);
int fp_lease_table_referenced_fd(const struct fp_lease_table *s);

/* All leases on it end; the table itself goes with its last user. */
void fp_lease_table_retire(struct fp_lease_table *s);

/* A slot, FP_NO_SLOT when all are taken. */
uint32_t fp_lease_table_take(struct fp_lease_table *s);
/* Ends all leases on it.  FP_NO_SLOT is allowed, here and below. */
void fp_lease_table_release(struct fp_lease_table *s, uint32_t slot);

uint32_t fp_lease_table_generation(const struct fp_lease_table *s, uint32_t slot);
/* What it was taken for has changed: ends all leases on it. */
void fp_lease_table_invalidate(struct fp_lease_table *s, uint32_t slot);
/* No lease on it will hold any more: release it and take another one. */
bool fp_lease_table_is_exhausted(const struct fp_lease_table *s, uint32_t slot);
/* Until when leases on it hold, in milliseconds of CLOCK_MONOTONIC, at most
 * FP_SLOT_TICK_MS less. */
void fp_lease_table_set_expiry(struct fp_lease_table *s, uint32_t slot, uint64_t expires_ms);

/* Has an asker used it since this was last asked? */
bool fp_lease_table_take_referenced(struct fp_lease_table *s, uint32_t slot);
/* Has any lease been used since this was last asked? */
bool fp_lease_table_take_use(struct fp_lease_table *s);

/* All changes before now_ms have been told. */
void fp_lease_table_heartbeat(struct fp_lease_table *s, uint64_t now_ms);

/* ---- an asker's side ---- */

struct fp_lease_view;

/*
 * Maps both; the descriptors stay the caller's.  One reference is the
 * caller's.  NULL with errno; EPROTO: that is no such table, or not sealed.
 */
struct fp_lease_view *fp_lease_view_create(int generations, int marks);
/* Is that the table of those generations? */
bool fp_lease_view_is_of(const struct fp_lease_view *v, int generations);
void fp_lease_view_retain(struct fp_lease_view *v);
/* Drops *v's reference and leaves NULL; the last one unmaps. */
void fp_lease_view_release(struct fp_lease_view **v);

/* Is the table up to date? */
bool fp_lease_view_is_current(const struct fp_lease_view *v, uint64_t now_ms);
/* Was it less than silence_ms ago?  Of a table that was given up, never. */
bool fp_lease_view_is_alive(const struct fp_lease_view *v, uint64_t now_ms, uint32_t silence_ms);
/* After the table was found to be up to date at now_ms: is this still the slot's
 * generation, and believed? */
bool fp_lease_view_is_valid(const struct fp_lease_view *v, uint32_t slot, uint32_t generation,
                         uint64_t now_ms);
/* A lease that ends in this slot was used. */
void fp_lease_view_reference(const struct fp_lease_view *v, uint32_t slot);

#endif
