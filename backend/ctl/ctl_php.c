/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl php: the processes that were started with libflashpache_files.so, and what became of their
 * calls on files. mod_php's are counted on the status page.
 */
#include "config.h"
#include "ctl/ctl.h"
#include "ctl/ctl_php.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl_json.h"
#include "files/own.h"

#define LIBRARY     "libflashpache_files.so"
#define COUNTS_LINK "/memfd:" FP_FILES_COUNTS " (deleted)"

static const char *const results[FP_FILES_RESULTS] = { "answered", "new", "doubt", "nobody" };

static void read_counts(int directory, const char *number, struct ctl_php *p)
{
    char link[sizeof(COUNTS_LINK) + 1];
    const ssize_t len = readlinkat(directory, number, link, sizeof(link));
    unsigned long counts[FP_FILES_RESULTS];
    int fd;

    if (len != sizeof(COUNTS_LINK) - 1 || memcmp(link, COUNTS_LINK, sizeof(COUNTS_LINK) - 1) != 0)
        return;
    fd = openat(directory, number, O_RDONLY | O_CLOEXEC);
    p->counted = fd != -1 && pread(fd, counts, sizeof(counts), 0) == sizeof(counts);
    for (unsigned i = 0; i < FP_FILES_RESULTS && p->counted; i++)
        p->counts[i] = counts[i];
    if (fd != -1)
        close(fd);
}

/* The last ones: a forked process has its parent's as well. */
static void find_counts(const char *pid, struct ctl_php *p)
{
    char path[64];
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    d = opendir(path);
    while (d != NULL && (e = readdir(d)) != NULL)
        read_counts(dirfd(d), e->d_name, p);
    if (d != NULL)
        closedir(d);
}

struct telling {
    ctl_php_tell *tell;
    void *ctx;
};

static void look(void *ctx, const char *pid)
{
    const struct telling *t = ctx;
    struct ctl_php p = { .loaded = ctl_process_has(pid, "maps", '\n', LIBRARY) == 1 };

    /* A worker has no environment. */
    if (!p.loaded && ctl_process_has(pid, "environ", '\0', LIBRARY) != 1)
        return;
    p.pid = strtoul(pid, NULL, 10);
    find_counts(pid, &p);
    t->tell(t->ctx, &p);
}

void ctl_php_each(ctl_php_tell *tell, void *ctx)
{
    struct telling t = { tell, ctx };

    ctl_each_process(look, &t);
}

/* ---- the command ---- */

struct list {
    struct ctl_json *json; /* NULL: lines */
    unsigned n;
};

static void print(const struct ctl_php *p)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < FP_FILES_RESULTS; i++)
        all += p->counts[i];
    printf("%9" PRIu64 "  ", p->pid);
    if (!p->loaded)
        printf("stands aside: it is linked statically\n");
    else if (!p->counted)
        printf("asks nobody: no daemon answers it, or it has asked nothing yet\n");
    else
        printf("%" PRIu64 " of %" PRIu64 " calls answered; left: %" PRIu64 " new, %" PRIu64 " doubt, %" PRIu64
               " nobody\n",
               p->counts[FP_FILES_ANSWERED], all, p->counts[FP_FILES_NEW], p->counts[FP_FILES_DOUBT],
               p->counts[FP_FILES_NOBODY]);
}

static void put(struct ctl_json *j, const struct ctl_php *p)
{
    ctl_json_begin(j, NULL, '{');
    ctl_json_number(j, "pid", p->pid);
    ctl_json_bool(j, "loaded", p->loaded);
    for (unsigned i = 0; i < FP_FILES_RESULTS && p->counted; i++)
        ctl_json_number(j, results[i], p->counts[i]);
    ctl_json_end(j, '}');
}

static void tell(void *ctx, const struct ctl_php *p)
{
    struct list *l = ctx;

    l->n++;
    if (l->json != NULL)
        put(l->json, p);
    else
        print(p);
}

enum ctl_exit ctl_php(const struct ctl *ctl, char **args)
{
    struct ctl_json j = { .to = stdout };
    struct list l = { .json = ctl->json ? &j : NULL };

    (void)args;
    if (ctl->json) {
        ctl_json_begin(&j, NULL, '{');
        ctl_json_begin(&j, "processes", '[');
    }
    ctl_php_each(tell, &l);
    if (ctl->json) {
        ctl_json_end(&j, ']');
        ctl_json_finish(&j, '}');
    }
    if (l.n == 0)
        ctl_complain("no process with " LIBRARY " was found; the status page counts mod_php's calls");
    return l.n > 0 ? CTL_DONE : CTL_FAILED;
}
