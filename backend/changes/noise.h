/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noise: directories and files whose changes come too often to be watched.
 *
 * A client may use a lease only while no event waits, so the events of one directory cost
 * everybody.  The daemon counts them by watch.  One that reports too many is left out for a
 * while: its watch ends, and workers make no other one.  What depends on such a watch is then
 * looked at for each request.  While it is not watched nobody knows whether the noise goes on: so
 * it is watched again after that while, and left out for twice as long if it goes on.
 *
 * Of a directory two things are told apart.  Everybody can change the attributes of what is his
 * own, be it in a directory that he may not write to, and that directory's watch reports it.
 * Where only such reports are too many, names go on to be watched.
 *
 * A storm may spread over many files, with few events of each: then few are too many.  Of names they
 * are not: a directory whose names are not watched costs everybody below it a look, and one
 * that is busy without harm, as /tmp, must not be left out because of another one's storm.
 */
#ifndef FP_NOISE_H
#define FP_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the events of a watch. */
#define FP_NOISE_WINDOW_MS 1000u
#define FP_NOISE_MANY      500u  /* in a window are too many */
#define FP_NOISE_ALL       4000u /* of all watches in a window: then */
#define FP_NOISE_FEW       64u   /* of one are too many, but for names */

/* How long one is left out: at first, and at most. */
#define FP_NOISE_FIRST_MS 10000u
#define FP_NOISE_MOST_MS  1280000u

#define FP_NOISE_PLACES 1024 /* that may be left out at a time */

enum fp_left_out {
    FP_LEFT_OUT_NOT,
    FP_LEFT_OUT_ATTRIBUTES, /* of a directory its names are watched, of a file nothing */
    FP_LEFT_OUT_WHOLLY
};

/* ---- how workers see it: shared memory, made before they are forked ---- */

struct fp_noise_view;

/* NULL with errno; it lasts as long as the process. */
struct fp_noise_view *fp_noise_view_create(void);
/* In a worker: it can only read from now on.  0, or -1 with errno. */
int fp_noise_view_protect(struct fp_noise_view *v);
/*
 * What is left out of the object with that device and inode.  A reader that runs while the daemon
 * writes may see either state: it tells the daemon what it did have watched, and that counts.
 */
enum fp_left_out fp_noise_view_find(const struct fp_noise_view *v, uint64_t dev, uint64_t ino);

/* ---- the daemon's side ---- */

struct fp_noise;

/* NULL when out of memory. */
struct fp_noise *fp_noise_create(struct fp_noise_view *view);
void fp_noise_destroy(struct fp_noise **n);

/*
 * Counts an event of inotify's watch wd: of a name that came or went (names), or of anything
 * else.  Not FP_LEFT_OUT_NOT: these were too many, and so much is to be left out.  It says so once
 * in a window.
 */
enum fp_left_out fp_noise_count(struct fp_noise *n, int wd, bool names, uint64_t now_ms);

/* Leaves it out from now on.  For how many milliseconds; 0: too many are. */
uint32_t fp_noise_leave_out(struct fp_noise *n, uint64_t dev, uint64_t ino, enum fp_left_out what,
                            uint64_t now_ms);

/* Those whose time is over may be watched again. */
void fp_noise_expire(struct fp_noise *n, uint64_t now_ms);

/* How many are left out now. */
size_t fp_noise_places(struct fp_noise *n, uint64_t now_ms);

#endif
