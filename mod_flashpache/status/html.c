/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/html.h"

#include <apr_strings.h>
#include <http_protocol.h>
#include <stdbool.h>
#include <string.h>

#define PER_CENT 1000u /* in tenths of one */

/* ---- numbers ---- */

const char *fp_html_number(apr_pool_t *p, apr_uint64_t n)
{
    const char *digits = apr_psprintf(p, "%" APR_UINT64_T_FMT, n);
    apr_size_t len = strlen(digits);
    char *made = apr_palloc(p, len + len / 3 + 1), *to = made;

    for (apr_size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return made;
}

/* n: in tenths of the unit: "12.3 ms", "12 ms". */
static const char *tenths(apr_pool_t *p, apr_uint64_t n, const char *unit)
{
    if (n % 10 == 0)
        return apr_psprintf(p, "%" APR_UINT64_T_FMT " %s", n / 10, unit);
    return apr_psprintf(p, "%" APR_UINT64_T_FMT ".%u %s", n / 10, (unsigned)(n % 10), unit);
}

/* Rounded, but only 0 of all is "0 %", and only all is "100 %". */
const char *fp_html_share(apr_pool_t *p, apr_uint64_t part, apr_uint64_t all)
{
    const apr_uint64_t rounded = all > 0 ? (part * PER_CENT + all / 2) / all : 0;

    if (all == 0)
        return "-";
    if (part > 0 && rounded == 0)
        return "under 0.1 %";
    return tenths(p, part < all && rounded == PER_CENT ? PER_CENT - 1 : rounded, "%");
}

const char *fp_html_time(apr_pool_t *p, apr_uint64_t us)
{
    if (us < 1000)
        return apr_psprintf(p, "%u µs", (unsigned)us);
    if (us < 1000000)
        return tenths(p, us / 100, "ms");
    return tenths(p, us / 100000, "s");
}

const char *fp_html_duration(apr_pool_t *p, apr_uint64_t s)
{
    const unsigned days = (unsigned)(s / 86400), hours = (unsigned)(s / 3600 % 24),
                   minutes = (unsigned)(s / 60 % 60);

    if (s < 60)
        return apr_psprintf(p, "%u s", (unsigned)s);
    if (s < 3600)
        return apr_psprintf(p, "%u min", minutes);
    return s < 86400 ? apr_psprintf(p, "%u h %u min", hours, minutes)
                     : apr_psprintf(p, "%u d %u h %u min", days, hours, minutes);
}

/* ---- elements ---- */

void fp_html_text(request_rec *r, const char *text)
{
    ap_rputs(ap_escape_html(r->pool, text), r);
}

void fp_html_code(request_rec *r, const char *text)
{
    ap_rvputs(r, "<code>", ap_escape_html(r->pool, text), "</code>", NULL);
}

void fp_html_advice(request_rec *r, const char *advice)
{
    char *rest = apr_pstrdup(r->pool, advice), *quote;
    bool is_command = false;

    for (; (quote = strchr(rest, '`')) != NULL; rest = quote + 1, is_command = !is_command) {
        *quote = '\0';
        if (is_command)
            fp_html_code(r, rest);
        else
            fp_html_text(r, rest);
    }
    fp_html_text(r, rest);
}
