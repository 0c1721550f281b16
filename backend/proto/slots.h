/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory in which the daemon tells its askers that an answer holds no
 * longer, without a message.
 *
 * Everything the daemon knows of a path has a slot with a generation in it.  An
 * answer names the slot and the generation of each of its steps; whoever keeps
 * the answer (a lease) may use it while all of them still stand there, and
 * while the daemon keeps saying that it is up to date: it writes until when
 * the table can be trusted, a few times within each FP_FRESH_MS.  A daemon
 * that died, hangs or is behind with its events is not believed for longer.
 *
 * Two areas, each a memfd of fixed size (sealed, so that a mapping never ends
 * early): the generations, which only the daemon can write (F_SEAL_FUTURE_WRITE),
 * and one byte for each slot in which askers mark what they use.  With the
 * second they can harm nothing but the order of eviction.
 *
 * Ordering: the daemon changes generations first and says "up to date" after
 * (release); an asker reads "up to date" first (acquire) and generations
 * after.  So whoever sees a table as fresh until t sees every change that was
 * told before t - FP_FRESH_MS.  A slot's generation only grows, also when the
 * slot gets another owner: it comes back after 2^32 changes of that one slot.
 */
#ifndef FP_SLOTS_H
#define FP_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FP_NO_SLOT   0u      /* slot 0 belongs to nobody */
#define FP_FRESH_MS  45u     /* how long "up to date" holds */
#define FP_MAX_SLOTS (1u << 24)

/* ---- the daemon's side ---- */

struct fp_slots;

/* n slots, at least 1.  NULL with errno. */
struct fp_slots *fp_slots_create(uint32_t n);
void fp_slots_destroy(struct fp_slots **s);

/* The descriptors to pass; they stay the table's. */
int fp_slots_generations_fd(const struct fp_slots *s);
int fp_slots_marks_fd(const struct fp_slots *s);

/* A slot, FP_NO_SLOT when all are taken. */
uint32_t fp_slots_take(struct fp_slots *s);
/* Ends all leases on it.  FP_NO_SLOT is allowed, here and below. */
void fp_slots_release(struct fp_slots *s, uint32_t slot);

uint32_t fp_slots_generation(const struct fp_slots *s, uint32_t slot);
/* What it was taken for has changed: ends all leases on it. */
void fp_slots_bump(struct fp_slots *s, uint32_t slot);

/* Has an asker used it since this was last asked? */
bool fp_slots_take_mark(struct fp_slots *s, uint32_t slot);
/* Has any lease been used since this was last asked? */
bool fp_slots_take_use(struct fp_slots *s);

/* All changes before now_ms have been told. */
void fp_slots_publish(struct fp_slots *s, uint64_t now_ms);

/* ---- an asker's side ---- */

struct fp_slots_view;

/*
 * Maps both; the descriptors stay the caller's.  One reference is the
 * caller's.  NULL with errno; EPROTO: that is no such table, or not sealed.
 */
struct fp_slots_view *fp_slots_view_create(int generations, int marks);
/* Is that the table of those generations? */
bool fp_slots_view_is(const struct fp_slots_view *v, int generations);
void fp_slots_view_retain(struct fp_slots_view *v);
/* Drops *v's reference and leaves NULL; the last one unmaps. */
void fp_slots_view_release(struct fp_slots_view **v);

/* Is the table up to date? */
bool fp_slots_view_fresh(const struct fp_slots_view *v, uint64_t now_ms);
/* After the table was found to be up to date: is this still the slot's generation? */
bool fp_slots_view_holds(const struct fp_slots_view *v, uint32_t slot, uint32_t generation);
/* A lease that ends in this slot was used. */
void fp_slots_view_mark(const struct fp_slots_view *v, uint32_t slot);

#endif
