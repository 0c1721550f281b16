/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "changes/mount_list.h"
#include "changes/watch.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/server_clock.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "wire/wire.h"
#include "workers/calls.h"
#include "workers/content.h"
#include "workers/resolve_links.h"

#define READ_AHEAD 65536 /* bytes at the beginning of a file */
#define OPENS      3     /* of a file that changes meanwhile */

struct walk {
    const struct fp_resolver *r;
    const struct fp_task *task;
    struct fp_node dir; /* the next name lies in it */
    unsigned links;     /* followed on the path so far */
    unsigned names;     /* as in struct fp_symlink */
    bool at_end;        /* the step is the path's last */
    struct fp_answer *a;
    struct fp_walk_result *result;
};

/* ---- one step ---- */

/*
 * Only on local file systems all names of a file are sure to be one inode: its watch reports
 * changes by any of them.  Without a watch nobody reports changes by the other names.
 */
static void note_names(const struct walk *w, unsigned step, const struct fp_node *node,
                       const struct fp_meta *m)
{
    if (S_ISDIR(m->mode) || m->nlink <= 1)
        return;
    if (node->unwatchable)
        fp_walk_result_judge(w->result, step, FP_EACH_REQUEST);
    else if (fp_resolver_traits(w->r, node->mount).verdict == FP_REPORTED_OTHERS)
        fp_walk_result_judge(w->result, step, FP_TTL_UNREPORTED);
}

/* True for a file that will be answered by its content:
 * the look that has to follow the reading counts as well. */
static bool is_read(const struct walk *w, const struct fp_meta *m, uint32_t mount)
{
    const struct fp_mount_traits traits = fp_resolver_traits(w->r, mount);

    return fp_content_is_wanted(m, w->task->content_max, &traits);
}

/*
 * Has a file (with directories: or a directory) watched and then looks at it.  The first look,
 * which shows the kind, asks no server; only a look behind the watch counts.  Where that is left to finish(),
 * node->look_is_due is true.
 */
static fp_status look(const struct walk *w, struct fp_node *node, bool directories, struct fp_meta *m)
{
    const unsigned step = w->a->n_steps;
    fp_status st = fp_look_synced(node->fd, AT_STATX_DONT_SYNC, m, &node->mount);
    bool directory, again;
    int sync;

    if (st == FP_OK && S_ISLNK(m->mode))
        st = fp_resolver_may_follow(w->dir.fd, m);
    if (st != FP_OK)
        return st;
    node->dev = m->dev;
    node->ino = m->ino;
    node->uid = m->uid;
    fp_resolver_at(w->r, node->mount);
    sync = fp_resolver_sync(w->r, node->mount);
    again = sync != AT_STATX_SYNC_AS_STAT;
    directory = S_ISDIR(m->mode);
    if (fp_resolver_asks_first(w->r, node->mount)) {
        st = fp_look_synced(node->fd, sync, m, NULL);
        sync = AT_STATX_SYNC_AS_STAT;
    }
    if (S_ISLNK(m->mode) && !fp_walk_result_has_room(w->result, 0))
        fp_walk_result_judge(w->result, step, FP_EACH_REQUEST);
    else if (S_ISREG(m->mode) || S_ISLNK(m->mode) || (directory && directories))
        again = fp_node_watch(w->r, node, directory, w->result, step) || again;
    node->look_is_due = again && directories && w->at_end && is_read(w, m, node->mount);
    /* The step's end has a watch of its own: the link's is one more thing that the step depends on. */
    if (S_ISLNK(m->mode) && node->watch.len > 0)
        fp_walk_result_add(w->result, step, &node->watch, "", 0);
    if (st == FP_OK && again && !node->look_is_due)
        st = fp_look_synced(node->fd, sync, m, &node->mount);
    if (st == FP_OK)
        note_names(w, step, node, m);
    return st;
}

/* Looks at the end of a step. */
static fp_status look_at_end(const struct walk *w, struct fp_node *node, struct fp_meta *m)
{
    struct fp_step_watch *watch = &w->result->step_watches[w->a->n_steps];
    fp_status st = look(w, node, true, m);

    if (st != FP_OK || S_ISLNK(m->mode))
        return st;
    watch->mount = node->mount;
    watch->watch = node->watch;
    if (node->quiet)
        fp_walk_result_judge(w->result, w->a->n_steps, FP_REPORTED_NAMES);
    return FP_OK;
}

/* node: a link in the directory; becomes its target.  *links_r: the links of the whole path by then. */
static fp_status follow(struct walk *w, struct fp_node *node, bool passed, unsigned *links_r)
{
    const struct fp_symlink symlink = { w->r, &w->dir, w->result, w->a->n_steps, w->links, &w->names, passed };

    return fp_symlink_follow(&symlink, node, links_r);
}

