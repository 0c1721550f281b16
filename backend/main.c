/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpached: the order in which things start, and how they are wired.
 */
#include "config.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "admin/control.h"
#include "admin/latency.h"
#include "admin/stats.h"
#include "base/clock.h"
#include "base/keyed_hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/memory_limit.h"
#include "base/priv.h"
#include "base/refused.h"
#include "base/turn.h"
#include "cache/cache.h"
#include "changes/coherence.h"
#include "changes/mount_list.h"
#include "changes/mounts.h"
#include "changes/noise.h"
#include "conf/conf.h"
#include "derive.h"
#include "flashpached.h"
#include "fleet/fleet.h"
#include "fleet/fleet_link.h"
#include "ipc/listener.h"
#include "ipc/service.h"
#include "ipc/supervisor.h"
#include "lookup/dispatch.h"
#include "lookup/observe.h"
#include "lookup/router.h"
#include "privsep/sandbox.h"
#include "reload.h"
#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/lease_table.h"
#include "wire/packet.h"
#include "wire/socket_path.h"
#include "workers/whereabouts.h"
#include "workers/worker.h"
#include "workers/worker_pool.h"

/* ---- signals ---- */

static void on_reload(struct ev_loop *loop, ev_signal *w, int events)
{
    fp_turn_work(FP_WORK_RELOAD);
    (void)events;
    fp_service_say_reloading();
    fp_reload(w->data);
    /* The reload may have taken its time. */
    ev_now_update(loop);
    fp_service_say_ready();
}

static void on_stop(struct ev_loop *loop, ev_signal *w, int events)
{
    (void)events;
    fp_log(FP_LOG_INFO, 1, "ending on signal %d", w->signum);
    ev_break(loop, EVBREAK_ALL);
}

static void on_stats(struct ev_loop *loop, ev_signal *w, int events)
{
    struct flashpached *d = w->data;

    (void)loop;
    (void)events;
    fp_stats_log(&d->stats);
}

static void watch_signal(struct flashpached *d, ev_signal *w, int signum,
                         void (*cb)(struct ev_loop *, ev_signal *, int))
{
    ev_signal_init(w, cb, signum);
    w->data = d;
    ev_signal_start(d->loop, w);
}

/* ---- other processes, and the filters ---- */

/* Without filters the daemon goes on. */
static void create_sandboxes(struct flashpached *d)
{
    if (!d->conf->seccomp)
        return;
    d->own_sandbox = fp_sandbox_create(FP_SANDBOX_DAEMON);
    d->workers_sandbox = d->own_sandbox != NULL ? fp_sandbox_create(FP_SANDBOX_WORKER) : NULL;
    d->closers_sandbox = d->workers_sandbox != NULL ? fp_sandbox_create(FP_SANDBOX_CLOSER) : NULL;
    if (d->closers_sandbox != NULL)
        return;
    fp_log(FP_LOG_WARNING, 70,
           "no filters of system calls (%m): configure with libseccomp and run "
           "on a kernel with seccomp, or set seccomp = false");
    fp_sandbox_destroy(&d->own_sandbox);
    fp_sandbox_destroy(&d->workers_sandbox);
}

/* From here on only the monitor opens files. */
static bool enter_sandbox(struct flashpached *d)
{
    if (d->own_sandbox == NULL)
        return true;
    /* tzset() reads the file of the time zone, which the log needs. */
    tzset();
    if (fp_sandbox_enter(d->own_sandbox) == 0)
        return true;
    fp_log(FP_LOG_ERROR, 70, "cannot set the filter of system calls: %m; set seccomp = false");
    return false;
}

static void on_monitor_gone(struct ev_loop *loop, ev_io *w, int events)
{
    struct flashpached *d = w->data;

    (void)events;
    fp_log(FP_LOG_ERROR, 71,
           "ending: the process that opens files for this one (fp-monitor) is "
           "gone");
    d->failed = true;
    ev_break(loop, EVBREAK_ALL);
}

