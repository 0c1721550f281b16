/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/file_test.h"

#include "question/lookup.h"

#define ANY_EXECUTE (APR_UEXECUTE | APR_GEXECUTE | APR_WEXECUTE)

static apr_int32_t wanted_by(char letter)
{
    switch (letter) {
    case 'l':
    case 'L':
    case 'h': return APR_FINFO_MIN | APR_FINFO_LINK;
    case 'x': return APR_FINFO_PROT;
    default: return APR_FINFO_MIN;
    }
}

static bool passes(const apr_finfo_t *finfo, char letter)
{
    switch (letter) {
    case 'e': return true;
    case 'f': return finfo->filetype == APR_REG;
    case 'd': return finfo->filetype == APR_DIR;
    case 's': return finfo->filetype == APR_REG && finfo->size > 0;
    case 'x': return (finfo->protection & ANY_EXECUTE) != 0;
    case 'l':
    case 'L':
    case 'h': return finfo->filetype == APR_LNK;
    default: return false;
    }
}

bool fp_file_test(request_rec *r, char letter, const char *name, apr_int32_t more, apr_pool_t *pool)
{
    apr_finfo_t finfo;

    return fp_lookup_test(&finfo, r, name, wanted_by(letter) | more, pool) == APR_SUCCESS
           && passes(&finfo, letter);
}
