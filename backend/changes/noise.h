/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noise: directories and files whose changes come too often to be watched.
 *
 * A client may use a lease only while no event waits, so the events of one directory cost
 * everybody.  The daemon counts them by watch.  A directory or file that reports too many is left
 * out for a while: its watch ends, and workers make no other one.  Each request then looks at all
 * that depends on such a watch.  Without the watch nobody knows whether the noise goes on.  So
 * the directory or file is watched again after that while, and left out for twice as long if it does.
 *
 * For a directory two kinds of change are distinguished.  Everybody can change the attributes of his
 * own files, even in a directory that he may not write to, and that directory's watch reports it.
 * Where only such reports are too many, the names are watched still.
 *
 * A storm may spread over many files, with few events of each: then few are too many.  This does not
 * hold for names.  A directory whose names are not watched costs everybody below it a look.  So a
 * busy but harmless one, as /tmp, must not be left out because of another one's storm.
 */
#ifndef FP_NOISE_H
#define FP_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits on the events of a watch. */
#define FP_NOISE_WINDOW_MS 1000u
#define FP_NOISE_MANY      500u  /* in a window are too many */
#define FP_NOISE_ALL       4000u /* of all watches in a window: then */
#define FP_NOISE_FEW       64u   /* of one are too many, but for names */

/* Many links may lead to a directory, and an event there concerns them all. Anybody can make such links, so the events
 * are not too many for that. After so many visits of entries in a window, only the links' entries are left out. */
#define FP_NOISE_VISITS (64u * FP_NOISE_MANY)

/* How long a directory or file is left out: at first, and at most. */
#define FP_NOISE_FIRST_MS 10000u
#define FP_NOISE_MOST_MS  1280000u

/*
 * So many directories and files may be left out at a time, and so many of one owner.  More of his, or more than
 * there are places for, and all that he owns is left out.  For root's there is no such rule: everybody's ways
 * lead through root's directories.
 */
#define FP_NOISE_PLACES 1024u
#define FP_NOISE_OWN    256u
#define FP_NOISE_OWNERS 64u

enum fp_left_out {
    FP_LEFT_OUT_NOT,
    FP_LEFT_OUT_LINKED,     /* the object is watched, but not for entries that links, or many names of a file, lead to */
    FP_LEFT_OUT_ATTRIBUTES, /* of a directory its names are watched, of a file nothing */
    FP_LEFT_OUT_WHOLLY
};

/* A directory or file. */
struct fp_noise_object {
    uint64_t dev, ino;
    uint32_t uid; /* its owner */
};

/* ---- how workers see it: shared memory, made before they are forked ---- */

struct fp_noise_list;

/* Returns NULL with errno.  The list lasts as long as the process. */
struct fp_noise_list *fp_noise_list_create(void);
/* In a worker: makes the list read-only for good.  0, or -1 with errno. */
int fp_noise_list_protect(struct fp_noise_list *v);
/*
 * How much is left out of the object.  A reader that runs while the daemon
 * writes may see either state.  It reports to the daemon how much it did have watched, and that counts.
 */
enum fp_left_out fp_noise_list_find(const struct fp_noise_list *v, const struct fp_noise_object *o);

/* ---- the daemon's side ---- */

struct fp_noise;

/* NULL when out of memory. */
struct fp_noise *fp_noise_create(struct fp_noise_list *list);
void fp_noise_destroy(struct fp_noise **n);

/*
 * Counts an event of inotify's watch wd that concerned so many entries: of
 * a name that came or went (names), or of anything else.  FP_LEFT_OUT_NOT,
 * or FP_LEFT_OUT_LINKED after too many entries, or once in a window, after too many events, how much is to be left out.
 */
enum fp_left_out fp_noise_count(struct fp_noise *n, int wd, bool names, size_t entries, uint64_t now_ms);

/* Something that is left out, and for how long. */
struct fp_noise_end {
    uint32_t ms; /* for so long; 0: nothing, as too many are left out */
    bool owner;  /* all that the object's owner owns, */
    bool before; /* and that is so already */
};

/* Leaves the object out from now on, or all that its owner owns. */
struct fp_noise_end fp_noise_leave_out(struct fp_noise *n, const struct fp_noise_object *o, enum fp_left_out what,
                                       uint64_t now_ms);

/* Lets objects be watched again whose time is over. */
void fp_noise_expire(struct fp_noise *n, uint64_t now_ms);

/* How many places are left out now, an owner's being one. */
size_t fp_noise_places(struct fp_noise *n, uint64_t now_ms);

#endif