static void on_closer_gone(struct ev_loop *loop, ev_child *w, int events)
{
    struct flashpached *d = w->data;

    (void)events;
    fp_log(FP_LOG_ERROR, 80, "ending: a process that closes files for this one (fp-closer) is gone");
    d->failed = true;
    ev_break(loop, EVBREAK_ALL);
}

/* Without closers the daemon goes on. */
static void start_closers(struct flashpached *d)
{
    pid_t pids[FP_CLOSERS];

    if (fp_closer_start(d->descriptors, d->closers_sandbox, fp_derive_is_local, d, pids) == -1) {
        fp_log(FP_LOG_WARNING, 80,
               "cannot start the processes that close files (%m): a file system that does not answer a close "
               "holds the daemon; raise the limits on processes and memory");
        return;
    }
    for (size_t i = 0; i < FP_CLOSERS; i++) {
        ev_child_init(&d->closer_gone[i], on_closer_gone, pids[i], 0);
        d->closer_gone[i].data = d;
        ev_child_start(d->loop, &d->closer_gone[i]);
    }
}

static bool start_monitor(struct flashpached *d)
{
    const struct fp_monitor_settings settings = { .file = d->args.file,
                                                  .overrides = d->args.overrides,
                                                  .n_overrides = d->args.n_overrides,
                                                  .conf = d->conf,
                                                  .job = &d->job,
                                                  .connect_fleet = fp_fleet_connect };

    if (fp_monitor_start(&d->monitor, &settings) == 0)
        return true;
    fp_log(FP_LOG_ERROR, 71, "cannot start the process that opens files: %m");
    return false;
}

/* ---- start and end ---- */

/* libev ends the process if it gets no memory: the log says why. */
static void *take_for_loop(void *p, long size)
{
    if (size != 0)
        return fp_memory_resize(p, (size_t)size);
    free(p);
    return NULL;
}

/* The queue of mounts needs a capability that the process is about to drop. */
static bool prepare_watching(struct flashpached *d)
{
    const struct fp_mounts_settings settings = fp_derive_mounts(d->conf);

    if (fp_watch_begin(&d->watch) == -1) {
        fp_log(FP_LOG_ERROR, 8, "cannot make a pipe: %m");
        return false;
    }
    d->noise = fp_noise_list_create();
    d->whereabouts = d->noise != NULL ? fp_whereabouts_create() : NULL;
    d->mount_list = d->whereabouts != NULL ? fp_mount_list_create() : NULL;
    if (d->mount_list == NULL) {
        fp_log(FP_LOG_ERROR, 8, "cannot share memory with workers: %m");
        return false;
    }
    d->mounts = fp_mounts_create(NULL, &settings, d->mount_list);
    if (d->mounts == NULL) {
        fp_log(FP_LOG_ERROR, 8, "cannot read the table of mounts /proc/self/mountinfo: %m");
        return false;
    }
    fp_sight_take(&d->sees);
    fp_mounts_follow(d->mounts, &d->sees.mounts);
    return true;
}

/*
 * A service manager, or httpd, made the socket for us; else we make it, with the rights that we were
 * started with.  Clients of an httpd that root started trust only a socket that root made: no process
 * of Apache's user can have put that there.
 */
static bool take_socket(struct flashpached *d)
{
    const struct fp_conf *c = d->conf;

    if (d->sock == -1)
        return fp_socket_path_check(c->socket, c->uid, c->gid)
               && fp_socket_path_take(c->socket, c->gid, &d->sock, &d->lock);
    if (!fp_socket_path_is(d->sock, c->socket)) {
        fp_log(FP_LOG_ERROR, 5,
               "the service manager's socket is not a listening SOCK_SEQPACKET at "
               "%s: give ListenSequentialPacket= and socket the same path",
               c->socket);
        return false;
    }
    return fp_socket_path_adopt(d->sock);
}

/* A process that may trace this one could take the socket from it, and answer in its place. */
static void check_exposure(const struct flashpached *d)
{
    if (geteuid() != 0 && fp_priv_is_exposed() && fp_socket_path_maker(d->sock) == 0)
        fp_log(FP_LOG_WARNING, 73,
               "another process of uid %u could have taken this one over while it started: make the program "
               "unreadable for that user (chmod 0711, as make install does), and start this daemon again",
               (unsigned)geteuid());
}

