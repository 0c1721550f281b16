/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/resolve_links.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes/mount_list.h"
#include "changes/mounts.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/walk_result.h"
#include "workers/calls.h"
#include "workers/resolver.h"

#define NAMES 4096u /* that a walk may take by links, as many as a text can have: 40 links can have 80,000 */

struct symlink_walk {
    const struct fp_symlink *link;
    struct fp_node at; /* where the link has led so far */
    /* Led there by a name in a directory whose watch reports names alone, or from another mount. */
    bool unreported;
    unsigned links; /* on the path so far */
    char *rest;     /* the text that is left to go */
    char text[2 * FP_MAX_PATH + 2];
};

/* Takes the descriptor. */
static void go_to(struct symlink_walk *w, int fd)
{
    fp_close(&w->at.fd);
    w->at = (struct fp_node){ .fd = fd };
    fp_node_identify(&w->at);
}

/*
 * Puts the link's text in front of what is left to go; more: with a slash that must not get
 * lost.  The text is that of the very link that was looked at, not of one put in its place.
 */
static fp_status enter_link(struct symlink_walk *w, int fd, bool more)
{
    const size_t rest = strlen(w->rest);
    char text[FP_MAX_PATH + 1];
    fp_status st = fp_resolver_follows(w->link->resolver, &w->at);
    ssize_t n;

    if (st != FP_OK)
        return st;
    n = fp_call_readlinkat(fd, "", text, sizeof(text));
    if (n <= 0)
        return n == -1 ? fp_status_from_errno(errno) : FP_ABSENT;
    if (++w->links > FP_MAX_LINKS)
        return FP_LOOP;
    if ((size_t)n >= sizeof(text))
        return FP_NAMETOOLONG;
    /* The kernel has room for more: httpd looks itself. */
    if ((size_t)n + 1 + rest >= sizeof(w->text))
        return FP_REFUSED;
    memmove(w->text + n + 1, w->rest, rest + 1);
    w->text[n] = more ? '/' : '\0';
    memcpy(w->text, text, (size_t)n);
    w->rest = w->text;
    if (w->text[0] == '/')
        go_to(w, fcntl(w->link->resolver->slash, F_DUPFD_CLOEXEC, 0));
    return w->at.fd == -1 ? FP_BUSY : FP_OK;
}

/* Cuts the next name off; NULL if there is none.  *more_r: something follows, and
 * be it a slash, so that it must be a directory. */
static const char *next_name(struct symlink_walk *w, bool *more_r)
{
    char *name = w->rest + strspn(w->rest, "/");
    size_t len = strcspn(name, "/");

    *more_r = name[len] != '\0';
    name[len] = '\0';
    w->rest = name + len + *more_r;
    return len > 0 ? name : NULL;
}

/* Notes that the outcome depends on that name here; "." and ".." are no names of the directory. */
static void note_name(struct symlink_walk *w, const char *name)
{
    const struct fp_resolver *r = w->link->resolver;
    struct fp_walk_result *result = w->link->result;
    const unsigned step = w->link->step;
    const struct fp_watch_key *dir = &w->at.watch;
    const bool is_name = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;

    if (!is_name && !w->unreported && fp_verdict_is_reported(fp_resolver_traits(r, w->at.mount).verdict))
        return;
    /* A watch that is not in the result would never end. */
    if (!fp_walk_result_has_room(result, is_name ? strlen(name) : 0)) {
        fp_walk_result_judge(result, step, FP_EACH_REQUEST);
        return;
    }
    fp_node_watch(r, &w->at, true, result, step);
    if (is_name) {
        fp_resolver_sync_names(r, w->at.fd, w->at.mount);
        if (dir->len == 0 || fp_resolver_traits(r, w->at.mount).folds)
            fp_walk_result_judge(result, step, FP_TTL_UNREPORTED);
    }
    if (dir->len == 0)
        return;
    /* inotify reports a change of the directory's own mode in the directory above, as a change of its name
     * there, unless nobody watches that. */
    if (w->unreported && w->at.quiet)
        fp_walk_result_judge(result, step, FP_TTL_UNREPORTED);
    if (is_name)
        fp_walk_result_add(result, step, dir, name, strlen(name));
    if (w->unreported)
        fp_walk_result_add(result, step, dir, "", 0);
}

/* Takes the descriptor.  The directory above reports changes
 * of a mount's root to nobody: they are of what it covers. */
static void enter_directory(struct symlink_walk *w, int fd)
{
    const uint32_t above = w->at.mount;
    const bool quiet = w->at.quiet;

    go_to(w, fd);
    w->unreported = quiet || w->at.mount != above;
}

/*
 * Looks at the object of a name.  Its kind needs no server: an object on another mount is asked there,
 * by the look at the end.  For a link the owner counts, too.
 */
static fp_status look_at_name(const struct symlink_walk *w, int fd, struct fp_meta *m)
{
    const int sync = fp_resolver_sync(w->link->resolver, w->at.mount);
    fp_status st = fp_look_synced(fd, AT_STATX_DONT_SYNC, m, NULL);

    if (st == FP_OK && S_ISLNK(m->mode) && sync != AT_STATX_SYNC_AS_STAT)
        st = fp_look_synced(fd, sync, m, NULL);
    return st;
}

/* Goes on by the link that fd stands for.  Only one that ends a text ends a path, and may be refused. */
static fp_status go_by_link(struct symlink_walk *w, int fd, const struct fp_meta *m, bool more)
{
    const bool ends = w->rest[strspn(w->rest, "/")] == '\0';
    const fp_status st = ends ? fp_resolver_may_follow(w->at.fd, m) : FP_OK;

    return st == FP_OK ? enter_link(w, fd, more) : st;
}

/* Goes to the object of the next name.  more: other names follow. */
static fp_status take_name(struct symlink_walk *w, const char *name, bool more)
{
    struct fp_meta m = { .mode = S_IFDIR };
    fp_status st = FP_OK;
    bool is_directory;
    int fd;

    if (++*w->link->names > NAMES)
        return FP_REFUSED;
    fp_resolver_at(w->link->resolver, w->at.mount);
    if (fp_resolver_is_process(w->link->resolver, &w->at, name))
        return FP_REFUSED;
    note_name(w, name);
    fd = fp_open_name(w->at.fd, name, more || w->link->passed, &is_directory);
    if (fd == -1)
        return fp_why_not_opened();
    if (!is_directory)
        st = look_at_name(w, fd, &m);
    if (st == FP_OK && !S_ISLNK(m.mode) && (is_directory || !more)) {
        enter_directory(w, fd);
        return FP_OK;
    }
    if (st == FP_OK)
        st = S_ISLNK(m.mode) ? go_by_link(w, fd, &m, more) : FP_NOTDIR;
    fp_close(&fd);
    return st;
}

fp_status fp_symlink_follow(const struct fp_symlink *link, struct fp_node *node, unsigned *links_r)
{
    struct symlink_walk w = { .link = link, .at = *link->dir, .links = link->before };
    const char *name;
    fp_status st;
    bool more;

    w.rest = w.text;
    w.at.fd = fcntl(link->dir->fd, F_DUPFD_CLOEXEC, 0);
    st = w.at.fd != -1 ? enter_link(&w, node->fd, false) : FP_BUSY;
    while (st == FP_OK && (name = next_name(&w, &more)) != NULL)
        st = take_name(&w, name, more);
    fp_close(&node->fd);
    *links_r = w.links;
    if (st == FP_OK)
        *node = w.at;
    else
        fp_close(&w.at.fd);
    return st;
}
