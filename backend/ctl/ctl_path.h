/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CTL_PATH_H
#define FP_CTL_PATH_H

#include <stdbool.h>

/*
 * path in normal form (wire.h), a relative one below dir, which is absolute:
 * slashes that are too many, "." and ".." go, as text, without looking at links;
 * ".." of "/" is "/".  False: it is empty or becomes longer than FP_MAX_PATH.
 * room has FP_MAX_PATH + 1 bytes.
 */
bool ctl_path_normalise(const char *dir, const char *path, char *room);

#endif