/* A refused call would fail for every path.  So nobody is asked here, and httpd looks itself. */
static bool has_calls(void)
{
    const char *call = fp_refused_call();

    if (call != NULL)
        fp_log(FP_LOG_ERROR, 74,
               "this system refuses the call %s (%m), so nothing is served from here, and httpd serves as "
               "without Flashpache: allow the call in the filter (seccomp) of the container or service, or "
               "use a newer kernel",
               call);
    return call == NULL;
}

/* Another daemon may get an instance that is missing for now, so this one does not go on with answers that are late. */
static bool may_watch(struct flashpached *d)
{
    if (fp_watch_open(&d->watch))
        return true;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        fp_log(FP_LOG_ERROR, 43,
               "no inotify (%m), so nothing is served from here, and httpd serves as without Flashpache: raise "
               "fs.inotify.max_user_instances");
        return false;
    }
    fp_log(FP_LOG_WARNING, 43,
           "no inotify (%m): changes are seen after ttl_ms; allow inotify's calls in the filter (seccomp) of the "
           "container or service");
    return true;
}

/* Uses the rights of root and drops them, before anything is shared. */
static bool prepare(struct flashpached *d)
{
    if (!fp_open_log(d->conf) || (d->args.supervised && !fp_supervisor_take()) || !has_calls()
        || !prepare_watching(d))
        return false;
    d->prompt = fp_priv_run_promptly();
    if (!d->prompt)
        fp_log(FP_LOG_WARNING, 72,
               "cannot set nice -10 (%m): while the processors are busy, changes reach the cache late and "
               "clients ask instead of using leases; start flashpached as root, or with Nice=-10 and "
               "LimitNICE=-10");
    d->memory = fp_derive_memory(d->conf, fp_memory_limit(""));
    if (!take_socket(d))
        return false;
    check_exposure(d);
    d->own_socket = fp_socket_path_maker(d->sock) == d->conf->uid && d->lock != -1;
    if (fp_priv_drop(d->conf->user, d->conf->uid, d->conf->gid) == -1) {
        fp_log(FP_LOG_ERROR, 8, "cannot become user %s: %m", d->conf->user);
        return false;
    }
    fp_check_log(d->conf);
    return fp_keyed_hash_init() == 0 && may_watch(d);
}

static void forget_watch(void *ctx, const struct fp_watch_key *key)
{
    fp_watch_forget(ctx, key);
}

static bool start_cache(struct flashpached *d)
{
    const struct fp_conf *c = d->conf;
    struct fp_cache_deps cache = { .now_ms = fp_now_ms, .forget = forget_watch, .ctx = &d->watch };
    struct fp_coherence_deps coherence = { &fp_cache_change_ops, NULL, d->mounts, &d->watch, NULL, d->noise };
    const struct fp_cache_content content = fp_derive_content(d, c);
    struct fp_cache_limits limits;
    struct fp_tables_sizes sizes;

    fp_derive_limits(d, c, &limits);
    sizes = fp_derive_tables(d, &limits);
    if (!fp_tables_create(&d->tables, &sizes)) {
        fp_log(FP_LOG_ERROR, 8, "cannot make the tables that clients map: %m; lower memory");
        return false;
    }
    fp_lease_table_set_unreported(d->tables.leases, fp_derive_unreported_ms(c));
    coherence.lease_table = cache.lease_table = d->tables.leases;
    coherence.ctx = d->cache = fp_cache_create(&limits, &cache);
    if (d->cache == NULL)
        return false;
    fp_cache_set_content(d->cache, &content);
    d->coherence = fp_coherence_create(d->loop, &coherence);
    return d->coherence != NULL;
}

