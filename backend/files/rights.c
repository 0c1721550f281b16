/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "files/devices.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/packet.h"

#define OBJECTS 256u   /* whose rights a process keeps, about */
#define KEPT_MS 60000u /* a server may decide by what shows in no metadata */

struct object {
    uint64_t view; /* the number of the lease table of its slot; 0: none */
    uint32_t slot, generation;
    uint64_t until_ms;
    uint8_t granted; /* R_OK and the like */
    uint8_t refused; /* 1 << mode for each mode */
};

static struct {
    pthread_mutex_t mutex; /* a thread that finds it held does without */
    struct object objects[OBJECTS];
    unsigned forgotten; /* how often they were */
    int mounts;         /* /proc/self/mountinfo, while ino says so: a program may close all descriptors */
    ino_t ino;
    pid_t pid; /* a forked process would share the kernel's notices with this one */
} kept = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* ---- mounts, which may become read-only or noexec ---- */

/* True if the descriptor is the one that was opened, by this process or by one that it was forked from. */
static bool has_descriptor(void)
{
    struct stat st;

    return kept.pid != 0 && fstatat(kept.mounts, "", &st, AT_EMPTY_PATH) == 0 && st.st_ino == kept.ino;
}

static void forget(void)
{
    memset(kept.objects, 0, sizeof(kept.objects));
    kept.forgotten++;
}

static void open_mounts(void)
{
    struct stat st;

    kept.mounts = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (kept.mounts == -1 || fstatat(kept.mounts, "", &st, AT_EMPTY_PATH) == -1) {
        fp_close(&kept.mounts);
        kept.pid = 0;
        return;
    }
    kept.ino = st.st_ino;
    kept.pid = getpid();
}

/* Forgets all rights if any mount has changed, or if that cannot be known. */
static void look_at_mounts(void)
{
    struct pollfd mounts = { .fd = kept.mounts, .events = POLLPRI };
    const bool has = has_descriptor();

    if (has && kept.pid == getpid()) {
        if (poll(&mounts, 1, 0) != 0)
            forget();
        return;
    }
    if (has)
        fp_close(&kept.mounts);
    forget();
    open_mounts();
}

/* ---- rights ---- */

/* Attributes (chattr) and a mount's options also decide about writing, and about executing a file. The kernel of this
 * machine has the first of them on local file systems, where it is as quick itself. */
static bool may_be_kept(const struct fp_step *step, int mode)
{
    const bool own = (mode & W_OK) == 0 && ((mode & X_OK) == 0 || S_ISDIR(step->self.mode));

    return (mode & ~(R_OK | W_OK | X_OK)) == 0 && !S_ISLNK(step->self.mode) && (own || fp_files_is_remote(step->self.dev));
}

static const struct fp_step *last_of(const struct fp_answer *a)
{
    return &a->steps[a->n_steps - 1];
}

/* Of all steps: another one on the way may have led elsewhere for a moment. Never 0. */
static uint64_t number_of(const struct fp_lease_view *view, const struct fp_answer *a)
{
    uint64_t number = fp_lease_view_number(view);

    for (unsigned i = 0; i < a->n_steps; i++)
        number = (number ^ ((uint64_t)a->steps[i].slot << 32 | a->steps[i].generation)) * 0x100000001b3u;
    return number | 1;
}

static bool is_of(const struct object *o, const struct fp_lease_view *view, const struct fp_step *step)
{
    return o->view == fp_lease_view_number(view) && o->slot == step->slot && o->generation == step->generation
           && fp_now_ms() < o->until_ms;
}

static int result_of(const struct object *o, int mode, int granted)
{
    if ((mode & ~(o->granted | granted)) == 0)
        return 0;
    return (o->refused & 1 << mode) != 0 ? EACCES : -1;
}

/* The object's place, with the mutex held; NULL: it is not to be had. */
static struct object *take_place(const struct fp_step *step, int mode)
{
    if (step->slot == FP_NO_SLOT || !may_be_kept(step, mode) || pthread_mutex_trylock(&kept.mutex) != 0)
        return NULL;
    look_at_mounts();
    return &kept.objects[step->slot % OBJECTS];
}

int fp_files_rights_find(const struct fp_lease_view *view, const struct fp_answer *a, int mode, int granted,
                         struct fp_files_right *open_r)
{
    struct object *o;
    int result = -1;

    open_r->answer = 0;
    if ((mode & ~granted) == 0)
        return 0;
    o = take_place(last_of(a), mode);
    if (o == NULL)
        return -1;
    if (is_of(o, view, last_of(a)))
        result = result_of(o, mode, granted);
    if (result == -1)
        *open_r = (struct fp_files_right){ .answer = number_of(view, a), .forgotten = kept.forgotten };
    pthread_mutex_unlock(&kept.mutex);
    return result;
}

static void put(struct object *o, const struct fp_lease_view *view, const struct fp_step *step, int mode, bool granted)
{
    if (!is_of(o, view, step))
        *o = (struct object){ .view = fp_lease_view_number(view),
                              .slot = step->slot,
                              .generation = step->generation,
                              .until_ms = fp_now_ms() + KEPT_MS };
    if (granted)
        o->granted |= (uint8_t)mode;
    else
        o->refused |= (uint8_t)(1 << mode);
}

void fp_files_rights_keep(const struct fp_lease_view *view, const struct fp_answer *a, int mode, bool granted,
                          const struct fp_files_right *open)
{
    struct object *o = open->answer == number_of(view, a) ? take_place(last_of(a), mode) : NULL;

    if (o == NULL)
        return;
    if (kept.forgotten == open->forgotten)
        put(o, view, last_of(a), mode, granted);
    pthread_mutex_unlock(&kept.mutex);
}
