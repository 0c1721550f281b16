/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and their components as text, without looking at the file system.
 */
#ifndef FP_PATH_H
#define FP_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define FP_MAX_PATH 4095 /* bytes, without a terminator: Linux's PATH_MAX less one */
#define FP_MAX_NAME 255  /* bytes of a component: Linux's NAME_MAX */

/*
 * True for "/" and for "/a/b": no NUL, no empty, "." or ".." component, no
 * slash at the end, at most FP_MAX_PATH bytes.
 */
bool fp_path_is_normal(const char *path, size_t len);

/*
 * Writes path in normal form to buf, which has FP_MAX_PATH + 1 bytes.  A relative path is below
 * dir, which is absolute; ".." of "/" is "/".  False: path is empty, or the result is longer
 * than FP_MAX_PATH.
 */
bool fp_path_normalise(const char *dir, const char *path, char *buf);

/* How many steps a path in normal form has, "/" included: 1 for "/", 2 for "/a". */
size_t fp_path_depth(const char *path, size_t len);

/* The length of a path without slashes at its end ("/" stays). */
size_t fp_path_len(const char *path);

/* The length of the directory that a path in normal form lies in; "/" for "/a".  len > 1. */
size_t fp_path_parent_len(const char *path, size_t len);

/* The length of the part of the path that is one component longer than its first at bytes; "/a" for "/".
 * The first at bytes end at a component themselves; at < len. */
size_t fp_path_child_len(const char *path, size_t len, size_t at);

/* True if a path in normal form is the path above, which is terminated, or lies below it. */
bool fp_path_is_below(const char *path, size_t len, const char *above);
/* True if it is, or lies below, any path in a list that ends with NULL. */
bool fp_path_is_below_any(const char *path, size_t len, const char *const *above);
/* True if it lies within the roots; no list, or an empty one, means everything. */
bool fp_path_is_within(const char *path, size_t len, const char *const *roots);

/* The length of the longest path that both paths, in normal form, are or lie below. */
size_t fp_path_common_len(const char *a, size_t a_len, const char *b, size_t b_len);

/* True for one component: 1 to FP_MAX_NAME bytes, no '/', no NUL, not "." or "..". */
bool fp_name_is_single(const char *name, size_t len);

#endif
