/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core's walk from an answer, for a core without the hook that looks at files.
 *
 * Core's walk looks at no component where r->finfo is filled in and links are followed. So this fills it in
 * from the answer, runs core's own walk and corrects what the walk could not know.
 */
#ifndef FP_PREFILL_H
#define FP_PREFILL_H

#include <httpd.h>

/* map_to_storage, just before core's function: does what that does. DECLINED: there is no answer, or core
 * should look itself. */
int fp_prefill(request_rec *r);

#endif
