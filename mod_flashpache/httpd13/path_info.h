/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds by an answer what core's get_path_info() of Apache 1.3 would find by the file system. Knows no
 * httpd.
 *
 * That function calls stat() on the whole name, then on ever shorter ones, until one is there. It
 * cuts the name behind the file; the rest is the path-info. Below a directory it leaves one absent
 * component with the name.
 */
#ifndef FP_PATH_INFO_H
#define FP_PATH_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct fp_held;
struct fp_meta;

enum fp_found {
    FP_FOUND_UNKNOWN, /* an error that core itself must meet */
    FP_FOUND_FILE,    /* of any kind */
    FP_FOUND_ABSENT,  /* a name in a directory that is there */
    FP_FOUND_NOTHING  /* not even the first component: the name stays whole */
};

/* cut: where the name ends and the path-info begins, in the original name. meta: the file's, or of an
 * absent name the directory's, as get_path_info() leaves it. */
struct fp_path_info {
    enum fp_found found;
    size_t cut;
    const struct fp_meta *meta;
};

/* Writes name without doubled slashes and without slashes at its end to buf, of FP_MAX_PATH + 1 bytes.
 * Returns its length; 0: the result is not in normal form, or too long. */
size_t fp_path_info_normalise(const char *name, char *buf);

/* name: the original whose normal form the answer is about. */
struct fp_path_info fp_path_info_find(const struct fp_held *held, const char *name);

/* Fills st as stat() does, but for st_rdev and st_blksize: no answer has these, they are 0. */
void fp_path_info_fill(struct stat *st, const struct fp_meta *m);

#endif
