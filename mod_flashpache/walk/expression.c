/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/expression.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "question/lookup.h"
#include "walk/file_test.h"
#include "walk/rewrite.h"

/* data: the letter. For -x core looks at a link itself, and so does this function. */
static int test(ap_expr_eval_ctx_t *ctx, const void *data, const char *name)
{
    const char letter = *(const char *)data;

    return fp_file_test(ctx->r, letter, name, letter == 'x' ? APR_FINFO_LINK : 0, ctx->p);
}

static const char *size(ap_expr_eval_ctx_t *ctx, const void *data, const char *name)
{
    apr_finfo_t finfo;

    (void)data;
    if (fp_lookup_test(&finfo, ctx->r, name, APR_FINFO_MIN, ctx->p) != APR_SUCCESS
        || finfo.filetype != APR_REG || finfo.size <= 0)
        return "0";
    return apr_psprintf(ctx->p, "%" APR_OFF_T_FMT, finfo.size);
}

/*
 * Core and other modules answer first. A test that they refuse (in mod_include, .htaccess) stays
 * refused, with their message.
 */
static int ask_others(ap_expr_lookup_parms *parms)
{
    static _Thread_local bool asking;
    int found = DECLINED;

    if (!asking) {
        asking = true;
        found = ap_run_expr_lookup(parms);
        asking = false;
    }
    return found;
}

/* NULL: the expression's function is no test of a file. */
static const char *letter_of(const ap_expr_lookup_parms *parms)
{
    static const char letters[] = "fdesLhx";

    if (parms->type != AP_EXPR_FUNC_OP_UNARY || parms->name[0] == '\0' || parms->name[1] != '\0')
        return NULL;
    return strchr(letters, parms->name[0]);
}

int fp_expression_find(ap_expr_lookup_parms *parms)
{
    ap_expr_op_unary_t *const test_function = test;
    ap_expr_string_func_t *const size_function = size;
    const char *letter = letter_of(parms);
    const bool is_size = parms->type == AP_EXPR_FUNC_STRING && strcasecmp(parms->name, "filesize") == 0;
    int found;

    if ((letter == NULL && !is_size) || fp_rewrite_is_off())
        return DECLINED;
    found = ask_others(parms);
    if (found != OK)
        return found;
    if (is_size) {
        memcpy(parms->func, &size_function, sizeof(size_function));
    } else {
        memcpy(parms->func, &test_function, sizeof(test_function));
        *parms->data = letter;
    }
    return OK;
}
