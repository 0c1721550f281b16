/* SPDX-License-Identifier: Apache-2.0
 *
 * slowfs: a pass-through FUSE file system with delays as of a network file system, for
 * tests and measurements. It counts calls, and can be made to hang, fail and come back.
 *
 * Threads: readers take calls from the kernel and put them into the queue (queue.h), which
 * answers them when their delay is over; so a thousand waiting callers need no thousand
 * threads. The main thread waits for signals.
 *
 * The readers' loop is our own and not fuse_session_loop_mt(): in libfuse 3.14 (Debian 12)
 * that one leaves only when a signal interrupts its own thread at the right moment (it
 * sleeps in sem_wait, and fuse_session_exit() just sets a flag), it ends its threads by
 * pthread_cancel, and it starts a thread for each call that blocks.
 */
#include "config.h"
#include "behaviour.h"
#include "node.h"
#include "options.h"
#include "ops.h"
#include "parallel.h"
#include "queue.h"
#include "stats.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READERS 4
/* Requests of the kernel's own (read-ahead, forget) that may be under way; the default, 12,
 * would make them wait for each other. Calls of processes are not limited by it. */
#define MAX_BACKGROUND 4096
/* Interrupts a reader's read of the device, to end it. */
#define SIGNAL_WAKE SIGUSR2

static pthread_t main_thread;

static void init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->max_background = MAX_BACKGROUND;
    conn->congestion_threshold = MAX_BACKGROUND;
    /* Lookups in one directory overlap (see also parallel.h). */
    conn->want |= conn->capable & FUSE_CAP_PARALLEL_DIROPS;
    /* Each stat shall ask: a directory's listing must not bring attributes along. */
    conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
    conn->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void *read_calls(void *arg)
{
    struct fuse_session *session = arg;
    struct fuse_buf buffer = { 0 };
    sigset_t wake;

    (void)sigemptyset(&wake);
    (void)sigaddset(&wake, SIGNAL_WAKE);
    (void)pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
    while (!fuse_session_exited(session)) {
        int result = fuse_session_receive_buf(session, &buffer);

        if (result == -EINTR)
            continue;
        if (result <= 0)
            break;
        fuse_session_process_buf(session, &buffer);
    }
    free(buffer.mem);
    /* Another process unmounted it, or the device failed: end as on SIGTERM. */
    if (!fuse_session_exited(session))
        fuse_session_exit(session);
    (void)pthread_kill(main_thread, SIGTERM);
    return NULL;
}

static void append_stats(const struct slowfs_options *options, struct slowfs_queue *queue)
{
    FILE *out;

    if (options->stats == NULL)
        return;
    out = fopen(options->stats, "ae");
    if (out == NULL) {
        (void)fprintf(stderr, "slowfs: cannot append to %s: %s\n", options->stats, strerror(errno));
        return;
    }
    slowfs_stats_print(out);
    (void)fprintf(out, " waiting=%zu mode=%s\n", slowfs_queue_waiting(queue),
                  slowfs_mode_name(slowfs_queue_behaviour(queue).mode));
    (void)fclose(out);
}

static void reread_control(const struct slowfs_options *options, struct slowfs_queue *queue)
{
    struct slowfs_behaviour behaviour;
    char why[256];

    if (options->control == NULL)
        return;
    if (slowfs_control_read(options->control, &options->behaviour, &behaviour, why, sizeof(why)) != 0)
        (void)fprintf(stderr, "slowfs: control file %s: %s; nothing changed\n", options->control, why);
    else
        slowfs_queue_behave(queue, &behaviour);
}

/* Until SIGTERM or SIGINT. One thread handles all signals, lowest number first: counters requested
 * after a SIGHUP show that it has taken effect. */
static void serve_signals(const struct slowfs_options *options, struct slowfs_queue *queue,
                          const sigset_t *signals)
{
    for (;;) {
        int number;

        if (sigwait(signals, &number) != 0)
            continue;
        if (number == SIGHUP)
            reread_control(options, queue);
        else if (number == SIGUSR1)
            append_stats(options, queue);
        else if (number == SIGTERM || number == SIGINT)
            return;
    }
}

static void join_reader(pthread_t reader)
{
    const struct timespec pause = { .tv_nsec = 5000000 };

    /* Again and again: one signal could come just before the read that it should end. */
    while (pthread_tryjoin_np(reader, NULL) == EBUSY) {
        (void)pthread_kill(reader, SIGNAL_WAKE);
        (void)nanosleep(&pause, NULL);
    }
}

