/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of stock httpd while it walks to a file (ap_directory_walk, httpd 2.4),
 * derived from an answer of the daemon.
 */
#ifndef FP_CTL_STOCK_H
#define FP_CTL_STOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/answer.h"

/* Which symbolic links Options allow. */
enum ctl_links { CTL_LINKS_FOLLOW, CTL_LINKS_OWNER, CTL_LINKS_NONE };

struct ctl_stock {
    const struct fp_names *names; /* AccessFileName; of those that the answer lacks, the open has FP_UNKNOWN */
    /* The settings hold in this directory and below; above it there are no access files and all links are
     * allowed. */
    const char *root;
    bool htaccess; /* AllowOverride All, else None */
    enum ctl_links links;
};

struct ctl_walk {
    const char *path; /* in normal form */
    size_t len;
    bool slash;                     /* the request has one behind it */
    bool sub;                       /* a subrequest for what lies in the main one's directory */
    const struct fp_answer *answer; /* status FP_OK */
};

/* One call: "stat", "lstat" or "open" of the path's first len bytes, or of the name in
 * that directory (name_len > 0). */
struct ctl_call {
    const char *call;
    size_t len;
    const char *name;
    size_t name_len;
    fp_status outcome;
};
typedef void ctl_on_call(void *ctx, const struct ctl_call *call);

/* How the walk ends. */
enum ctl_end {
    CTL_END_FILE,
    CTL_END_INFO, /* a file, and the path goes on behind it */
    CTL_END_DIRECTORY,
    CTL_END_SPECIAL, /* no file and no directory */
    CTL_END_ABSENT,
    CTL_END_FORBIDDEN
};
enum ctl_end ctl_stock_walk(const struct ctl_stock *s, const struct ctl_walk *w, ctl_on_call *each,
                            void *ctx);

#endif
