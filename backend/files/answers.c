/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "files/devices.h"
#include "files/names.h"
#include "files/pace.h"
#include "files/rights.h"
#include "shared/contents.h"
#include "shared/known.h"
#include "shared/lease_table.h"

#define HINTS   1024u /* paths whose hints are remembered, about, */
#define HINT_MS 1000u /* for so long: what the daemon cannot answer costs no message each time */

static const struct fp_files_source *_Atomic source; /* NULL: nobody is asked */
/* The upper half is of the path's hash; the lower one is when, in ms, and as the last bit whether by a call that opens. */
static _Atomic uint64_t hinted[HINTS];

static __thread bool inside; /* the library's own calls go to the C library */
static __thread struct {
    struct fp_pace *pace; /* of a path that is left to the C library; else NULL */
    uint64_t began_us;
    bool again; /* the daemon had been told of the path, by a call of that pace */
    struct fp_files_right right; /* that the C library has to say */
} call;

bool fp_files_is_inside(void)
{
    return inside;
}

void fp_files_begin(const struct fp_files_source *s)
{
    atomic_store(&source, s);
}

void fp_files_end(void)
{
    atomic_store(&source, NULL);
}

/* ---- what the daemon does not know ---- */

/* True: the daemon has been told of the path a moment ago, and *opens is whether by a call that opens. Otherwise it is
 * told now. */
static bool was_told(const char *path, size_t len, bool *opens)
{
    const uint64_t now = fp_now_ms() << 1;
    uint64_t hash = 0xcbf29ce484222325u, before;
    _Atomic uint64_t *place;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)path[i]) * 0x100000001b3u;
    place = &hinted[hash % HINTS];
    before = atomic_load_explicit(place, memory_order_relaxed);
    if (before >> 32 == hash >> 32 && (uint32_t)now + 1 - (uint32_t)before < HINT_MS << 1) {
        *opens = before & 1;
        return true;
    }
    atomic_store_explicit(place, (hash >> 32 << 32) | (uint32_t)now | *opens, memory_order_relaxed);
    return false;
}

/*
 * True if the daemon shall know the answer, or go on knowing it. One that all changes are reported of lasts; another one
 * would be looked at again each time that its time is over. That is no gain where the kernel answers from its memory.
 */
static bool is_worth_knowing(const struct fp_lease_view *view, fp_status found, const struct fp_answer *a,
                             const struct fp_pace *pace)
{
    return found == FP_UNKNOWN || a->may_look || !fp_pace_is_quick(pace)
           || (found == FP_ASK && !fp_known_is_unchanged(view, a));
}

/* Waits for the daemon's look where that is quicker than a call. True: the answer is in the tables. */
static bool ask(const struct fp_files_source *from, const struct fp_lease_view *view, const char *path, size_t len,
                struct fp_answer *a)
{
    bool found;

    if (!fp_pace_asks(call.pace)) {
        from->hint(view, path, len);
        return false;
    }
    found = from->ask(view, path, len, a) && fp_known_find(view, path, len, true, a) == FP_OK;
    fp_pace_asked(call.pace, fp_now_us() - call.began_us, found);
    call.began_us = fp_now_us();
    return found;
}

/* True: *a is the answer, and holds. Otherwise the C library's call is measured from now on. */
static bool find_answer(const struct fp_files_source *from, const struct fp_lease_view *view, const char *path,
                        size_t len, bool opens, struct fp_answer *a)
{
    struct fp_pace *pace = fp_pace_of(path, len, opens);
    const fp_status st = fp_known_find(view, path, len, true, a);
    const bool worth = is_worth_knowing(view, st, a, pace);

    if (st == FP_OK) {
        if (worth)
            fp_known_use(view, a);
        return true;
    }
    call.began_us = fp_now_us();
    call.again = worth && was_told(path, len, &opens);
    call.pace = call.again ? fp_pace_of(path, len, opens) : pace;
    return worth && !call.again && ask(from, view, path, len, a);
}

void fp_files_called(void)
{
    if (inside || call.pace == NULL)
        return;
    fp_pace_called(call.pace, fp_now_us() - call.began_us, call.again);
    call.pace = NULL;
}

/* ---- paths ---- */

/*
 * The path in normal form, as its text says: itself, or in buf, of FP_MAX_PATH + 1 bytes. NULL: it is too long.
 * *is_dir_r: it means what a link at its end leads to, a directory.
 */
static const char *normalise(const char *path, size_t len, char *buf, size_t *len_r, bool *is_dir_r)
{
    const char *last;

    *len_r = len;
    *is_dir_r = false;
    if (fp_path_is_normal(path, len))
        return path;
    if (!fp_path_normalise("/", path, buf))
        return NULL;
    last = strrchr(path, '/') + 1;
    *is_dir_r = last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
    *len_r = strlen(buf);
    return buf;
}

