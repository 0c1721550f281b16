/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "changes/mounts_view.h"
#include "changes/watch.h"
#include "common/answer.h"
#include "common/clock.h"
#include "common/packet.h"
#include "common/task.h"
#include "common/walk_result.h"
#include "common/wire.h"
#include "workers/calls.h"
#include "workers/content.h"

#define MAX_LINKS    40     /* followed for one step, as by the kernel */
#define READ_PIECE   65536  /* bytes of one read ahead */

/* What a walk has reached. */
struct place {
    int fd;                     /* O_PATH; -1: the walk cannot go on */
    uint32_t mount;
    struct fp_watch_key watch;  /* empty: nothing tells of changes there */
};

struct walk {
    const struct fp_resolver *r;
    const struct fp_task *task;
    struct place place;
    struct fp_answer *a;
    struct fp_walk_result *trail;
};

/* When it cannot be told, as if they were. */
static bool links_are_protected(void)
{
    char c = '1';
    int fd = open("/proc/sys/fs/protected_symlinks", O_RDONLY | O_CLOEXEC);

    if (fd != -1 && read(fd, &c, 1) != 1)
        c = '1';
    fp_close(&fd);
    return c != '0';
}

int fp_resolver_init(struct fp_resolver *r, const struct fp_resolver_settings *settings)
{
    r->settings = settings;
    r->protected_links = links_are_protected();
    r->slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return r->slash == -1 ? -1 : 0;
}

static bool is_everywhere(const struct fp_resolver *r)
{
    return r->settings->roots == NULL || r->settings->roots[0] == NULL;
}

static bool is_within(const struct fp_resolver *r, const char *path, size_t len)
{
    if (is_everywhere(r))
        return true;
    for (size_t i = 0; r->settings->roots[i] != NULL; i++) {
        if (fp_path_is_below(path, len, r->settings->roots[i]))
            return true;
    }
    return false;
}

/* A link may lead out of the roots: ask the kernel where the file really is. */
static bool opened_within(const struct fp_resolver *r, int fd)
{
    char name[FP_FD_NAME], real[FP_MAX_PATH + 1];
    ssize_t n;

    if (is_everywhere(r))
        return true;
    fp_fd_name(name, fd);
    n = readlink(name, real, sizeof(real));
    return n > 0 && (size_t)n < sizeof(real) && is_within(r, real, (size_t)n);
}

/* ---- looking ---- */

static void time_of(struct fp_time *t, const struct statx_timestamp *ts)
{
    t->sec = ts->tv_sec;
    t->nsec = ts->tv_nsec;
}

/* 0 where the kernel does not tell (before Linux 5.8). */
static uint32_t mount_in(const struct statx *st)
{
    return (st->stx_mask & STATX_MNT_ID) != 0 ? (uint32_t)st->stx_mnt_id : 0;
}

static void tell_meta(struct fp_meta *m, uint32_t *mount_r, const struct statx *st)
{
    m->mode = st->stx_mode;
    m->uid = st->stx_uid;
    m->gid = st->stx_gid;
    m->dev = makedev(st->stx_dev_major, st->stx_dev_minor);
    m->ino = st->stx_ino;
    m->nlink = st->stx_nlink;
    m->size = st->stx_size;
    m->blocks = st->stx_blocks;
    time_of(&m->atime, &st->stx_atime);
    time_of(&m->mtime, &st->stx_mtime);
    time_of(&m->ctime, &st->stx_ctime);
    *mount_r = mount_in(st);
}

static fp_status look(int fd, struct fp_meta *m, uint32_t *mount_r)
{
    struct statx st;

    if (fp_call_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) == -1)
        return fp_status_from_errno(errno);
    tell_meta(m, mount_r, &st);
    return FP_OK;
}

/* Does not ask the file system itself. */
static uint32_t mount_of(int fd)
{
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) == -1)
        return 0;
    return mount_in(&st);
}