static void collect_stats(void *ctx, uint64_t values[FP_STATS])
{
    const struct flashpached *d = ctx;
    const struct fp_cache_counts cache = fp_cache_counts(d->cache);
    const struct fp_dispatch_counts dispatch = fp_dispatch_counts(d->dispatch);
    const struct fp_coherence_counts coherence = fp_coherence_counts(d->coherence);
    const struct fp_worker_pool_counts workers = fp_worker_pool_counts(d->workers);
    const struct fp_listener_counts listener = fp_listener_counts(d->listener);
    const struct fp_fleet_counts fleet = fp_fleet_counts(d->fleet);
    const struct fp_ring_counts answers = fp_answer_table_counts(d->tables.answers);
    const struct fp_ring_counts contents = fp_contents_counts(d->tables.contents);
    const struct fp_wakeups loop = d->wakeups;
    const uint64_t long_pieces = fp_turn_long_pieces();
    const uint64_t out_of_memory = fp_memory_failures();
    const size_t closing = fp_closer_waiting();
    const uint64_t resident_bytes = fp_stats_resident_bytes(d->statm);
    const uint64_t now[FP_STATS] = { FP_STATS_TABLE(FP_STATS_FIELD) };

    memcpy(values, now, sizeof(now));
}

static void set_reports(struct flashpached *d)
{
    d->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    d->stats = (struct fp_stats){ .collect = collect_stats, .ctx = d };
    d->about = (struct fp_about){ d->conf,        d->args.file,
                                  d->descriptors, fp_derive_connections(d, d->conf),
                                  fp_now_ms(),    d->own_sandbox != NULL,
                                  d->prompt,      d->args.supervised };
    d->control =
        (struct fp_control_deps){ .cache = d->cache,
                                  .mounts = d->mounts,
                                  .forget = fp_forget,
                                  .purged = fp_publish_change,
                                  .ctx = d,
                                  .reports = { [FP_REPORT_STATS] = { fp_stats_line, &d->stats },
                                               [FP_REPORT_MOUNTS] = { fp_observer_mount_line, &d->observer },
                                               [FP_REPORT_LATENCY] = { fp_latency_line, d->observer.latency },
                                               [FP_REPORT_ABOUT] = { fp_about_line, &d->about } } };
}

/* The processes beside this one, and the loop that hears of their ends. */
static bool start_processes(struct flashpached *d)
{
    const struct fp_conf *c = d->conf;
    const struct fp_worker_pool_settings workers = fp_derive_workers(d, c);

    create_sandboxes(d);
    d->resolver = (struct fp_resolver_settings){ c->roots, d->mount_list, &d->watch, d->workers_sandbox, d->noise,
                                                 d->whereabouts };
    d->job = (struct fp_worker_job){ fp_worker_run, &d->resolver, d->watch.inotify, d->args.supervised };
    if (!start_monitor(d) || !fp_warm_start(&d->warm, c, d->args.supervised))
        return false;
    d->loop = ev_default_loop(EVFLAG_NOENV);
    if (d->loop == NULL)
        return false;
    start_closers(d);
    d->workers = fp_worker_pool_create(d->loop, &workers);
    return d->workers != NULL;
}

static bool start_dispatch(struct flashpached *d)
{
    const struct fp_dispatch_settings settings = fp_derive_dispatch(d, d->conf);

    d->dispatch = fp_dispatch_create(d->loop, d->cache, d->workers, d->coherence, d->mounts, &d->tables,
                                     &d->observer, &settings);
    d->router = (struct fp_router){ d->dispatch, d->cache, &d->control };
    return d->dispatch != NULL;
}

static bool start_listener(struct flashpached *d)
{
    const struct fp_conf *c = d->conf;
    const struct fp_listener_settings settings = { .path = c->socket,
                                                   .sock = d->sock,
                                                   .lock = d->lock,
                                                   .own = d->own_socket,
                                                   .uid = c->uid,
                                                   .gid = c->gid,
                                                   .max_connections = fp_derive_connections(d, c),
                                                   .clients = { &fp_router_ops, &d->router, &d->tables, &d->watch,
                                                                &d->sees },
                                                   .out_of_descriptors = fp_router_out_of_descriptors,
                                                   .monitor = &d->monitor };

    d->listener = fp_listener_create(d->loop, &settings);
    d->sock = d->lock = -1;
    return d->listener != NULL;
}

