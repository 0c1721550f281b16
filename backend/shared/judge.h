/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is well with a daemon and what is not, by its reports: one table, for flashpachectl check and for
 * the status page.
 */
#ifndef FP_JUDGE_H
#define FP_JUDGE_H

#include <stddef.h>
#include <stdint.h>

/* FP_NOTE: worth knowing, and no fault. */
enum fp_gravity { FP_WELL, FP_NOTE, FP_FAULT };

struct fp_judged {
    /* A counter, or a number that the daemon reports of itself, or 1 for "on"; 0: it reported none. */
    uint64_t (*value)(const void *ctx, const char *name);
    const void *ctx;
    const char *socket, *version; /* the daemon's; version NULL: unknown */
    const char *asking;           /* the version of who asks */
};

/* Both texts are without a capital and a full stop; advice "": none.  Commands stand between backquotes. */
typedef void fp_found(void *ctx, enum fp_gravity gravity, const char *why, const char *advice);

void fp_judge(const struct fp_judged *by, fp_found *found, void *ctx);

/* Writes the text with the values of the names in braces: "{hits}", "{bytes/1024}", "{version}".  What does not fit
 * is left out. */
void fp_judge_fill_in(const struct fp_judged *by, const char *text, char *to, size_t size);

#endif
