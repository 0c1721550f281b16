/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/own.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "files/answers.h"
#include "shared/client.h"
#include "shared/lease_table.h"
#include "wire/packet.h"

#define MOST_ROOTS 16
#define PATIENCE_MS 100u   /* the longest that connecting takes; a daemon that hangs costs it */
#define ANSWER_MS   1000u  /* the longest that a question takes */
#define AGAIN_MS    1000u  /* after a failure, until the daemon is tried once more */
#define REFUSED_MS  60000u /* the same where it refuses this process */

static struct {
    char *text, *socket; /* roots point into text */
    const char *roots[MOST_ROOTS + 1];
    bool elsewhere;
} settings;

static struct {
    pthread_mutex_t mutex;              /* of connecting */
    _Atomic(struct fp_client *) client; /* NULL: none yet, or in this process no more */
    atomic_uint_fast64_t retry_at_ms;   /* nobody is asked before */
    atomic_int sentinel;                /* of the counts; it goes when a program closes all descriptors */
    _Atomic ino_t sentinel_ino;         /* 0 if there is none */
    struct fp_files_counts unseen;
    _Atomic(struct fp_files_counts *) counts; /* mapped for others to see, or unseen */
} state = { .mutex = PTHREAD_MUTEX_INITIALIZER, .counts = &state.unseen };

static __thread bool connecting; /* this thread holds the mutex */

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
    if (!connecting)
        pthread_mutex_lock(&state.mutex);
}

static void after_fork(void)
{
    if (!connecting)
        pthread_mutex_unlock(&state.mutex);
}

/* The memory that has them until now stays mapped: another thread may be counting there. */
static void move_counts(struct fp_files_counts *to)
{
    const struct fp_files_counts *from = atomic_load(&state.counts);

    for (unsigned i = 0; i < FP_FILES_RESULTS; i++)
        atomic_store(&to->of[i], atomic_load(&from->of[i]));
    atomic_store(&state.counts, to);
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
    move_counts(&state.unseen);
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

/* ---- the daemon ---- */

static void pause_asking(uint64_t now_ms, uint64_t for_ms)
{
    atomic_store(&state.retry_at_ms, now_ms + for_ms);
}

/* A clock of four milliseconds, which costs a process that is refused less than its own call varies. */
static bool is_paused(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000
           < atomic_load_explicit(&state.retry_at_ms, memory_order_relaxed);
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

/* Nobody can cut the memory short. */
static bool set_sentinel(void)
{
    const int fd = memfd_create(FP_FILES_COUNTS, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct fp_files_counts *counts = MAP_FAILED;
    struct stat st;

    if (fd == -1)
        return false;
    if (ftruncate(fd, sizeof(*counts)) == 0
        && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 && fstat(fd, &st) == 0)
        counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED) {
        close(fd);
        return false;
    }
    move_counts(counts);
    atomic_store(&state.sentinel, fd);
    atomic_store(&state.sentinel_ino, st.st_ino);
    return true;
}

static struct fp_client *create_client(void)
{
    const struct fp_client_settings wanted = { .path = settings.socket,
                                               .timeout_ms = ANSWER_MS,
                                               .patience_ms = PATIENCE_MS,
                                               .max_idle = 1,
                                               .maps_contents = true,
                                               .compares = true,
                                               .compares_files = !settings.elsewhere };
    struct fp_client *client = may_ask() && set_sentinel() ? fp_client_create(&wanted) : NULL;

    if (client != NULL)
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
    connecting = true;
    client = atomic_load(&state.client);
    if (client == NULL)
        client = create_client();
    st = client != NULL ? fp_client_connect(client) : FP_DENIED;
    if (st != FP_OK)
        pause_asking(now_ms, pause_after(client, st));
    connecting = false;
    pthread_mutex_unlock(&state.mutex);
    return st == FP_OK ? client : NULL;
}

/* ---- the source ---- */

static bool covers(const char *path, size_t len)
{
    return !is_paused() && fp_path_is_below_any(path, len, settings.roots);
}

static struct fp_lease_view *take_view(const char *path, size_t len)
{
    const uint64_t now_ms = fp_now_ms();
    struct fp_client *client = atomic_load(&state.client);
    struct fp_lease_view *view = NULL;

    (void)path;
    (void)len;
    if (client == NULL)
        client = connect_anew(now_ms);
    if (client != NULL && (fp_client_view(client, &view) != FP_OK || view == NULL))
        pause_asking(now_ms, AGAIN_MS);
    return view;
}

static void hint(const struct fp_lease_view *view, const char *path, size_t len)
{
    struct fp_client *client = atomic_load(&state.client);
    const uint64_t now_ms = fp_now_ms();

    if (!has_its_descriptors())
        abandon();
    else if (client != NULL && !fp_client_hint(client, path, len)
             && !fp_lease_view_is_alive(view, now_ms, AGAIN_MS))
        connect_anew(now_ms);
}

/* A daemon that hangs is not waited for. */
static bool ask(const struct fp_lease_view *view, const char *path, size_t len, struct fp_answer *a)
{
    struct fp_client *client = atomic_load(&state.client);
    bool answered;

    if (!has_its_descriptors())
        abandon();
    else if (client != NULL && fp_lease_view_is_alive(view, fp_now_ms(), PATIENCE_MS)) {
        answered = fp_client_lookup(client, path, len, a, NULL) == FP_OK;
        fp_close(&a->fd);
        return answered;
    }
    return false;
}

static void count(enum fp_files_result result)
{
    atomic_fetch_add_explicit(&atomic_load_explicit(&state.counts, memory_order_relaxed)->of[result], 1,
                              memory_order_relaxed);
}

const struct fp_files_counts *fp_files_own_counts(void)
{
    return atomic_load(&state.counts);
}

bool fp_files_begin_own(const char *roots, const char *socket, bool elsewhere)
{
    static const struct fp_files_source source = { covers, take_view, hint, ask, count };

    settings.elsewhere = elsewhere;
    settings.text = strdup(roots);
    settings.socket = strdup(socket);
    if (settings.text == NULL || settings.socket == NULL || !set_roots()
        || pthread_atfork(before_fork, after_fork, in_child) != 0)
        return false;
    fp_files_begin(&source);
    return true;
}
