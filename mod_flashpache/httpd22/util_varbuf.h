/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2.4's buffer for lines of configuration, whose header has this name, for servers before it. Their own
 * parser cuts lines at this size, too.
 */
#ifndef FP_UTIL_VARBUF_H
#define FP_UTIL_VARBUF_H

#if FP_HTTPD_24
#include_next <util_varbuf.h>
#else

struct ap_varbuf {
    char *buf;
};

static inline void ap_varbuf_init(apr_pool_t *p, struct ap_varbuf *line, apr_size_t size)
{
    (void)size;
    line->buf = apr_palloc(p, MAX_STRING_LEN);
}

static inline void ap_varbuf_free(struct ap_varbuf *line)
{
    line->buf = NULL;
}

/* A line without its end and the space around it; continued lines are one. */
static inline apr_status_t ap_varbuf_cfg_getline(struct ap_varbuf *line, ap_configfile_t *file,
                                                 apr_size_t most)
{
    (void)most;
    return ap_cfg_getline(line->buf, MAX_STRING_LEN, file) ? APR_EOF : APR_SUCCESS;
}

#endif
#endif
