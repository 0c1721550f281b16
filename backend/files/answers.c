/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/answers.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "shared/client.h"
#include "shared/contents.h"
#include "shared/known.h"
#include "shared/lease_table.h"
#include "wire/answer.h"

#define MOST_ROOTS 16
#define PATIENCE_MS 100u   /* the longest that connecting takes; a daemon that hangs costs it */
#define AGAIN_MS    1000u  /* after a failure, until the daemon is tried once more */
#define REFUSED_MS  60000u /* the same where it refuses this process */
#define HINTS       1024u  /* paths whose hints are remembered, about, */
#define HINT_MS     1000u  /* for so long: what the daemon cannot answer costs no message each time */

static struct {
    char *text, *socket; /* roots point into text */
    const char *roots[MOST_ROOTS + 1];
    bool elsewhere;
} settings;

static struct {
    pthread_mutex_t mutex;              /* of connecting */
    _Atomic(struct fp_client *) client; /* NULL: none yet, or in this process no more */
    atomic_uint_fast64_t retry_at_ms;   /* UINT64_MAX: never */
    atomic_ulong answered;
    _Atomic uint64_t hinted[HINTS];     /* upper half: of the path's hash; lower half: when, in ms */
    atomic_int sentinel;                /* a descriptor that goes when a program closes all others, too */
    _Atomic ino_t sentinel_ino;         /* 0: there is none */
} state = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static __thread bool inside; /* the library's own calls go to the C library */

/* ---- this process ---- */

/* A process whose rights can change has answers that are right for now alone. */
static bool may_ask(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    uid_t real, effective, saved;
    gid_t real_gid, effective_gid, saved_gid;

    return getresuid(&real, &effective, &saved) == 0 && real == effective && saved == effective && real != 0
           && getresgid(&real_gid, &effective_gid, &saved_gid) == 0 && real_gid == effective_gid
           && saved_gid == effective_gid && syscall(SYS_capget, &head, caps) == 0
           && (caps[0].permitted | caps[1].permitted) == 0;
}

/* A handler that forks may have interrupted this thread while it connects. */
static void before_fork(void)
{
    if (!inside)
        pthread_mutex_lock(&state.mutex);
}

static void after_fork(void)
{
    if (!inside)
        pthread_mutex_unlock(&state.mutex);
}

/* Nothing of the client is touched: its connection is the parent's, or its descriptors may be others'
 * by now. */
static void abandon(void)
{
    atomic_store(&state.client, NULL);
    atomic_store(&state.sentinel_ino, 0);
}

static void in_child(void)
{
    abandon();
    if (atomic_load(&state.retry_at_ms) != UINT64_MAX)
        atomic_store(&state.retry_at_ms, 0);
    after_fork();
}

/* A program may close all descriptors, ours among them, and open others that get their numbers. */
static bool has_its_descriptors(void)
{
    struct stat st;

    return fstat(atomic_load(&state.sentinel), &st) == 0 && st.st_ino == atomic_load(&state.sentinel_ino);
}

static bool set_roots(void)
{
    size_t n = 0;
    char *rest;

    for (char *root = strtok_r(settings.text, ":", &rest); root != NULL; root = strtok_r(NULL, ":", &rest)) {
        const size_t len = fp_path_len(root);

        root[len] = '\0';
        if (n < MOST_ROOTS && fp_path_is_normal(root, len))
            settings.roots[n++] = root;
    }
    return n > 0;
}

bool fp_files_begin(const char *roots, const char *socket, bool elsewhere)
{
    settings.elsewhere = elsewhere;
    settings.text = strdup(roots);
    settings.socket = strdup(socket);
    return settings.text != NULL && settings.socket != NULL && set_roots()
           && pthread_atfork(before_fork, after_fork, in_child) == 0;
}

void fp_files_end(void)
{
    atomic_store(&state.retry_at_ms, UINT64_MAX);
}

/* ---- the daemon ---- */

static void pause_asking(uint64_t now_ms, uint64_t for_ms)
{
    uint64_t until = atomic_load(&state.retry_at_ms);

    while (until != UINT64_MAX && !atomic_compare_exchange_weak(&state.retry_at_ms, &until, now_ms + for_ms))
        ;
}

