/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "speling.h"

#include <ctype.h>
#include <http_config.h>
#include <http_protocol.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "lease.h"
#include "lookup.h"
#include "names.h"
#include "request.h"

#define MOST_DIFFERENT 2 /* bytes: two that changed places */

static module *speling; /* mod_speling; NULL: it is not loaded */
static void *disabled;  /* its configuration of a directory without directives */

void fp_speling_begin(apr_pool_t *pconf)
{
    speling = ap_find_linked_module("mod_speling.c");
    if (speling != NULL && speling->create_dir_config == NULL)
        speling = NULL;
    disabled = speling != NULL ? speling->create_dir_config(pconf, NULL) : NULL;
}

/* True if CheckSpelling is set. It is the first member, an int; with another order of members this
 * is wrong at no cost but a question. */
static bool is_enabled(const request_rec *r)
{
    const int *own = ap_get_module_config(r->per_dir_config, speling);

    return own != NULL && *own != *(const int *)disabled;
}

/* True if mod_speling would read the directory. */
static bool is_checked(const request_rec *r)
{
    return speling != NULL && fp_request_of(r) != NULL && r->finfo.filetype == APR_NOFILE && r->main == NULL
           && r->method_number == M_GET && r->proxyreq == PROXYREQ_NONE && is_enabled(r);
}

static size_t same_at_start(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] != '\0' && tolower((unsigned char)a[n]) == tolower((unsigned char)b[n]))
        n++;
    return n;
}

static size_t same_at_end(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t n = 0;

    while (n < a_len && n < b_len
           && tolower((unsigned char)a[a_len - n - 1]) == tolower((unsigned char)b[b_len - n - 1]))
        n++;
    return n;
}

/*
 * True for each name that mod_speling could take, and for some more. It takes a name that differs
 * in case, in one byte or in the order of two. It also takes one with the same text before a dot.
 */
static bool is_similar(const char *name, const char *wanted)
{
    const size_t begin = same_at_start(name, wanted), stem = strcspn(wanted, ".");
    const size_t rest = strlen(name) - begin, wanted_rest = strlen(wanted) - begin;
    const size_t end = same_at_end(name + begin, rest, wanted + begin, wanted_rest);

    return begin >= stem || (rest - end <= MOST_DIFFERENT && wanted_rest - end <= MOST_DIFFERENT);
}

int fp_speling_before(request_rec *r)
{
    const char *name = is_checked(r) && r->filename[0] == '/' ? ap_strrchr_c(r->filename, '/') : NULL;
    struct fp_lease *dir;

    if (name == NULL || name == r->filename)
        return DECLINED;
    dir = fp_lookup_directory(r, r->filename, (apr_size_t)(name - r->filename));
    if (dir != NULL && fp_names_has_none(dir, is_similar, name + 1))
        fp_request_replace(r, speling, disabled);
    return DECLINED;
}

int fp_speling_after(request_rec *r)
{
    fp_request_restore(r);
    return DECLINED;
}