/*
 * Takes one step down from w->dir, which becomes the end of the step, or -1 where the walk
 * cannot go on.  Any status but FP_OK: not the path is the reason.
 */
static fp_status step(struct walk *w, const char *name, bool more)
{
    struct fp_step *s = &w->a->steps[w->a->n_steps];
    struct fp_node next = { .mount = 0 };
    bool is_directory;
    fp_status last;

    fp_resolver_at(w->r, w->dir.mount);
    if (fp_resolver_is_process(w->r, &w->dir, name))
        return FP_REFUSED;
    next.fd = fp_open_name(w->dir.fd, name, more, &is_directory);
    s->target_status = FP_OK;
    last = s->status = next.fd == -1 ? fp_why_not_opened() : look_at_end(w, &next, &s->self);
    if (s->status == FP_OK && S_ISLNK(s->self.mode)) {
        unsigned links;

        last = follow(w, &next, more, &links);
        if (last == FP_OK)
            w->links = links;
        if (last == FP_OK)
            last = look_at_end(w, &next, &s->target);
        s->target_status = last;
    }
    /* A look at an automount does not mount it: the files behind it are not seen yet. */
    if (last == FP_OK && !more && fp_step_is_dir(s) && fp_resolver_is_automount(w->r, &next))
        last = FP_REFUSED;
    w->result->step_watches[w->a->n_steps].links = (uint8_t)w->links;
    if (last != FP_OK)
        fp_close(&next.fd);
    fp_close(&w->dir.fd);
    w->dir = next;
    return last == FP_BUSY || last == FP_REFUSED ? last : FP_OK;
}

/* ---- the end ---- */

/* Reads the file ahead, so that a child that sends it does not wait for the disk. */
static void read_ahead(int fd, uint64_t size)
{
    static char buf[READ_AHEAD];

    (void)fp_call_pread(fd, buf, size < sizeof(buf) ? (size_t)size : sizeof(buf), 0);
}

/*
 * Opens the file that path_fd stands for by the kernel's own name for it: so it is the inode that was
 * looked at.  FP_OK also where the file may not be read (*fd_r is -1).
 * If another process has a lease on the file (EAGAIN), httpd has to wait for it.  ENOENT is about /proc, or
 * about a file that has gone since it was looked at: it says nothing of the name.
 */
static fp_status open_once(const struct fp_resolver *r, int path_fd, int *fd_r)
{
    char name[FP_FD_NAME];

    fp_fd_name(name, path_fd);
    *fd_r = fp_call_openat(AT_FDCWD, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd_r == -1 && errno == EACCES)
        return FP_OK;
    if (*fd_r == -1 && (errno == EAGAIN || errno == ENOENT || errno == ENOTDIR))
        return FP_FAILED;
    if (*fd_r == -1)
        return fp_why_not_opened();
    if (!fp_resolver_opened_within(r, *fd_r)) {
        fp_close(fd_r);
        return FP_REFUSED;
    }
    return FP_OK;
}

/*
 * *m: the metadata that a look at the file found before it was opened; becomes that of the descriptor. The
 * two are the same, or rights may have been revoked between open and look, and the file is opened again.
 * Otherwise the later look would make the cache keep a descriptor that nobody would get any more. Of a file
 * that changes all the time *m stays the earlier look.
 */
static fp_status look_at_open(const struct fp_resolver *r, int path_fd, struct fp_meta *m, int *fd_r)
{
    for (unsigned tries = 1; *fd_r != -1; tries++) {
        const struct fp_meta before = *m;
        fp_status st = fp_look(*fd_r, m, NULL);

        if (st == FP_OK && fp_meta_equal(&before, m))
            return FP_OK;
        if (st == FP_OK && tries == OPENS) {
            *m = before;
            return FP_OK;
        }
        fp_close(fd_r);
        if (st == FP_OK)
            st = open_once(r, path_fd, fd_r);
        if (st != FP_OK)
            return st;
    }
    return FP_OK;
}

/* Takes the content in the descriptor's place.  m is a look before the open:
 * it is the only one needed, as the look after the reading finds the same,
 * behind the watch.  False, and nothing is changed: the file itself has to do. */
static bool take_content(struct walk *w, struct fp_meta *m)
{
    const struct fp_mount_traits traits = fp_resolver_traits(w->r, w->dir.mount);
    struct fp_answer *a = w->a;
    struct fp_meta after;
    uint64_t began_us;
    int fd;

    if (!fp_content_is_wanted(m, w->task->content_max, &traits))
        return false;
    w->result->settled = fp_content_is_settled(m, &traits);
    began_us = fp_now_us();
    fd = fp_content_create(a->fd, m->size);
    fp_call_note(FP_CALL_READ, began_us);
    if (fd != -1
        && (fp_look_synced(a->fd, fp_resolver_sync(w->r, w->dir.mount), &after, NULL) != FP_OK
            || !fp_meta_equal(m, &after)))
        fp_close(&fd);
    if (fd == -1)
        return false;
    fp_close(&a->fd);
    a->fd = fd;
    a->content = a->local = true;
    *m = after; /* its time of access may be later */
    return true;
}