/* Asks again, as the answer may be another one by now. said: the C library's result for access(2) since then. *a is room. */
static void keep_right(const struct fp_lease_view *view, const char *path, size_t len, int mode, int said,
                       const struct fp_files_right *right, struct fp_answer *a)
{
    if ((said == 0 || said == EACCES) && fp_known_find(view, path, len, true, a) == FP_OK)
        fp_files_rights_keep(view, a, mode, said == 0, right);
}

/* True if the path leads to a directory, through no link, and this process may search that. *a is room. */
static bool is_searched(const struct fp_files_source *from, const struct fp_lease_view *view, const char *path,
                        struct fp_answer *a)
{
    const size_t len = strlen(path);
    struct fp_files_right right;
    int said;

    if (!find_answer(from, view, path, len, false, a) || a->steps[a->n_steps - 1].end != len)
        return false;
    for (unsigned i = 0; i < a->n_steps; i++) {
        if (a->steps[i].status != FP_OK || !S_ISDIR(a->steps[i].self.mode))
            return false;
    }
    said = fp_files_rights_find(view, a, X_OK, 0, &right);
    if (said == -1 && right.answer != 0) {
        said = syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0 ? 0 : errno;
        keep_right(view, path, len, X_OK, said, &right, a);
    }
    return said == 0;
}

/* True if the component at the slash stands for a directory that has to be searched: "..", or "." at the end. */
static bool is_dots(const char *slash)
{
    const size_t n = strspn(slash + 1, ".");
    const char *next = slash + 1 + n;

    return (n == 2 && (*next == '/' || *next == '\0')) || (n == 1 && next[strspn(next, "/")] == '\0');
}

/* True if the path leads where its text says in normal form. After a link, ".." would be another directory. Not inlined: the
 * compiler has each page of a large frame touched, and most paths have no dots. */
__attribute__((noinline)) static bool is_as_written(const struct fp_files_source *from, const struct fp_lease_view *view,
                                                    const char *path, struct fp_answer *a)
{
    char text[FP_MAX_PATH + 1], above[FP_MAX_PATH + 1];

    for (const char *slash = strstr(path, "/."); slash != NULL; slash = strstr(slash + 1, "/.")) {
        const size_t len = (size_t)(slash - path);

        if (len == 0 || !is_dots(slash))
            continue;
        memcpy(text, path, len);
        text[len] = '\0';
        if (!fp_path_normalise("/", text, above) || !is_searched(from, view, above, a))
            return false;
    }
    return true;
}

/* Reads the answer's result for the path. FP_FILES_UNKNOWN: an error that others may not have. */
static int read_answer(const struct fp_answer *a, size_t len, bool follow, bool is_dir,
                       struct fp_meta *m)
{
    const struct fp_step *s = &a->steps[a->n_steps - 1];
    const bool whole = s->end == len;

    if (s->status == FP_OK && (follow || !whole) && fp_step_target(s) == NULL)
        return s->target_status == FP_ABSENT ? ENOENT : FP_FILES_UNKNOWN;
    if (s->status != FP_OK)
        return s->status == FP_ABSENT ? ENOENT : s->status == FP_NOTDIR ? ENOTDIR : FP_FILES_UNKNOWN;
    *m = follow ? *fp_step_target(s) : s->self;
    return !whole || (is_dir && !S_ISDIR(m->mode)) ? ENOTDIR : 0;
}

/* The result that a call wants. */
struct wish {
    bool follow;
    int mode;                        /* of access(2); F_OK: no rights */
    void **content_r;                /* NULL: no content; else *content_r is a remote file's */
    struct fp_files_names **names_r; /* NULL: no names; else *names_r are a directory's */
};

/* The errno of opendir() for a path that is there, or 0. FP_FILES_UNKNOWN also for a link: no event for it
 * reports a change of its target. */
static int read_names(const struct fp_lease_view *view, const struct fp_answer *a, const char *path,
                      size_t len, const struct wish *wish)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];

    if (!S_ISDIR(fp_step_target(last)->mode))
        return ENOTDIR;
    *wish->names_r = S_ISDIR(last->self.mode) ? fp_files_names_of(view, path, len, last) : NULL;
    return *wish->names_r != NULL ? 0 : FP_FILES_UNKNOWN;
}

