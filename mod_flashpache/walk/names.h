/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a directory. This child reads them and keeps them while an answer about the
 * directory holds. A change that this machine makes in the directory ends the answer, and any
 * change gives the directory another time.
 */
#ifndef FP_NAMES_H
#define FP_NAMES_H

#include <stdbool.h>

struct fp_held;

/* Once in a child. */
void fp_names_init(void);

typedef bool fp_names_is(const char *name, const char *text);

/*
 * True if is(name, text) holds for no name in the directory; the answer is about the directory's path.
 * False also where the names are unknown. Then the directory is unreadable, too large, or was
 * changed a moment ago, or only a question would show its changes.
 */
bool fp_names_has_none(const struct fp_held *dir, fp_names_is *is, const char *text);

#endif
