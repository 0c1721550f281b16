/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that writes warm_file.  A disk may make it wait, which the daemon never does.  It runs as the
 * daemon's user, has no filter, and writes that one file.  A
 * compromised daemon decides what is in it, not where it lies.
 */
#ifndef FP_LISTER_H
#define FP_LISTER_H

#include <stdbool.h>

struct fp_lister {
    int sock;         /* readable: fp_lister_hear() has a result; -1: there is no such process */
    unsigned unheard; /* lists without a result */
};
#define FP_LISTER_NONE \
    { \
        .sock = -1 \
    }

/* Forks it.  The calling process must have one thread.  file must
 * outlive the process; lent_log as in child.h.  0, or -1 with errno. */
int fp_lister_start(struct fp_lister *l, const char *file, bool lent_log);

/* Has the bytes of a memfd written to a file beside the list, which then takes
 * its name.  So the name always leads to a whole list.  fd stays the caller's,
 * who must not change the bytes.  Does not wait.  0, or -1 with errno. */
int fp_lister_write(struct fp_lister *l, int fd);

/* The result of the oldest list that has none: 0, or -1 with errno.  Waits for it so many milliseconds; then
 * ETIMEDOUT.  EPIPE: the process has ended. */
int fp_lister_hear(struct fp_lister *l, int ms);

/* Ends the process once it has written what it was given.
 * Waits for its end only if it has nothing to write. */
void fp_lister_stop(struct fp_lister *l);

#endif
