/* SPDX-License-Identifier: Apache-2.0
 *
 * How slowfs behaves at present: the delay of each kind of call, and whether the
 * file system is well, hangs, or fails. The control file states it.
 */
#ifndef SLOWFS_BEHAVIOUR_H
#define SLOWFS_BEHAVIOUR_H

#include <stddef.h>
#include <stdint.h>

enum slowfs_delayed { SLOWFS_LOOKUP, SLOWFS_GETATTR, SLOWFS_OPEN, SLOWFS_FLUSH, SLOWFS_DELAYED_COUNT };

enum slowfs_mode { SLOWFS_NORMAL, SLOWFS_HANG, SLOWFS_HANG_FLUSH, SLOWFS_ERROR };

/* The longest allowed delay: one hour. */
#define SLOWFS_MAX_DELAY_US UINT64_C(3600000000)

struct slowfs_behaviour {
    uint64_t delay_us[SLOWFS_DELAYED_COUNT];
    enum slowfs_mode mode;
    int error; /* the errno given to callers in SLOWFS_ERROR */
};

/* Parses a decimal number of microseconds up to SLOWFS_MAX_DELAY_US. 0, or -1 if it is none. */
int slowfs_parse_us(const char *text, uint64_t *us_r);

/*
 * Reads the control file: words separated by white space, `#` starts a comment.
 *   lookup-us=N getattr-us=N open-us=N delay-us=N   delays (delay-us sets all three)
 *   normal | hang | hang-flush | error=NAME         mode (EIO, ESTALE, EACCES, ...)
 * The file states the whole behaviour: what it does not name is as on the command line
 * (`initial`), and without a mode word the mode is normal.
 * Returns 0, or -1 with a message in `why`; then *behaviour_r is unchanged.
 */
int slowfs_control_read(const char *path, const struct slowfs_behaviour *initial,
                        struct slowfs_behaviour *behaviour_r, char *why, size_t why_size);

/* "normal", "hang", "hang-flush" or "error". */
const char *slowfs_mode_name(enum slowfs_mode mode);

#endif