static int serve(struct fuse_session *session, const struct slowfs_options *options,
                 struct slowfs_queue *queue, const sigset_t *signals)
{
    pthread_t readers[READERS];
    int started = 0;
    int error = 0;

    while (error == 0 && started < READERS) {
        error = pthread_create(&readers[started], NULL, read_calls, session);
        if (error == 0)
            started++;
    }
    if (error == 0)
        serve_signals(options, queue, signals);
    else
        (void)fprintf(stderr, "slowfs: cannot start threads: %s\n", strerror(error));
    fuse_session_exit(session);
    for (int i = 0; i < started; i++)
        join_reader(readers[i]);
    return error == 0 ? 0 : 1;
}

static void ignore(int number)
{
    (void)number;
}

/* Blocks the signals that the main thread waits for, in all threads to come. */
static void prepare_signals(sigset_t *signals_r)
{
    struct sigaction action = { .sa_handler = ignore };
    sigset_t blocked;

    (void)sigaction(SIGNAL_WAKE, &action, NULL);
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigemptyset(signals_r);
    (void)sigaddset(signals_r, SIGHUP);
    (void)sigaddset(signals_r, SIGINT);
    (void)sigaddset(signals_r, SIGTERM);
    (void)sigaddset(signals_r, SIGUSR1);
    blocked = *signals_r;
    (void)sigaddset(&blocked, SIGNAL_WAKE);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

static struct fuse_session *new_session(const struct slowfs_options *options, struct slowfs_context *context)
{
    char program[] = "slowfs";
    char flag[] = "-o";
    char values[] = "allow_other,default_permissions,fsname=slowfs,subtype=slowfs";
    char *argv[] = { program, flag, values, NULL };
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);
    struct fuse_lowlevel_ops ops;
    struct fuse_session *session;

    slowfs_ops_fill(&ops);
    ops.init = init;
    if (options->flush)
        ops.flush = slowfs_op_flush;
    session = fuse_session_new(&args, &ops, sizeof(ops), context);
    fuse_opt_free_args(&args);
    return session;
}

/* With the mount in place: from going to the background to the end of the queue. */
static int run_mounted(struct fuse_session *session, const struct slowfs_options *options,
                       struct slowfs_context *context, const sigset_t *signals)
{
    int status;

    if (slowfs_parallel_lookups(session) != 0)
        return 1;
    /* Before any thread is started: they would not survive the fork. */
    if (fuse_daemonize(options->foreground ? 1 : 0) != 0)
        return 1;
    main_thread = pthread_self();
    context->queue = slowfs_queue_create(&options->behaviour);
    if (context->queue == NULL) {
        (void)fprintf(stderr, "slowfs: cannot start threads: %s\n", strerror(errno));
        return 1;
    }
    if (options->control != NULL && access(options->control, F_OK) == 0)
        reread_control(options, context->queue);
    status = serve(session, options, context->queue, signals);
    slowfs_queue_destroy(&context->queue);
    return status;
}

static int run(const struct slowfs_options *options)
{
    struct slowfs_context context = {
        .attr_timeout = options->attr_timeout,
        .entry_timeout = options->entry_timeout,
        .absent_timeout = options->absent_timeout,
        .clock_lag = options->clock_lag,
        .whole_seconds = options->whole_seconds,
        .keep_cache = options->keep_cache,
    };
    struct fuse_session *session;
    sigset_t signals;
    int status = 1;
    int error = slowfs_nodes_init(options->source);

    if (error != 0) {
        (void)fprintf(stderr, "slowfs: source %s: %s\n", options->source, strerror(error));
        return 1;
    }
    session = new_session(options, &context);
    if (session == NULL)
        return 1;
    prepare_signals(&signals);
    if (fuse_session_mount(session, options->mountpoint) != 0) {
        (void)fprintf(stderr,
                      "slowfs: cannot mount on %s: is mounting allowed here (containers need "
                      "--cap-add SYS_ADMIN --device /dev/fuse)?\n",
                      options->mountpoint);
    } else {
        status = run_mounted(session, options, &context, &signals);
        fuse_session_unmount(session);
    }
    fuse_session_destroy(session);
    return status;
}

int main(int argc, char **argv)
{
    struct slowfs_options options;
    int status = slowfs_options_parse(argc, argv, &options);

    if (status < 0) {
        /* The kernel has applied the caller's umask already. */
        (void)umask(0);
        raise_descriptor_limit();
        status = run(&options);
    }
    slowfs_options_free(&options);
    return status;
}
