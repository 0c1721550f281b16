/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "privsep/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "privsep/child.h"
#include "privsep/sandbox.h"
#include "wire/packet.h"

#define STUCK_LEAST  64   /* descriptors of a mount that wait before it counts as stuck, */
#define STUCK_MS     1000 /* with none closed for so long */
#define GROWN_MOST   65536u
#define BITS         (sizeof(unsigned long) * CHAR_BIT)
#define PARENT_ENDED SIGUSR2
#define NAP_S        10 /* a closer looks for its parent's end as often, should the signal come too early */

/* The work of one closer; shared with it.  A descriptor has a bit while it waits. */
struct lane {
    _Atomic uint32_t waiting; /* with the one that is being closed; a futex */
    _Atomic uint32_t closed;  /* in all */
    atomic_ulong *bits;       /* of all descriptors below the limit */
};

/* The daemon's knowledge of a lane. */
struct side {
    uint32_t mount;    /* whose descriptors wait there */
    uint32_t closed;   /* at the last look */
    uint64_t since_ms; /* nothing was closed since then */
};

static struct lane *lanes;      /* FP_CLOSERS of them; NULL: not started */
static atomic_flag *hanging_up; /* shared with the closers: one of them does, or did, so */
static struct side sides[FP_CLOSERS];
static fp_closer_is_local *is_local; /* NULL: every mount is */
static void *is_local_ctx;
static size_t limit; /* a multiple of BITS */

/* ---- a closer ---- */

static void wait_for_work(struct lane *lane)
{
    const struct timespec nap = { .tv_sec = NAP_S };

    syscall(SYS_futex, &lane->waiting, FUTEX_WAIT, 0, &nap, NULL, 0);
}

static void close_waiting(struct lane *lane)
{
    for (size_t i = 0; i < limit / BITS && atomic_load(&lane->waiting) > 0; i++) {
        unsigned long todo = atomic_load(&lane->bits[i]);

        for (; todo != 0; todo &= todo - 1) {
            const unsigned bit = (unsigned)__builtin_ctzl(todo);

            /* The bit goes before the close: while that waits, another file may get the number. */
            atomic_fetch_and(&lane->bits[i], ~(1ul << bit));
            close((int)(i * BITS + bit));
            atomic_fetch_add(&lane->closed, 1);
            atomic_fetch_sub(&lane->waiting, 1);
        }
    }
}

/*
 * The daemon is dead, but another closer may hang and keep the table of descriptors.  The processes at the
 * other ends of sockets and pipes have to see the end, and the next daemon needs the lock.  Files are open
 * for reading, and closing those may hang.  The table is the same for all closers, and large.
 */
static void hang_up_all(void)
{
    if (atomic_flag_test_and_set(hanging_up))
        return;
    for (int fd = 0; fd < (int)limit; fd++) {
        const int flags = fcntl(fd, F_GETFL);

        if (flags != -1 && (flags & O_ACCMODE) != O_RDONLY)
            close(fd);
    }
}

static void on_parent_ended(int signum)
{
    (void)signum; /* Ends the nap. */
}

static void prepare(void)
{
    const struct sigaction end = { .sa_handler = on_parent_ended };

    prctl(PR_SET_NAME, "fp-closer");
    sigaction(PARENT_ENDED, &end, NULL);
    fp_child_ignore_signals();
    prctl(PR_SET_PDEATHSIG, PARENT_ENDED);
}

static void __attribute__((noreturn))
be_closer(struct lane *lane, pid_t parent, const struct fp_sandbox *sandbox)
{
    prepare();
    if (sandbox != NULL && fp_sandbox_enter(sandbox) == -1)
        _exit(1);
    while (getppid() == parent) {
        close_waiting(lane);
        wait_for_work(lane);
    }
    hang_up_all();
    _exit(0);
}

/* ---- the daemon ---- */

/* The lane of that mount if any of its descriptors wait, else an idle one. Else a local file system's wait for
 * other local ones, as no others have the first lane. The rest have the lane with the fewest. */
static unsigned choose(uint32_t mount)
{
    const bool local = is_local == NULL || is_local(is_local_ctx, mount);
    const unsigned first = local ? 0 : 1;
    uint32_t fewest = local ? 1 : UINT32_MAX;
    unsigned best = first;

    for (unsigned i = first; i < FP_CLOSERS; i++) {
        const uint32_t waiting = atomic_load(&lanes[i].waiting);

        if (waiting > 0 && sides[i].mount == mount)
            return i;
        if (waiting < fewest) {
            fewest = waiting;
            best = i;
        }
    }
    return best;
}