/* The look at the path's end that its content should have spared, but was not taken. */
static fp_status look_late(const struct walk *w, struct fp_meta *m)
{
    fp_status st;

    if (!w->dir.look_is_due)
        return FP_OK;
    st = fp_look_synced(w->dir.fd, fp_resolver_sync(w->r, w->dir.mount), m, NULL);
    if (st == FP_OK)
        note_names(w, w->a->n_steps - 1, &w->dir, m);
    return st;
}

/* Answers an open file by its descriptor, unless the cache has that already. */
static void take_file(struct walk *w, const struct fp_meta *m, bool known)
{
    struct fp_answer *a = w->a;

    if (known && fp_meta_equal(m, &w->task->known)) {
        fp_close(&a->fd);
        a->unchanged = true;
        return;
    }
    a->local = w->r->settings->mounts != NULL && fp_resolver_traits(w->r, w->dir.mount).local;
    read_ahead(a->fd, m->size);
}

/* Opens the regular file at the path's end, to be answered by its content or its descriptor. */
static fp_status open_file(struct walk *w, struct fp_meta *m, bool known)
{
    struct fp_answer *a = w->a;
    fp_status st = open_once(w->r, w->dir.fd, &a->fd);

    if (a->fd != -1 && take_content(w, m))
        return FP_OK;
    if (st == FP_OK)
        st = look_late(w, m);
    if (st == FP_OK)
        st = look_at_open(w->r, w->dir.fd, m, &a->fd);
    if (st != FP_OK)
        fp_close(&a->fd);
    if (a->fd != -1)
        take_file(w, m, known);
    return st;
}

/* A directory is kept to begin other walks at.  A file is opened, unless it is as it was before and is not to be
 * answered by its content, or is only to be looked at and has changed. */
static fp_status finish(struct walk *w)
{
    struct fp_answer *a = w->a;
    struct fp_step *last = &a->steps[a->n_steps - 1];
    const bool link = S_ISLNK(last->self.mode), known = w->task->has_known && !link;
    struct fp_meta *m = link ? &last->target : &last->self;
    bool same;
    fp_status st;

    if (w->dir.fd == -1)
        return FP_OK;
    fp_resolver_at(w->r, w->dir.mount);
    if (S_ISDIR(m->mode)) {
        a->fd = w->dir.fd;
        w->dir.fd = -1;
        return FP_OK;
    }
    if (!S_ISREG(m->mode))
        return FP_OK;
    same = known && fp_meta_equal(m, &w->task->known);
    a->unchanged = same ? !w->dir.look_is_due && !is_read(w, m, w->dir.mount) : w->task->looks_only && !link;
    st = a->unchanged ? look_late(w, m) : open_file(w, m, known);
    if (st == FP_OK || st > FP_IOERROR)
        return st;
    /* The status is the file system's word on the file, not on the question. */
    a->unchanged = false;
    if (link)
        last->target_status = st;
    else
        last->status = st;
    return FP_OK;
}

/* ---- access files ---- */

static fp_status follow_and_look(struct walk *w, struct fp_node *node, struct fp_meta *m)
{
    unsigned links;
    fp_status st = follow(w, node, false, &links);

    return st == FP_OK ? look(w, node, false, m) : st;
}

/* Looks in a watched directory.  The file is watched, too, and the names that a link to it
 * traverses, since both may change without the directory. */
static fp_status look_and_watch(struct walk *w, const char *name, struct fp_meta *m)
{
    struct fp_node node = { .fd = fp_call_openat(w->dir.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) };
    fp_status st = node.fd != -1 ? look(w, &node, false, m) : fp_why_not_opened();

    /* Links are followed, as by httpd when it opens one. */
    if (st == FP_OK && S_ISLNK(m->mode))
        st = follow_and_look(w, &node, m);
    if (st == FP_OK && S_ISREG(m->mode)
        && (node.watch.len == 0 || !fp_walk_result_add(w->result, w->a->n_steps, &node.watch, "", 0)))
        fp_walk_result_judge(w->result, w->a->n_steps, FP_TTL_UNREPORTED);
    fp_close(&node.fd);
    return st;
}

static fp_status look_by_name(const struct walk *w, const char *name, struct fp_meta *m)
{
    struct statx st;

    if (fp_call_statx(w->dir.fd, name, fp_resolver_sync(w->r, w->dir.mount), STATX_BASIC_STATS, &st) == -1)
        return fp_why_not_opened();
    fp_meta_from_statx(m, &st);
    return FP_OK;
}