/* client: NULL if there could be none, as this process is another user for now, or lacks descriptors. */
static uint64_t pause_after(struct fp_client *client, fp_status st)
{
    if (client == NULL)
        return AGAIN_MS;
    switch (st) {
    case FP_FOREIGN:
    case FP_ELSEWHERE:
    case FP_VERSION:
    case FP_PROTOCOL: return REFUSED_MS;
    case FP_CLOSED: break;
    default: return AGAIN_MS;
    }
    switch (fp_client_last(client).no_connection) {
    case FP_NO_CONNECTION_DENIED:
    case FP_NO_CONNECTION_REFUSED: return REFUSED_MS;
    default: return AGAIN_MS;
    }
}

static bool set_sentinel(void)
{
    const int fd = memfd_create("flashpache", MFD_CLOEXEC);
    struct stat st;

    if (fd == -1 || fstat(fd, &st) == -1)
        return false;
    atomic_store(&state.sentinel, fd);
    atomic_store(&state.sentinel_ino, st.st_ino);
    return true;
}

static struct fp_client *create_client(void)
{
    struct fp_client *client =
        may_ask() && set_sentinel() ? fp_client_create(settings.socket, PATIENCE_MS, 1) : NULL;

    if (client == NULL)
        return NULL;
    fp_client_map_tables(client);
    fp_client_compare_sights(client, !settings.elsewhere);
    atomic_store(&state.client, client);
    return client;
}

/* The client, with a connection that was there a moment ago; NULL: none could be made. */
static struct fp_client *connect_anew(uint64_t now_ms)
{
    struct fp_client *client;
    fp_status st;

    if (pthread_mutex_trylock(&state.mutex) != 0)
        return NULL;
    client = atomic_load(&state.client);
    if (client == NULL)
        client = create_client();
    st = client != NULL ? fp_client_connect(client) : FP_DENIED;
    if (st != FP_OK)
        pause_asking(now_ms, pause_after(client, st));
    pthread_mutex_unlock(&state.mutex);
    return st == FP_OK ? client : NULL;
}

/* With a reference for the caller; NULL: there are no tables for now. */
static struct fp_lease_view *take_view(struct fp_client **client_r)
{
    const uint64_t now_ms = fp_now_ms();
    struct fp_lease_view *view = NULL;

    if (now_ms < atomic_load_explicit(&state.retry_at_ms, memory_order_relaxed))
        return NULL;
    *client_r = atomic_load(&state.client);
    if (*client_r == NULL)
        *client_r = connect_anew(now_ms);
    if (*client_r != NULL && (fp_client_view(*client_r, &view) != FP_OK || view == NULL))
        pause_asking(now_ms, AGAIN_MS);
    return view;
}

/* Tells the daemon of a path that it may want to know, but not of the same one all the time. */
static void hint(struct fp_client *client, const struct fp_lease_view *view, const char *path, size_t len)
{
    const uint64_t now_ms = fp_now_ms();
    uint64_t hash = 0xcbf29ce484222325u, before;
    _Atomic uint64_t *place;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)path[i]) * 0x100000001b3u;
    place = &state.hinted[hash % HINTS];
    before = atomic_load_explicit(place, memory_order_relaxed);
    if (before >> 32 == hash >> 32 && (uint32_t)now_ms - (uint32_t)before < HINT_MS)
        return;
    atomic_store_explicit(place, (hash >> 32 << 32) | (uint32_t)now_ms, memory_order_relaxed);
    if (!has_its_descriptors())
        abandon();
    else if (!fp_client_hint(client, path, len) && !fp_lease_view_is_alive(view, now_ms, AGAIN_MS))
        connect_anew(now_ms);
}

/* ---- paths ---- */

/*
 * The path in normal form: itself, or in buf, of FP_MAX_PATH + 1 bytes. NULL: it is below no root, or
 * has a ".." component, which is another directory than the text says where a link stands in front of
 * it. *is_dir_r: it means what a link at its end leads to, a directory.
 */
