/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outcomes of requests, and their names in the log. Knows neither httpd nor APR.
 */
#ifndef FP_OUTCOMES_H
#define FP_OUTCOMES_H

#include "base/errors.h"
#include "files/answers.h"
#include "wire/answer.h"

enum fp_count {
    /* The outcome of each request. */
    FP_COUNT_LEASE,
    FP_COUNT_LOOK,
    FP_COUNT_HIT,
    FP_COUNT_MISS,
    FP_COUNT_STALE,
    FP_COUNT_NOFILE,
    FP_COUNT_KNOWN,
    FP_COUNT_METHOD,
    FP_COUNT_PATH,
    FP_COUNT_EXCLUDED,
    FP_COUNT_DISABLED,
    FP_COUNT_CHANGED,
    FP_COUNT_ROOTS,
    FP_COUNT_DEEP,
    FP_COUNT_NOBODY,
    FP_COUNT_PAUSED,
    FP_COUNT_TIMEOUT,
    FP_COUNT_BUSY,
    FP_COUNT_UNAVAILABLE,
    FP_COUNT_FAILED,
    FP_COUNT_VERSION,
    FP_COUNT_FOREIGN,
    FP_COUNT_ELSEWHERE,
    FP_COUNT_DESCRIPTORS,
    FP_COUNT_ERROR,
    FP_OUTCOMES,

    /* Counted in addition to the outcome. */
    FP_COUNT_ABSENT = FP_OUTCOMES, /* the answer is that the path does not exist */
    FP_COUNT_COMPARED,             /* FlashpacheEngine Shadow: compared with httpd's own look */
    FP_COUNT_DIFFERENT,            /* and found different */
    FP_COUNT_PHP,                  /* calls of PHP on files, by enum fp_files_result */
    FP_COUNTS = FP_COUNT_PHP + FP_FILES_RESULTS
};

/* Its name in the log: the notes flashpache and flashpache-reason (NULL: none). */
struct fp_outcome {
    const char *word, *reason;
};
extern const struct fp_outcome fp_outcomes[FP_OUTCOMES];
extern const char *const fp_php_results[FP_FILES_RESULTS];

/* Why there is no answer, in the module's words; the daemon's log says more. */
enum fp_count fp_outcome_of_failure(fp_status st);

/* The outcome of a question that the daemon answered. */
enum fp_count fp_outcome_of_source(enum fp_source source);

#endif
