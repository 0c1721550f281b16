/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/note.h"

#include <apr_strings.h>

#include "question/request.h"
#include "setup/settings.h"

#define TIMED "flashpache-timed" /* note: the response has Server-Timing already */

void fp_note_outcome(request_rec *r, enum fp_count what)
{
    const struct fp_outcome *o = &fp_outcomes[what];
    struct fp_record *record = fp_record_make(r);

    /* Its file may be asked for later: the log says so, and the request counts once. */
    if (record->outcome == NULL)
        fp_count(fp_settings_of(r->server)->host, what);
    record->outcome = o;
    apr_table_setn(r->notes, "flashpache", o->word);
    if (o->reason != NULL)
        apr_table_setn(r->notes, "flashpache-reason", o->reason);
}

void fp_note_us(request_rec *r, apr_uint64_t us)
{
    const char *before = apr_table_get(r->notes, "flashpache-us");

    if (before != NULL)
        us += (apr_uint64_t)apr_atoi64(before);
    apr_table_setn(r->notes, "flashpache-us", apr_psprintf(r->pool, "%" APR_UINT64_T_FMT, us));
}

int fp_note_log(request_rec *r)
{
    for (; r != NULL; r = r->next) {
        const struct fp_outcome *o = fp_record_of(r)->outcome;

        if (o == NULL)
            continue;
        apr_table_setn(r->subprocess_env, "FLASHPACHE", o->word);
        if (o->reason != NULL)
            apr_table_setn(r->subprocess_env, "FLASHPACHE_REASON", o->reason);
    }
    return DECLINED;
}

/* In milliseconds, for the header; "" where the daemon was not asked. */
static const char *duration(request_rec *r)
{
    const char *us = apr_table_get(r->notes, "flashpache-us");
    apr_int64_t n = us != NULL ? apr_atoi64(us) : 0;

    if (us == NULL)
        return "";
    return apr_psprintf(r->pool, ";dur=%" APR_INT64_T_FMT ".%03d", n / 1000, (int)(n % 1000));
}

void fp_note_timing(request_rec *r)
{
    const struct fp_outcome *o = fp_record_of(r)->outcome;

    if (fp_settings_of(r->server)->server_timing != 1 || r->main != NULL || o == NULL
        || apr_table_get(r->notes, TIMED) != NULL)
        return;
    apr_table_setn(r->notes, TIMED, "1");
    /* These headers stay when an error response replaces the first one. */
    apr_table_mergen(r->err_headers_out, "Server-Timing",
                     apr_pstrcat(r->pool, "flashpache;desc=\"", o->word, o->reason != NULL ? " " : "",
                                 o->reason != NULL ? o->reason : "", "\"", duration(r), NULL));
}