static const char *normalise(const char *path, char *buf, size_t *len_r, bool *is_dir_r)
{
    const size_t len = strlen(path);

    *len_r = len;
    *is_dir_r = false;
    if (len > FP_MAX_PATH || !fp_path_is_below_any(path, len, settings.roots))
        return NULL;
    if (fp_path_is_normal(path, len))
        return path;
    if (strstr(path, "/..") != NULL || !fp_path_normalise("/", path, buf))
        return NULL;
    *is_dir_r = path[len - 1] == '/' || (path[len - 1] == '.' && path[len - 2] == '/');
    *len_r = strlen(buf);
    return buf;
}

/* What the answer says of the path; FP_FILES_UNKNOWN for all errors that others may not have. */
static int read_answer(const struct fp_answer *a, size_t len, bool follow, bool is_dir,
                       struct fp_files_found *f)
{
    const struct fp_step *s = &a->steps[a->n_steps - 1];
    const bool whole = s->end == len;

    if (s->status == FP_OK && (follow || !whole) && fp_step_target(s) == NULL)
        return s->target_status == FP_ABSENT ? ENOENT : FP_FILES_UNKNOWN;
    if (s->status != FP_OK)
        return s->status == FP_ABSENT ? ENOENT : s->status == FP_NOTDIR ? ENOTDIR : FP_FILES_UNKNOWN;
    f->meta = follow ? *fp_step_target(s) : s->self;
    f->readable = follow && a->readable;
    return !whole || (is_dir && !S_ISDIR(f->meta.mode)) ? ENOTDIR : 0;
}

/* What a call asks for. */
struct wish {
    bool follow;
    bool (*is_wanted)(uint64_t dev); /* NULL: no content; else *content_r is one of a device that is wanted */
    void **content_r;
};

/* False: the file has no content in memory, or not any more. */
static bool read_content(const struct fp_lease_view *view, const struct fp_answer *a, const struct wish *wish,
                         const struct fp_meta *m)
{
    if (!a->content || !wish->is_wanted(m->dev))
        return false;
    *wish->content_r = fp_copy_take(m->size);
    if (*wish->content_r == NULL
        || fp_contents_view_read(fp_lease_view_contents(view), a->content_at, *wish->content_r, m->size))
        return *wish->content_r != NULL;
    fp_copy_give_back(*wish->content_r, m->size);
    *wish->content_r = NULL;
    return false;
}

static int find(const char *path, const struct wish *wish, struct fp_files_found *f)
{
    char buf[FP_MAX_PATH + 1];
    struct fp_answer answer;
    struct fp_client *client;
    struct fp_lease_view *view;
    bool is_dir;
    int result = FP_FILES_UNKNOWN;
    size_t len;

    path = normalise(path, buf, &len, &is_dir);
    view = path != NULL ? take_view(&client) : NULL;
    if (view == NULL)
        return FP_FILES_UNKNOWN;
    if (fp_known_find(view, path, len, true, &answer) == FP_OK) {
        result = read_answer(&answer, len, wish->follow || is_dir, is_dir, f);
        if (result == 0 && wish->is_wanted != NULL && !read_content(view, &answer, wish, &f->meta))
            result = FP_FILES_UNKNOWN;
        if (result != FP_FILES_UNKNOWN)
            atomic_fetch_add_explicit(&state.answered, 1, memory_order_relaxed);
    } else {
        hint(client, view, path, len);
    }
    fp_lease_view_release(&view);
    return result;
}

static int find_apart(const char *path, const struct wish *wish, struct fp_files_found *f)
{
    const int before = errno;
    int result;

    if (inside || path == NULL || settings.roots[0] == NULL)
        return FP_FILES_UNKNOWN;
    inside = true;
    result = find(path, wish, f);
    inside = false;
    errno = before;
    return result;
}

int fp_files_find(const char *path, bool follow, struct fp_files_found *f)
{
    return find_apart(path, &(struct wish){ .follow = follow }, f);
}

int fp_files_read(const char *path, bool (*is_wanted)(uint64_t dev), struct fp_files_found *f,
                  void **content_r)
{
    *content_r = NULL;
    return find_apart(path, &(struct wish){ true, is_wanted, content_r }, f);
}

unsigned long fp_files_answered(void)
{
    return atomic_load_explicit(&state.answered, memory_order_relaxed);
}
