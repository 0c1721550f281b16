/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether all that led to a response is one view of the file system: the walk, its access files, and the
 * open file.
 */
#ifndef FP_AGREEMENT_H
#define FP_AGREEMENT_H

#include <httpd.h>
#include <stdbool.h>

#include "question/request.h"

struct stat;

/* True if st is of the file that the walk approved, as it was then. */
bool fp_agreement_is_approved(const request_rec *r, const struct stat *st);

/* True if q's open file is the one that the walk approved. */
bool fp_agreement_is_same(const request_rec *r, const struct fp_request *q);

/* True if the name still leads to the file that the walk approved. */
bool fp_agreement_is_unchanged(request_rec *r);

/* True if the file is still the one that q shows: whatever httpd has looked at meanwhile, it was there. */
bool fp_agreement_still_holds(request_rec *r, const struct fp_request *q);

/* True if both answers about a file go the same way, by the same access files. The file may be another one. */
bool fp_agreement_is_same_way(const struct fp_request *a, const struct fp_request *b);

/* True if access files of that kind were used for the request or another of its family. If a link was switched
 * meanwhile, core would use one release's rules, and we send the other's file. */
bool fp_agreement_has_rules(const request_rec *r, enum fp_rules_are rules);

/* For fp_request_any(), ctx being an answer: true if a common part of their paths leads to different
 * places. */
bool fp_agreement_went_elsewhere(const struct fp_request *other, const void *ctx);

#endif