static void leave(int fd, uint32_t mount)
{
    const int saved = errno;
    const unsigned i = choose(mount);
    struct lane *lane = &lanes[i];

    if ((size_t)fd >= limit) {
        fp_close(&fd);
        return;
    }
    /* It is counted first, so that the count never says that nothing waits while there is something. */
    if (atomic_fetch_add(&lane->waiting, 1) == 0)
        sides[i] = (struct side){ mount, atomic_load(&lane->closed), fp_now_ms() };
    atomic_fetch_or(&lane->bits[(size_t)fd / BITS], 1ul << ((size_t)fd % BITS));
    syscall(SYS_futex, &lane->waiting, FUTEX_WAKE, 1, NULL, NULL, 0);
    errno = saved;
}

/*
 * The kernel enlarges a table that processes share only after it has waited for all processors.  So the
 * table gets room before it is shared.
 */
static void grow_table(size_t n)
{
    int fd = n > STDERR_FILENO + 1 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)n - 1) : -1;

    fp_close(&fd);
}

static struct lane *create_lanes(void)
{
    const size_t bytes = limit / CHAR_BIT;
    char *memory = fp_memory_share(FP_CLOSERS * (sizeof(struct lane) + bytes) + sizeof(*hanging_up));
    struct lane *created = (struct lane *)memory;

    if (memory == NULL)
        return NULL;
    memory += FP_CLOSERS * sizeof(struct lane);
    for (unsigned i = 0; i < FP_CLOSERS; i++)
        created[i].bits = (atomic_ulong *)(memory + i * bytes);
    hanging_up = (atomic_flag *)(memory + FP_CLOSERS * bytes);
    return created;
}

/* Does fork(2) with the table of descriptors shared, which no function of the C library does. */
static pid_t fork_sharing(void)
{
#ifdef __s390__
    return (pid_t)syscall(SYS_clone, 0L, (long)(CLONE_FILES | SIGCHLD), 0L, 0L, 0L);
#else
    return (pid_t)syscall(SYS_clone, (long)(CLONE_FILES | SIGCHLD), 0L, 0L, 0L, 0L);
#endif
}

static pid_t start_one(struct lane *lane, const struct fp_sandbox *sandbox)
{
    const pid_t parent = getpid(), pid = fork_sharing();

    if (pid == 0)
        be_closer(lane, parent, sandbox);
    return pid;
}

int fp_closer_start(size_t n, const struct fp_sandbox *sandbox, fp_closer_is_local *tell, void *ctx,
                    pid_t pids_r[FP_CLOSERS])
{
    is_local = tell;
    is_local_ctx = ctx;
    limit = (n + BITS - 1) / BITS * BITS;
    grow_table(n < GROWN_MOST ? n : GROWN_MOST);
    /* A closer would take a refused getppid() for its parent's end. */
    lanes = getppid() != -1 ? create_lanes() : NULL;
    for (unsigned i = 0; lanes != NULL && i < FP_CLOSERS; i++) {
        pids_r[i] = start_one(&lanes[i], sandbox);
        if (pids_r[i] == -1) {
            const int why = errno;

            while (i-- > 0)
                kill(pids_r[i], SIGKILL);
            lanes = NULL;
            errno = why;
        }
    }
    if (lanes == NULL)
        return -1;
    memset(sides, 0, sizeof(sides));
    fp_set_file_closer(leave);
    return 0;
}

size_t fp_closer_waiting(void)
{
    size_t n = 0;

    for (unsigned i = 0; lanes != NULL && i < FP_CLOSERS; i++)
        n += atomic_load(&lanes[i].waiting);
    return n;
}

bool fp_closer_is_stuck(uint32_t mount, uint64_t now_ms)
{
    const unsigned own = lanes != NULL ? choose(mount) : 0;

    for (unsigned i = 0; lanes != NULL && i < FP_CLOSERS; i++) {
        const uint32_t closed = atomic_load(&lanes[i].closed);
        const uint32_t waiting = atomic_load(&lanes[i].waiting);

        if (waiting < STUCK_LEAST || closed != sides[i].closed) {
            sides[i].closed = closed;
            sides[i].since_ms = now_ms;
        } else if (i == own && now_ms - sides[i].since_ms >= STUCK_MS) {
            return true;
        }
    }
    return false;
}

void fp_closer_stop(void)
{
    fp_set_file_closer(NULL);
    lanes = NULL;
}