/* Looks for access files in w->dir, which the answer's next step leads to. */
static void look_for_names(struct walk *w)
{
    const struct fp_names *names = &w->task->names;
    struct fp_step *s = &w->a->steps[w->a->n_steps];

    for (unsigned i = 0; i < names->n && fp_step_is_dir(s); i++) {
        char name[FP_MAX_NAME + 1];
        struct fp_meta m;
        fp_status st;

        memcpy(name, names->list[i].name, names->list[i].len);
        name[names->list[i].len] = '\0';
        fp_resolver_at(w->r, w->dir.mount);
        /* The kernel would count the links of the name alone. */
        st = w->dir.watch.len > 0 || w->dir.unwatchable || w->links > 0 ? look_and_watch(w, name, &m)
                                                                        : look_by_name(w, name, &m);
        if (st == FP_OK)
            s->access[i] = fp_access_of(&m);
        else
            s->access[i].status = st > FP_IOERROR ? FP_IOERROR : st;
    }
}

/* ---- the walk ---- */

static void look_at_root(struct walk *w)
{
    struct fp_step *s = &w->a->steps[0];

    s->end = 1;
    s->target_status = FP_OK;
    s->status = look_at_end(w, &w->dir, &s->self);
    look_for_names(w);
    w->a->n_steps = 1;
}

/* Walks from w->dir, which stands for the path's first at bytes. */
static fp_status walk(struct walk *w, char *path, size_t at, size_t len)
{
    struct fp_answer *a = w->a;

    while (at < len && (a->n_steps == 0 || fp_step_is_dir(&a->steps[a->n_steps - 1]))) {
        fp_status st;
        size_t end;

        if (path[at] == '/')
            at++;
        end = at + strcspn(path + at, "/");
        if (a->n_steps == FP_MAX_STEPS)
            return FP_TOODEEP;
        path[end] = '\0';
        w->at_end = end == len;
        a->steps[a->n_steps].end = (uint16_t)end;
        st = step(w, path + at, end < len);
        if (st != FP_OK)
            return st;
        path[end] = end < len ? '/' : '\0';
        look_for_names(w);
        a->n_steps++;
        at = end;
    }
    return FP_OK;
}

static bool is_removed(int dir)
{
    struct statx st;

    return fp_call_statx(dir, "", AT_EMPTY_PATH, STATX_NLINK, &st) == 0 && st.stx_nlink == 0;
}

/* Begins at "/", or at base: a directory on the way that is open already. */
static fp_status begin(struct walk *w, int base)
{
    const struct fp_lookup *l = &w->task->lookup;

    if (!fp_resolver_is_within(w->r, l->path, l->path_len))
        return FP_REFUSED;
    w->dir.fd = fcntl(base != -1 ? base : w->r->slash, F_DUPFD_CLOEXEC, 0);
    if (w->dir.fd == -1)
        return FP_BUSY;
    if (base == -1) {
        look_at_root(w);
        return FP_OK;
    }
    fp_node_identify(&w->dir);
    w->links = w->task->base_links;
    fp_resolver_at(w->r, w->dir.mount);
    if (!w->task->names_known)
        fp_resolver_sync_names(w->r, base, w->dir.mount);
    return FP_OK;
}

void fp_resolve(const struct fp_resolver *r, const struct fp_task *t, int base, struct fp_answer *a,
                struct fp_walk_result *result)
{
    const struct fp_lookup *l = &t->lookup;
    struct walk w = { .r = r, .task = t, .dir = { .fd = -1 }, .a = a, .result = result };
    char copy[FP_MAX_PATH + 1];
    fp_status st;

    fp_calls_begin();
    fp_server_clock_learn(t->clock_dev, t->clock_ms);
    fp_answer_init(a, FP_OK);
    fp_walk_result_init(result);
    a->n_names = w.task->names.n;
    memcpy(copy, l->path, l->path_len);
    copy[l->path_len] = '\0';
    st = begin(&w, base);
    if (st == FP_OK)
        st = walk(&w, copy, base != -1 ? t->base_len : 1, l->path_len);
    /* The path may lead to another directory by now.  So this
     * is what a server says of a directory that is gone. */
    if (st == FP_OK && base != -1 && a->steps[0].status == FP_ABSENT && is_removed(base))
        a->steps[0].status = FP_IOERROR;
    if (st == FP_OK && a->steps[a->n_steps - 1].end == l->path_len)
        st = finish(&w);
    fp_close(&w.dir.fd);
    fp_resolver_at(r, 0);
    result->n_steps = a->n_steps;
    if (st != FP_OK) {
        /* The step where it failed may have watches as well. */
        result->n_steps += a->n_steps < FP_MAX_STEPS;
        fp_close(&a->fd);
        fp_answer_init(a, st);
    }
    result->effort = fp_calls_end();
}