/* The ends of this process, and of those without which it ends. */
static void watch_for_ends(struct flashpached *d)
{
    if (d->args.supervised)
        fp_supervisor_watch(d->loop);
    ev_io_init(&d->monitor_gone, on_monitor_gone, d->monitor.sock, EV_READ);
    d->monitor_gone.data = d;
    ev_io_start(d->loop, &d->monitor_gone);
    watch_signal(d, &d->sigterm, SIGTERM, on_stop);
    watch_signal(d, &d->sigint, SIGINT, on_stop);
}

static bool start(struct flashpached *d)
{
    ev_set_allocator(take_for_loop);
    if (!start_processes(d) || !start_cache(d) || fp_observer_init(&d->observer, d->mounts) == -1
        || !start_dispatch(d) || !start_listener(d))
        return false;
    set_reports(d);
    fp_wakeups_count(&d->wakeups, d->loop);
    fp_join_fleet(d, d->conf);
    watch_for_ends(d);
    watch_signal(d, &d->sighup, SIGHUP, on_reload);
    watch_signal(d, &d->sigusr1, SIGUSR1, on_stats);
    fp_warm_read(&d->warm, d->loop, d->dispatch);
    return enter_sandbox(d);
}

static void stop(struct flashpached *d)
{
    fp_service_say_stopping();
    /* From now on no one reads the events. */
    if (d->tables.leases != NULL)
        fp_lease_table_retire(d->tables.leases);
    fp_listener_destroy(&d->listener);
    if (d->fleet != NULL)
        fp_leave_fleet(d);
    fp_worker_pool_destroy(&d->workers);
    fp_dispatch_destroy(&d->dispatch);
    fp_observer_clear(&d->observer);
    fp_coherence_destroy(&d->coherence);
    fp_cache_destroy(&d->cache);
    fp_closer_stop();
    fp_tables_destroy(&d->tables);
    fp_watch_close(&d->watch);
    fp_mounts_destroy(&d->mounts);
    fp_warm_stop(&d->warm);
    fp_monitor_stop(&d->monitor);
    fp_close(&d->statm);
    fp_close(&d->sock);
    fp_close(&d->lock);
    fp_sandbox_destroy(&d->own_sandbox);
    fp_sandbox_destroy(&d->workers_sandbox);
    fp_sandbox_destroy(&d->closers_sandbox);
    fp_conf_destroy(&d->conf);
}

int main(int argc, char **argv)
{
    static struct flashpached d = {
        .sock = -1, .lock = -1, .watch = FP_WATCH_NONE, .monitor = { -1 }, .warm = FP_WARM_NONE, .statm = -1
    };
    bool ok;

    fp_arguments_parse(&d.args, argc, argv);
    /* Closes inherited descriptors, so that no worker has them. */
    if (!(d.args.passed ? fp_supervisor_take_socket(&d.sock, &d.lock) : fp_service_take_socket(&d.sock)))
        return 1;
    d.conf = fp_conf_load(d.args.file, d.args.overrides, d.args.n_overrides);
    d.descriptors = fp_priv_raise_descriptors();
    if (d.conf == NULL || !fp_derive_fits(&d, d.conf)) {
        fp_conf_destroy(&d.conf);
        return 1;
    }
    if (d.args.check) {
        printf("flashpached: configuration %s is good\n", d.args.file);
        fp_conf_destroy(&d.conf);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    fp_log_echo(true);
    ok = prepare(&d) && start(&d);
    if (ok) {
        fp_log_echo(false);
        fp_log(FP_LOG_INFO, 1, "ready: version %s, serving %s as uid %u with %u workers", PACKAGE_VERSION,
               d.conf->socket, (unsigned)d.conf->uid, d.conf->workers);
        fp_service_say_ready();
        ev_run(d.loop, 0);
        ok = !d.failed;
        /* The table ends now: children need not wait for the list to be written. */
        fp_lease_table_retire(d.tables.leases);
        fp_warm_write(&d.warm);
    }
    stop(&d);
    return ok ? 0 : 1;
}