/* False: the file has no content in memory, or not any more. */
static bool read_content(const struct fp_lease_view *view, const struct fp_answer *a, const struct wish *wish,
                         const struct fp_meta *m)
{
    if (!a->content || !fp_files_is_remote(m->dev))
        return false;
    *wish->content_r = fp_copy_take(m->size);
    if (*wish->content_r == NULL
        || fp_contents_view_read(fp_lease_view_contents(view), a->content_at, *wish->content_r, m->size))
        return *wish->content_r != NULL;
    fp_copy_give_back(*wish->content_r, m->size);
    *wish->content_r = NULL;
    return false;
}

static int find(const struct fp_files_source *from, const char *text, size_t len, const struct wish *wish,
                struct fp_meta *m)
{
    char buf[FP_MAX_PATH + 1];
    struct fp_answer answer;
    struct fp_lease_view *view;
    enum fp_files_result what = FP_FILES_NEW;
    bool is_dir;
    const char *path = normalise(text, len, buf, &len, &is_dir);
    int result = FP_FILES_UNKNOWN;

    /* By "..", a path below the roots may lead out of them. */
    view = path != NULL && (path == text || from->covers(path, len)) ? from->view(path, len) : NULL;
    if (view == NULL) {
        from->count(FP_FILES_NOBODY);
        return FP_FILES_UNKNOWN;
    }
    if (path != text && !is_as_written(from, view, text, &answer)) {
        what = FP_FILES_DOUBT;
    } else if (find_answer(from, view, path, len, wish->content_r != NULL, &answer)) {
        result = read_answer(&answer, len, wish->follow || is_dir, is_dir, m);
        if (result == 0 && wish->content_r != NULL && !read_content(view, &answer, wish, m))
            result = FP_FILES_UNKNOWN;
        /* Rights are those of this process. The daemon has the same, and has opened a file that is readable. */
        if (result == 0 && wish->mode != F_OK)
            result = fp_files_rights_find(view, &answer, wish->mode, answer.readable ? R_OK : 0, &call.right);
        /* The directory in front of ".." may become a link while the kernel is asked. */
        if (path != text && strstr(text, "/.") != NULL)
            call.right.answer = 0;
        if (result == 0 && wish->names_r != NULL)
            result = read_names(view, &answer, path, len, wish);
        what = result != FP_FILES_UNKNOWN ? FP_FILES_ANSWERED : FP_FILES_DOUBT;
    }
    from->count(what);
    fp_lease_view_release(&view);
    return result;
}

static int find_apart(const char *path, const struct wish *wish, struct fp_meta *m)
{
    const struct fp_files_source *from = atomic_load_explicit(&source, memory_order_relaxed);
    const int before = errno;
    size_t len;
    int result;

    /* What this process asks for meanwhile, as it connects to the daemon, is no call of the program's. */
    if (inside)
        return FP_FILES_UNKNOWN;
    call.pace = NULL;
    call.right.answer = 0;
    if (from == NULL || path == NULL)
        return FP_FILES_UNKNOWN;
    len = strlen(path);
    if (len > FP_MAX_PATH || !from->covers(path, len))
        return FP_FILES_UNKNOWN;
    inside = true;
    result = find(from, path, len, wish, m);
    inside = false;
    if (result != FP_FILES_UNKNOWN)
        call.pace = NULL;
    errno = before;
    return result;
}

int fp_files_find(const char *path, bool follow, struct fp_meta *m)
{
    return find_apart(path, &(struct wish){ .follow = follow }, m);
}

int fp_files_access(const char *path, int mode)
{
    struct fp_meta m;

    return find_apart(path, &(struct wish){ .follow = true, .mode = mode }, &m);
}

void fp_files_accessed(const char *path, int mode, int said)
{
    const struct fp_files_source *from = atomic_load_explicit(&source, memory_order_relaxed);
    const int before = errno;
    struct fp_lease_view *view;
    struct fp_answer answer;
    char buf[FP_MAX_PATH + 1];
    bool is_dir;
    size_t len;

    if (inside || call.right.answer == 0 || from == NULL)
        return;
    inside = true;
    path = normalise(path, strlen(path), buf, &len, &is_dir);
    view = path != NULL ? from->view(path, len) : NULL;
    if (view != NULL)
        keep_right(view, path, len, mode, said, &call.right, &answer);
    call.right.answer = 0;
    fp_lease_view_release(&view);
    inside = false;
    errno = before;
}

int fp_files_read(const char *path, struct fp_meta *m, void **content_r)
{
    *content_r = NULL;
    return find_apart(path, &(struct wish){ .follow = true, .content_r = content_r }, m);
}

int fp_files_names(const char *path, struct fp_files_names **names_r)
{
    struct fp_meta m;

    *names_r = NULL;
    return find_apart(path, &(struct wish){ .follow = true, .names_r = names_r }, &m);
}
