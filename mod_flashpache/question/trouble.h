/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages about a daemon that gives no answer. Knows neither httpd nor APR.
 */
#ifndef FP_TROUBLE_H
#define FP_TROUBLE_H

#include "base/errors.h"

struct fp_client;

/*
 * Formats of the messages. FP_TEXT_NO_ANSWER: the socket, the path, the outcome's reason, fp_trouble_text().
 * FP_TEXT_NOT_TRUSTED: the socket, the uid of its maker. FP_TEXT_ELSEWHERE: the socket, the difference. ways,
 * how: the ways out that this generation of httpd has.
 */
#define FP_TEXT_NO_ANSWER "FP0101: no answer from flashpached at %s for %s (%s: %s)"
#define FP_TEXT_AS_STOCK  "serving it as without Flashpache"
#define FP_TEXT_NOT_TRUSTED(ways) \
    "FP0114: not trusted: the socket %s was made by uid %u, and root started httpd: any process of " \
    "Apache's user could have made it. Serving as without Flashpache; start flashpached by " ways
#define FP_TEXT_ELSEWHERE(how) \
    "FP0115: the flashpached at %s does not see the files that this child sees: %s. Serving as without " \
    "Flashpache; start both in the same root directory and namespaces" how

/* Why this client's question has no answer, and the way out. */
const char *fp_trouble_text(struct fp_client *client, fp_status st);

#endif
