/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_allocator.h>
#include <apr_strings.h>

/* An allocator of its own, since a pool's default one belongs to the process and may have no lock. */
apr_status_t fp_compat_unmanaged_pool(apr_pool_t **pool)
{
    apr_allocator_t *allocator;
    apr_status_t rv = apr_allocator_create(&allocator);

    if (rv != APR_SUCCESS)
        return rv;
#if FP_APR_BEFORE_1_3
    rv = apr_pool_create_ex(pool, NULL, NULL, allocator); /* a child of the global pool, under its mutex */
#else
    rv = apr_pool_create_unmanaged_ex(pool, NULL, allocator);
#endif
    if (rv != APR_SUCCESS)
        apr_allocator_destroy(allocator);
    else
        apr_allocator_owner_set(allocator, *pool);
    return rv;
}

#if !FP_HTTPD_24

/* ---- ap_pcfg_open_custom() ---- */

struct custom {
    void *param;
    apr_status_t (*getch)(char *ch, void *param);
    apr_status_t (*gets)(void *buf, apr_size_t size, void *param);
    apr_status_t (*end)(void *param);
};

static int custom_getch(void *param)
{
    struct custom *c = param;
    char ch;

    return c->getch(&ch, c->param) == APR_SUCCESS ? (unsigned char)ch : EOF;
}

static void *custom_gets(void *buf, size_t size, void *param)
{
    struct custom *c = param;

    return c->gets(buf, size, c->param) == APR_SUCCESS ? buf : NULL;
}

static int custom_close(void *param)
{
    struct custom *c = param;

    return c->end != NULL ? c->end(c->param) : APR_SUCCESS;
}

#undef ap_pcfg_open_custom
ap_configfile_t *fp_compat_open_custom(apr_pool_t *p, const char *descr, void *param,
                                       apr_status_t (*getch)(char *ch, void *param),
                                       apr_status_t (*gets)(void *buf, apr_size_t size, void *param),
                                       apr_status_t (*end)(void *param))
{
    struct custom *c = apr_palloc(p, sizeof(*c));

    *c = (struct custom){ param, getch, gets, end };
    return ap_pcfg_open_custom(p, descr, c, custom_getch, custom_gets, custom_close);
}

#endif