/* Running out of descriptors says nothing about the path. */
static bool is_our_fault(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM;
}

static fp_status why_not_opened(void)
{
    return is_our_fault(errno) ? FP_BUSY : fp_status_from_errno(errno);
}

/*
 * Opens one name below dir without following it.  O_DIRECTORY first, where
 * more is to come: it makes an automount mount, which O_PATH alone does not.
 */
static int open_name(int dir, const char *name, bool more, bool *is_directory_r)
{
    int fd = -1;

    if (more)
        fd = fp_call_openat(dir, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    *is_directory_r = fd != -1;
    if (!more || (fd == -1 && errno == ENOTDIR))
        fd = fp_call_openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd;
}

/* ---- watching ---- */

/* Has it watched, before what is in it is looked at.  True where that was not
 * so before: what was seen of the place itself is too old then. */
static bool watch_place(const struct walk *w, struct place *p, bool directory, bool *refused_r)
{
    const struct fp_resolver_settings *settings = w->r->settings;
    enum fp_watch_by by;
    uint64_t began_us;
    bool local;
    fp_status st;

    if (p->watch.len > 0 || settings->view == NULL)
        return false;
    by = fp_mounts_view_find(settings->view, p->mount, &local);
    if (by == FP_BY_TTL)
        return false;
    began_us = fp_now_us();
    st = fp_watch_place(settings->watch, by, p->fd, directory, &p->watch);
    fp_call_note(FP_CALL_WATCH, began_us);
    if (st != FP_OK)
        p->watch.len = 0;
    *refused_r = *refused_r || st == FP_BUSY;
    return by == FP_BY_INOTIFY && st == FP_OK;
}

/* ---- links ---- */

/* A link is followed name by name, so that all that it depends on is known. */
struct trip {
    const struct walk *walk;
    struct fp_step_watch *origin;   /* of the step that the link is */
    struct place at;            /* where it has led so far */
    bool passed;                /* the path goes on behind the link */
    unsigned links;
    char *rest;                 /* what is left to go, in text */
    char text[2 * FP_MAX_PATH + 2];
};

/* Takes the descriptor. */
static void go_to(struct trip *t, int fd)
{
    fp_close(&t->at.fd);
    t->at.fd = fd;
    t->at.mount = mount_of(fd);
    t->at.watch.len = 0;
}

/*
 * The kernel's own rule (proc(5), protected_symlinks): in a sticky directory
 * that everybody may write to, a link at the end of a path counts only if it is
 * ours or the directory's owner's.
 */
static fp_status may_follow(const struct walk *w, int dir, const struct fp_meta *link)
{
    struct fp_meta m;
    uint32_t mount;
    fp_status st;

    if (!w->r->protected_links || link->uid == geteuid())
        return FP_OK;
    st = look(dir, &m, &mount);
    if (st == FP_OK && link->uid != m.uid
        && (m.mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH))
        return FP_DENIED;
    return st;
}

/* The text of the very link that was looked at: one put in its place meanwhile
 * does not come into it.  What was left to go follows it. */
static fp_status read_link(struct trip *t, int link, bool more)
{
    char text[FP_MAX_PATH + 1];
    ssize_t n = fp_call_readlinkat(link, "", text, sizeof(text));
    size_t rest = strlen(t->rest);

    if (n <= 0)
        return n == -1 ? fp_status_from_errno(errno) : FP_ABSENT;
    if (++t->links > MAX_LINKS)
        return FP_LOOP;
    if ((size_t)n >= sizeof(text) || (size_t)n + 1 + rest >= sizeof(t->text))
        return FP_NAMETOOLONG;
    memmove(t->text + n + 1, t->rest, rest + 1);
    t->text[n] = more ? '/' : '\0';
    memcpy(t->text, text, (size_t)n);
    t->rest = t->text;
    if (t->text[0] == '/')
        go_to(t, fcntl(t->walk->r->slash, F_DUPFD_CLOEXEC, 0));
    return t->at.fd == -1 ? FP_BUSY : FP_OK;
}

/* more: a slash follows, and must not get lost. */
static fp_status follow_link(struct trip *t, int link, const struct fp_meta *m, bool more)
{
    bool at_end = !t->passed && t->rest[strspn(t->rest, "/")] == '\0';
    fp_status st = at_end ? may_follow(t->walk, t->at.fd, m) : FP_OK;

    return st == FP_OK ? read_link(t, link, more) : st;
}

/* Cuts the next name off; NULL: there is none.  *more_r: something follows, and
 * be it a slash, so that it must be a directory. */
static const char *next_name(struct trip *t, bool *more_r)
{
    char *name = t->rest + strspn(t->rest, "/");
    size_t len = strcspn(name, "/");

    *more_r = name[len] != '\0';
    name[len] = '\0';
    t->rest = name + len + *more_r;
    return len > 0 ? name : NULL;
}

/* "." and ".." depend on no name in the directory. */
static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* The directory's own mode is told by inotify where the directory lies, as a
 * change of its name there; by fanotify only as a change of itself. */
static bool note_in(struct fp_walk_result *t, unsigned step, const struct fp_watch_key *dir,
                    const char *name)
{
    return dir->len > 0 && fp_walk_result_add(t, step, dir, name, strlen(name))
        && (dir->bytes[0] != FP_BY_FANOTIFY || fp_walk_result_add(t, step, dir, "", 0));
}

static void note_name(struct trip *t, const char *name)
{
    unsigned step = (unsigned)(t->origin - t->walk->trail->step_watches);

    if (is_dots(name))
        return;
    watch_place(t->walk, &t->at, true, &t->origin->refused);
    if (!note_in(t->walk->trail, step, &t->at.watch, name))
        t->origin->untold = true;
}

/* t->at goes on by one name, or to where the link of that name begins. */
static fp_status pass(struct trip *t, const char *name, bool more)
{
    struct fp_meta m = { 0 };
    bool is_directory;
    uint32_t mount;
    fp_status st = FP_OK;
    int fd;

    note_name(t, name);
    fd = open_name(t->at.fd, name, more, &is_directory);
    if (fd == -1)
        return why_not_opened();
    if (!is_directory)
        st = look(fd, &m, &mount);
    if (st == FP_OK && S_ISLNK(m.mode))
        st = follow_link(t, fd, &m, more);
    else if (st == FP_OK && more && !is_directory)
        st = FP_NOTDIR;
    else if (st == FP_OK) {
        go_to(t, fd);
        return FP_OK;
    }
    fp_close(&fd);
    return st;
}

/* The link open as p->fd lies at w's place; p becomes its target.  passed: the
 * path goes on behind it. */
static fp_status follow(const struct walk *w, struct place *p, const struct fp_meta *link,
                        struct fp_step_watch *origin, bool passed)
{
    struct trip t = { .walk = w, .origin = origin, .at = w->place, .passed = passed };
    const char *name;
    fp_status st;
    bool more;

    t.text[0] = '\0';
    t.rest = t.text;
    t.at.fd = fcntl(w->place.fd, F_DUPFD_CLOEXEC, 0);
    st = t.at.fd != -1 ? follow_link(&t, p->fd, link, false) : FP_BUSY;
    while (st == FP_OK && (name = next_name(&t, &more)) != NULL)
        st = pass(&t, name, more);
    fp_close(&p->fd);
    if (st == FP_OK)
        *p = t.at;
    else
        fp_close(&t.at.fd);
    return st;
}

/* ---- one step ---- */

/* Has what the step leads to watched, and looks at it once more if need be. */
static fp_status settle(const struct walk *w, struct place *p, struct fp_meta *m,
                        struct fp_step_watch *origin)
{
    bool directory = S_ISDIR(m->mode);
    fp_status st = FP_OK;

    if ((directory || S_ISREG(m->mode)) && watch_place(w, p, directory, &origin->refused))
        st = look(p->fd, m, &p->mount);
    origin->mount = p->mount;
    origin->watch = p->watch;
    return st;
}

static fp_status look_at_target(struct walk *w, struct place *p, struct fp_step *s,
                                struct fp_step_watch *origin, bool passed)
{
    fp_status st = follow(w, p, &s->self, origin, passed);

    if (st == FP_OK)
        st = look(p->fd, &s->target, &p->mount);
    if (st == FP_OK)
        st = settle(w, p, &s->target, origin);
    return st;
}

/*
 * One step down from w's place, which becomes the new one, or -1 where the walk
 * cannot go on.  False when we, not the path, are the reason.
 */
static bool step(struct walk *w, const char *name, bool more)
{
    struct fp_step *s = &w->a->steps[w->a->n_steps];
    struct fp_step_watch *origin = &w->trail->step_watches[w->a->n_steps];
    struct place next = { .mount = 0 };
    bool is_directory;
    fp_status last;

    next.fd = open_name(w->place.fd, name, more, &is_directory);
    s->target_status = FP_OK;
    last = s->status = next.fd == -1 ? why_not_opened() : look(next.fd, &s->self, &next.mount);
    if (s->status == FP_OK && S_ISLNK(s->self.mode))
        last = s->target_status = look_at_target(w, &next, s, origin, more);
    else if (s->status == FP_OK)
        last = s->status = settle(w, &next, &s->self, origin);
    if (last != FP_OK)
        fp_close(&next.fd);
    fp_close(&w->place.fd);
    w->place = next;
    return last != FP_BUSY;
}

/* ---- the end ---- */

/* So that whoever sends the file does not wait for what the open brought in. */
static void read_ahead(int fd, size_t bytes, uint64_t size)
{
    static char buf[READ_PIECE];
    size_t end = size < bytes ? (size_t)size : bytes;

    for (size_t at = 0; at < end; at += sizeof(buf)) {
        if (fp_call_pread(fd, buf, end - at < sizeof(buf) ? end - at : sizeof(buf), (off_t)at)
            <= 0)
            return;
    }
}

/*
 * Opens what place stands for, by the kernel's own name for it, so that it is
 * the inode that was looked at; then looks again, at the descriptor itself.
 * Answers why not: FP_OK also where the file may not be read (fd stays -1).
 * Somebody's lease on the file (EAGAIN) is for httpd to wait for.
 */
static fp_status open_file(const struct fp_resolver *r, int place,
                           struct fp_meta *m, int *fd_r)
{
    char name[FP_FD_NAME];
    uint32_t mount;
    fp_status st;

    fp_fd_name(name, place);
    *fd_r = fp_call_openat(AT_FDCWD, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd_r == -1 && (errno == EACCES || errno == EPERM))
        return FP_OK;
    if (*fd_r == -1 && errno == EAGAIN)
        return FP_FAILED;
    if (*fd_r == -1)
        return is_our_fault(errno) ? FP_BUSY : fp_status_from_errno(errno);
    if (!opened_within(r, *fd_r)) {
        fp_close(fd_r);
        return FP_REFUSED;
    }
    st = look(*fd_r, m, &mount);
    if (st != FP_OK)
        fp_close(fd_r);
    return st;
}

static bool is_local(const struct walk *w)
{
    bool local = false;

    if (w->r->settings->view != NULL)
        fp_mounts_view_find(w->r->settings->view, w->place.mount, &local);
    return local;
}

/* The content in the descriptor's place.  False, and nothing is changed: the file
 * itself has to do. */
static bool take_content(struct walk *w, const struct fp_meta *m)
{
    struct fp_answer *a = w->a;
    struct fp_meta after;
    uint64_t began_us;
    uint32_t mount;
    int fd;

    if (!fp_content_is_due(m, w->task->content_max))
        return false;
    began_us = fp_now_us();
    fd = fp_content_create(a->fd, m->size);
    fp_call_note(FP_CALL_READ, began_us);
    if (fd != -1 && (look(a->fd, &after, &mount) != FP_OK || !fp_meta_equal(m, &after)))
        fp_close(&fd);
    if (fd == -1)
        return false;
    fp_close(&a->fd);
    a->fd = fd;
    a->content = a->local = true;
    return true;
}

/* What was opened is answered by its content, or by its descriptor, unless that is
 * there already. */
static void take_file(struct walk *w, const struct fp_meta *m, bool known)
{
    struct fp_answer *a = w->a;

    if (take_content(w, m))
        return;
    if (known && fp_meta_equal(m, &w->task->known)) {
        fp_close(&a->fd);
        a->unchanged = true;
        return;
    }
    a->local = is_local(w);
    read_ahead(a->fd, w->r->settings->read_ahead, m->size);
}

/* A directory is kept to begin other walks at; a file is opened, unless it is
 * as it was and is not to be answered by its content. */
static fp_status finish(struct walk *w)
{
    struct fp_answer *a = w->a;
    struct fp_step *last = &a->steps[a->n_steps - 1];
    bool link = S_ISLNK(last->self.mode);
    struct fp_meta *m = link ? &last->target : &last->self;
    bool known = w->task->has_known && !link;
    fp_status st;

    if (w->place.fd == -1)
        return FP_OK;
    if (S_ISDIR(m->mode)) {
        a->fd = w->place.fd;
        w->place.fd = -1;
        return FP_OK;
    }
    if (!S_ISREG(m->mode))
        return FP_OK;
    if (known && fp_meta_equal(m, &w->task->known)
        && !fp_content_is_due(m, w->task->content_max)) {
        a->unchanged = true;
        return FP_OK;
    }
    st = open_file(w->r, w->place.fd, m, &a->fd);
    if (a->fd != -1)
        take_file(w, m, known);
    if (st == FP_OK || st > FP_IOERROR)
        return st;
    /* That is the file system's word on the file, not on the question. */
    if (link)
        last->target_status = st;
    else
        last->status = st;
    return FP_OK;
}

static void tell_access(struct fp_access *x, const struct fp_meta *m)
{
    x->status = FP_OK;
    x->mode = m->mode;
    x->dev = m->dev;
    x->ino = m->ino;
    x->size = m->size;
    x->mtime = m->mtime;
    x->ctime = m->ctime;
}

/* In a watched directory: the file is watched, too, and what a link to it
 * passes, since both may change without the directory. */
static fp_status look_at_access(const struct walk *w, const char *name, struct fp_meta *m,
                                struct fp_step_watch *origin)
{
    struct place p = { .fd = fp_call_openat(w->place.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) };
    unsigned step = (unsigned)(origin - w->trail->step_watches);
    fp_status st = p.fd != -1 ? look(p.fd, m, &p.mount) : why_not_opened();

    /* Links are followed, as by httpd when it opens one. */
    if (st == FP_OK && S_ISLNK(m->mode)) {
        st = follow(w, &p, m, origin, false);
        if (st == FP_OK)
            st = look(p.fd, m, &p.mount);
    }
    if (st == FP_OK && S_ISREG(m->mode)) {
        watch_place(w, &p, false, &origin->refused);
        if (p.watch.len == 0 || !fp_walk_result_add(w->trail, step, &p.watch, "", 0))
            origin->untold = true;
        st = look(p.fd, m, &p.mount);
    }
    fp_close(&p.fd);
    return st;
}

static fp_status look_by_name(const struct walk *w, const char *name, struct fp_meta *m)
{
    struct statx st;
    uint32_t mount;

    if (fp_call_statx(w->place.fd, name, 0, STATX_BASIC_STATS, &st) == -1)
        return why_not_opened();
    tell_meta(m, &mount, &st);
    return FP_OK;
}

/* In the directory that the step leads to. */
static void look_for_names(const struct walk *w, struct fp_step *s, struct fp_step_watch *origin)
{
    const struct fp_names *names = &w->task->lookup.names;

    for (unsigned i = 0; i < names->n && fp_step_is_dir(s); i++) {
        char name[FP_MAX_NAME + 1];
        struct fp_meta m;

        memcpy(name, names->list[i].name, names->list[i].len);
        name[names->list[i].len] = '\0';
        s->access[i].status = w->place.watch.len > 0 ? look_at_access(w, name, &m, origin)
            : look_by_name(w, name, &m);
        if (s->access[i].status == FP_OK)
            tell_access(&s->access[i], &m);
        else if (s->access[i].status > FP_IOERROR)
            s->access[i].status = FP_IOERROR;
    }
}

static void tell_root(struct walk *w)
{
    struct fp_step *s = &w->a->steps[0];
    struct fp_step_watch *origin = &w->trail->step_watches[0];

    s->end = 1;
    s->target_status = FP_OK;
    s->status = look(w->place.fd, &s->self, &w->place.mount);
    if (s->status == FP_OK)
        s->status = settle(w, &w->place, &s->self, origin);
    look_for_names(w, s, origin);
    w->a->n_steps = 1;
}

static bool may_go_on(const struct fp_answer *a)
{
    return a->n_steps == 0 || fp_step_is_dir(&a->steps[a->n_steps - 1]);
}

/* From w's place, which stands for the path's first at bytes. */
static fp_status walk(struct walk *w, char *path, size_t at, size_t len)
{
    struct fp_answer *a = w->a;

    while (at < len && may_go_on(a)) {
        struct fp_step *s = &a->steps[a->n_steps];
        size_t end;

        if (path[at] == '/')
            at++;
        end = at + strcspn(path + at, "/");
        if (a->n_steps == FP_MAX_STEPS)
            return FP_TOODEEP;
        path[end] = '\0';
        s->end = (uint16_t)end;
        if (!step(w, path + at, end < len))
            return FP_BUSY;
        path[end] = end < len ? '/' : '\0';
        look_for_names(w, s, &w->trail->step_watches[a->n_steps]);
        a->n_steps++;
        at = end;
    }
    return FP_OK;
}

void fp_resolve(const struct fp_resolver *r, const struct fp_task *t, int base,
                struct fp_answer *a, struct fp_walk_result *trail)
{
    const struct fp_lookup *l = &t->lookup;
    struct walk w = { .r = r, .task = t, .place = { .fd = -1 }, .a = a, .trail = trail };
    char copy[FP_MAX_PATH + 1];
    fp_status st = FP_REFUSED;

    fp_calls_begin();
    fp_answer_init(a, FP_OK);
    fp_walk_result_init(trail);
    a->n_names = l->names.n;
    memcpy(copy, l->path, l->path_len);
    copy[l->path_len] = '\0';
    if (is_within(r, l->path, l->path_len)) {
        w.place.fd = fcntl(base != -1 ? base : r->slash, F_DUPFD_CLOEXEC, 0);
        st = w.place.fd == -1 ? FP_BUSY : FP_OK;
    }
    if (st == FP_OK && base == -1)
        tell_root(&w);
    if (st == FP_OK && base != -1)
        w.place.mount = mount_of(base);
    if (st == FP_OK)
        st = walk(&w, copy, base != -1 ? t->base_len : 1, l->path_len);
    if (st == FP_OK && a->steps[a->n_steps - 1].end == l->path_len)
        st = finish(&w);
    fp_close(&w.place.fd);
    if (st != FP_OK) {
        fp_close(&a->fd);
        fp_answer_init(a, st);
        fp_walk_result_init(trail);      /* tells of steps that are not there */
    }
    trail->effort = fp_calls_end();
}
