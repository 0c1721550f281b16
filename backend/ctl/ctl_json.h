/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON (RFC 8259), written as it comes.  All of it is ASCII.  Control characters are escaped as JSON has it,
 * and bytes above ASCII as in /proc/self/mountinfo, since a path may be no UTF-8.
 */
#ifndef FP_CTL_JSON_H
#define FP_CTL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ctl_json {
    FILE *to;
    bool comma; /* before the next value */
};

/* Begins an object ('{') or an array ('['), up to its end ('}', ']').  Everywhere below: key is NULL inside
 * an array, and for the whole document, which ends with its line. */
void ctl_json_begin(struct ctl_json *j, const char *key, char bracket);
void ctl_json_end(struct ctl_json *j, char bracket);
void ctl_json_finish(struct ctl_json *j, char bracket);

void ctl_json_number(struct ctl_json *j, const char *key, uint64_t v);
void ctl_json_bool(struct ctl_json *j, const char *key, bool v);
void ctl_json_null(struct ctl_json *j, const char *key);
void ctl_json_text(struct ctl_json *j, const char *key, const char *text);
/* Writes a path, not terminated, in the form in which reports of the daemon have paths. */
void ctl_json_path(struct ctl_json *j, const char *key, const char *path, size_t len);

#endif
