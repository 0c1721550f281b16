/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl switch: points a symbolic link at another target, in one step, and
 * purges the tree below it.
 *
 * The command checks the link and then replaces it.  A file that another process puts
 * in its place between the two is lost; a directory is not.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/ctl_out.h"
#include "wire/packet.h"

#define TRIES 16 /* for a temporary name that is free */

struct link {
    char path[FP_MAX_PATH + 1]; /* as given, made absolute */
    char resolved[PATH_MAX];    /* the same without links above it */
    const char *name;           /* its last component, in path */
    const char *target;
    int dir; /* that it lies in */
};

static bool resolve(struct link *l, const char *dir)
{
    char real[PATH_MAX];
    int n;

    if (realpath(dir, real) == NULL) {
        ctl_complain("cannot resolve %s: %s", dir, strerror(errno));
        return false;
    }
    n = snprintf(l->resolved, sizeof(l->resolved), "%s/%s", strcmp(real, "/") == 0 ? "" : real, l->name);
    if (n >= 0 && n <= FP_MAX_PATH)
        return true;
    ctl_complain("%s/%s: %s", real, l->name, strerror(ENAMETOOLONG));
    return false;
}

static bool open_dir(struct link *l)
{
    char dir[FP_MAX_PATH + 1];
    size_t len = strlen(l->path), parent;

    if (len == 1) {
        ctl_complain("/ is not a symbolic link: name the link to switch");
        return false;
    }
    parent = fp_path_parent_len(l->path, len);
    memcpy(dir, l->path, parent);
    dir[parent] = '\0';
    l->name = l->path + (parent > 1 ? parent + 1 : 1);
    l->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (l->dir == -1) {
        ctl_complain("cannot open the directory %s: %s", dir, strerror(errno));
        return false;
    }
    return resolve(l, dir);
}

static bool check_link(const struct link *l)
{
    struct stat st;

    if (fstatat(l->dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == -1) {
        if (errno == ENOENT)
            return true;
        ctl_complain("cannot look at %s: %s", l->path, strerror(errno));
        return false;
    }
    if (S_ISLNK(st.st_mode))
        return true;
    ctl_complain("%s is a %s, not a symbolic link: move it away first, or name another link", l->path,
                 S_ISDIR(st.st_mode) ? "directory" : "file");
    return false;
}

static bool check_target(const struct link *l)
{
    struct stat st;

    if (fstatat(l->dir, l->target, &st, 0) == 0)
        return true;
    ctl_complain("the target %s, seen from the directory of %s: %s; --force switches all the "
                 "same",
                 l->target, l->path, strerror(errno));
    return false;
}

/* Makes a link with a name that was free; name has room for it. */
static bool make_temporary(const struct link *l, char *name, size_t size)
{
    uint64_t number;

    for (int i = 0; i < TRIES; i++) {
        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
            return false;
        snprintf(name, size, ".flashpachectl-%016" PRIx64, number);
        if (symlinkat(l->target, l->dir, name) == 0)
            return true;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool replace_link(const struct link *l)
{
    char name[64];

    if (!make_temporary(l, name, sizeof(name))) {
        ctl_complain("cannot make a link beside %s: %s", l->path, strerror(errno));
        return false;
    }
    if (renameat(l->dir, name, l->dir, l->name) == 0)
        return true;
    ctl_complain("cannot put the new link in the place of %s: %s", l->path, strerror(errno));
    unlinkat(l->dir, name, 0);
    return false;
}

/* Replaces the link; signals that end the process wait until the temporary name is gone. */
static bool replace_undisturbed(const struct link *l)
{
    sigset_t signals, before;
    bool ok;

    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    ok = replace_link(l);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static void report_stale(const struct ctl *ctl, const struct link *l)
{
    char until[16] = "";
    time_t end = time(NULL) + (ctl->ttl_ms + 999) / 1000;
    struct tm tm;

    if (ctl->ttl_ms == 0) {
        ctl_complain("%s leads to %s now, but was not forgotten: requests may see the old "
                     "tree for ttl_ms of flashpached.conf (with -c its value is read)",
                     l->path, l->target);
        return;
    }
    if (localtime_r(&end, &tm) != NULL)
        strftime(until, sizeof(until), "%H:%M:%S", &tm);
    ctl_complain("%s leads to %s now, but was not forgotten: requests may see the old tree "
                 "until %s (ttl_ms = %" PRIu32 ")",
                 l->path, l->target, until, ctl->ttl_ms);
}

static enum ctl_exit forget(const struct ctl *ctl, const struct link *l)
{
    uint64_t count = 0;
    enum ctl_exit rc = ctl_purge(ctl, FP_SCOPE_TREE, l->path, &count);

    if (rc == CTL_DONE && strcmp(l->path, l->resolved) != 0)
        rc = ctl_purge(ctl, FP_SCOPE_TREE, l->resolved, &count);
    if (rc == CTL_DONE)
        printf("%s leads to %s, %" PRIu64 " entries forgotten\n", ctl_name(l->path, strlen(l->path)),
               ctl_name(l->target, strlen(l->target)), count);
    else
        report_stale(ctl, l);
    return rc;
}

enum ctl_exit ctl_switch(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = { { "force", no_argument, NULL, 'f' }, { NULL, 0, NULL, 0 } };
    static struct link l = { .dir = -1 };
    enum ctl_exit rc = CTL_FAILED;
    bool force = false;
    int c;

    while ((c = ctl_option(argc, argv, "f", options)) != -1) {
        if (c != 'f')
            return ctl_misused(NULL);
        force = true;
    }
    if (optind + 2 != argc)
        return ctl_misused("switch takes a link and its new target");
    l.target = argv[optind + 1];
    if (ctl_absolute(argv[optind], l.path) && open_dir(&l) && check_link(&l) && (force || check_target(&l))
        && replace_undisturbed(&l))
        rc = forget(ctl, &l);
    fp_close(&l.dir);
    return rc;
}
