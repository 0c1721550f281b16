/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colour on standard output, for words of state.  There is none where standard output is no terminal,
 * or a dumb one, or NO_COLOR is set and not empty (https://no-color.org).
 */
#ifndef FP_CTL_PAINT_H
#define FP_CTL_PAINT_H

enum ctl_state { CTL_OK, CTL_WARNING, CTL_ERROR }; /* green, yellow, red */

/* Begins the colour of a state. */
void ctl_paint(enum ctl_state state);
/* Ends it. */
void ctl_plain(void);

/* Writes a line without its end, as an error where it ends with the words of alarm. */
void ctl_put_line(const char *line, const char *alarm);

#endif
