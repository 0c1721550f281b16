/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl warm: looks up each path of a list, so that requests find it in the cache.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/client.h"
#include "wire/answer.h"
#include "wire/packet.h"

struct counts {
    uint64_t found, absent, failed;
};

/* The outcome for the whole path, which the last step says. */
static fp_status outcome(const struct fp_answer *a, size_t path_len)
{
    const struct fp_step *last;

    if (a->status != FP_OK)
        return a->status;
    last = &a->steps[a->n_steps - 1];
    if (last->status != FP_OK)
        return last->status;
    if (last->target_status != FP_OK)
        return last->target_status;
    return last->end == path_len ? FP_OK : FP_NOTDIR;
}

/* Warms one line of the list, without its line end.  Not FP_OK: there is no answer. */
static fp_status warm_one(const struct ctl *ctl, const char *line, struct counts *n)
{
    static struct fp_answer a;
    char path[FP_MAX_PATH + 1];
    fp_status st;

    if (!ctl_absolute(line, path)) {
        n->failed++;
        return FP_OK;
    }
    st = fp_client_lookup(ctl->client, path, strlen(path), &a, NULL);
    if (st != FP_OK)
        return st;
    st = outcome(&a, strlen(path));
    fp_close(&a.fd);
    if (st == FP_OK) {
        n->found++;
    } else if (st == FP_ABSENT || st == FP_NOTDIR) {
        n->absent++;
    } else {
        n->failed++;
        ctl_complain("%s: %s", path, fp_status_text(st));
    }
    return FP_OK;
}

static fp_status warm_all(const struct ctl *ctl, FILE *list, struct counts *n)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    fp_status st = FP_OK;

    while (st == FP_OK && (len = getline(&line, &capacity, list)) != -1) {
        if (len > 0 && line[len - 1] == '\n')
            line[--len] = '\0';
        if (len == 0)
            continue;
        if (strlen(line) == (size_t)len) {
            st = warm_one(ctl, line, n);
        } else {
            n->failed++;
            ctl_complain("%s: a NUL byte follows: this is not a path", line);
        }
    }
    free(line);
    return st;
}

enum ctl_exit ctl_warm(const struct ctl *ctl, char **args)
{
    const char *file = args[0];
    const bool is_stdin = strcmp(file, "-") == 0;
    FILE *list;
    struct counts n = { 0, 0, 0 };
    bool bad;
    fp_status st;

    list = is_stdin ? stdin : fopen(file, "re");
    if (list == NULL) {
        ctl_complain("cannot open the list of paths %s: %s", file, strerror(errno));
        return CTL_FAILED;
    }
    st = warm_all(ctl, list, &n);
    bad = st == FP_OK && ferror(list) != 0;
    if (bad)
        ctl_complain("cannot read the list of paths %s: %s", file, strerror(errno));
    if (!is_stdin)
        fclose(list);
    printf("%" PRIu64 " found, %" PRIu64 " absent, %" PRIu64 " failed\n", n.found, n.absent, n.failed);
    if (st != FP_OK)
        return ctl_no_daemon(ctl, st);
    return bad || n.failed > 0 ? CTL_FAILED : CTL_DONE;
}
