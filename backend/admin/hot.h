/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which paths are asked for most: counts over a sample of the questions, and of the walks for entries
 * whose leases are in use.  They stand in a table of FP_HOT_PATHS (Metwally
 * et al., "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
 * In it a new path takes the place, and the count, of the rarest.  Counts are halved
 * every FP_HOT_HALF_MS, so paths that were hot are forgotten.
 */
#ifndef FP_HOT_H
#define FP_HOT_H

#include <stddef.h>
#include <stdint.h>

#define FP_HOT_PATHS   64
#define FP_HOT_SAMPLE  8u /* one question of so many is counted */
#define FP_HOT_HALF_MS 10000u

struct fp_hot;

/* Returns NULL if there is no memory. */
struct fp_hot *fp_hot_create(void);
void fp_hot_destroy(struct fp_hot **h);

/* Counts a question about the path, which is copied.  Only a random eighth of all calls counts. */
void fp_hot_asked(struct fp_hot *h, const char *path, size_t len, uint64_t now_ms);

/*
 * A report (control.h), the hottest first; ctx is a struct fp_hot.  "COUNT PATH": the
 * count as if every question were sampled, the path escaped as by fp_text_escape().
 */
size_t fp_hot_line(void *ctx, uint32_t n, char *buf, size_t size);

#endif
