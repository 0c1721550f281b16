/* SPDX-License-Identifier: Apache-2.0
 *
 * Partly open load (Schroeder, Wierman and Harchol-Balter, "Open Versus Closed: A Cautionary
 * Tale", NSDI 2006): sessions arrive whatever the server does, but within a session the next
 * request waits for the last answer and a while of thinking. Here: how long sessions are, how
 * long their users think, and whose thinking ends next.
 */
#ifndef BENCH_SESSIONS_H
#define BENCH_SESSIONS_H

#include <stdint.h>

struct bench_args;
struct bench_sessions;

/* For as many sessions at once as there are connections. NULL when there is no memory. */
struct bench_sessions *bench_sessions_create(const struct bench_args *args);
void bench_sessions_destroy(struct bench_sessions **sessions);

/* The number of requests of the next session; at least 1. */
uint64_t bench_sessions_length(struct bench_sessions *sessions);

/* The user's thinking begins at the time `now`. */
void bench_sessions_think(struct bench_sessions *sessions, void *user, uint64_t now);

/* The time when the first thinking user has done so; UINT64_MAX when none thinks. */
uint64_t bench_sessions_due(const struct bench_sessions *sessions);

/* Takes out that first one; there must be one. */
void *bench_sessions_take(struct bench_sessions *sessions);

#endif
