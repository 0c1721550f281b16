/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/intercept.h"

#include <apr_strings.h>
#include <errno.h>
#include <http_config.h>
#include <http_log.h>
#include <stdbool.h>
#include <string.h>

#include "base/imports.h"
#include "question/lookup.h"
#include "walk/php_calls.h"

APLOG_USE_MODULE(flashpache);

#define PHP         "mod_php" /* the beginning of its name: mod_php7.c is an older one */
#define REQUEST_KEY "flashpache-request" /* of a request's pool */

static bool begun; /* this child has a changed table */

/* ---- in the place of apr_stat() ---- */

static apr_status_t answer_stat(apr_finfo_t *finfo, const char *name, apr_int32_t wanted, apr_pool_t *pool)
{
    void *r = NULL;

    if (pool == NULL || apr_pool_userdata_get(&r, REQUEST_KEY, pool) != APR_SUCCESS || r == NULL)
        return apr_stat(finfo, name, wanted, pool);
    return fp_lookup_test(finfo, r, name, wanted, pool);
}

int fp_intercept_request(request_rec *r)
{
    if (begun)
        apr_pool_userdata_setn(r, REQUEST_KEY, NULL, r->pool);
    return OK;
}

/* ---- a child ---- */

/* Returns what went wrong, or NULL. */
static const char *intercept(apr_pool_t *p, const module *m)
{
    static const struct fp_import import = { "apr_stat", (fp_function *)apr_stat, (fp_function *)answer_stat };
    const bool is_php = strncmp(m->name, PHP, strlen(PHP)) == 0;
    const char *wrong;
    const int led = is_php ? fp_php_calls_begin(m, &wrong) : fp_imports_lead(m, &import, 1, &wrong);

    if (led == -1)
        return errno != 0 ? apr_psprintf(p, "%s: %s", wrong, strerror(errno)) : wrong;
    return led == 0 ? "it has no call that can be led elsewhere" : NULL;
}

void fp_intercept_begin(server_rec *s, const apr_array_header_t *modules)
{
    for (int i = 0; modules != NULL && i < modules->nelts; i++) {
        const module *m = APR_ARRAY_IDX(modules, i, const module *);
        const char *wrong = intercept(s->process->pool, m);

        if (wrong != NULL)
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                         "FP0124: FlashpacheIntercept %s: %s; it asks the file system as without "
                         "Flashpache; leave it out of FlashpacheIntercept",
                         m->name, wrong);
        else
            begun = true;
    }
}
