/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "timing.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "settings.h"

#define ADDED "flashpache-timed"   /* note: the response has it already */

/* In milliseconds, as the header wants it; "" where nobody was asked. */
static const char *duration(request_rec *r)
{
    const char *us = apr_table_get(r->notes, "flashpache-us");
    apr_int64_t n = us != NULL ? apr_atoi64(us) : 0;

    if (us == NULL)
        return "";
    return apr_psprintf(r->pool, ";dur=%" APR_INT64_T_FMT ".%03d", n / 1000, (int)(n % 1000));
}

void fp_timing_add(request_rec *r)
{
    const char *word = apr_table_get(r->notes, "flashpache");
    const char *reason = apr_table_get(r->notes, "flashpache-reason");

    if (fp_settings_of(r->server)->server_timing != 1 || r->main != NULL || word == NULL
        || apr_table_get(r->notes, ADDED) != NULL)
        return;
    apr_table_setn(r->notes, ADDED, "1");
    /* These headers stay when an error takes the place of the response. */
    apr_table_mergen(r->err_headers_out, "Server-Timing",
                     apr_pstrcat(r->pool, "flashpache;desc=\"", word,
                                 reason != NULL ? " " : "", reason != NULL ? reason : "", "\"",
                                 duration(r), NULL));
}
