/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpached: the order in which things start, and how they are wired.
 */
#include "config.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "admin/about.h"
#include "admin/control.h"
#include "admin/hot.h"
#include "admin/latency.h"
#include "admin/slow.h"
#include "admin/stats.h"
#include "admin/wakeups.h"
#include "cache/cache.h"
#include "changes/coherence.h"
#include "changes/mounts.h"
#include "changes/mounts_view.h"
#include "changes/watch.h"
#include "common/clock.h"
#include "common/keyed_hash.h"
#include "common/lease_table.h"
#include "common/log.h"
#include "common/packet.h"
#include "common/priv.h"
#include "conf/conf.h"
#include "conf/conf_fleet.h"
#include "fleet/fleet.h"
#include "ipc/listener.h"
#include "ipc/service.h"
#include "ipc/supervisor.h"
#include "lookup/dispatch.h"
#include "lookup/observe.h"
#include "privsep/monitor.h"
#include "privsep/sandbox.h"
#include "privsep/spawner.h"
#include "workers/resolve.h"
#include "workers/worker.h"
#include "workers/worker_pool.h"

#define MAX_OVERRIDES 64
/* Descriptors that are neither files nor connections: log, loop, lock,
 * standard streams, answers on their way. */
#define OWN_DESCRIPTORS 64

/* One in so many descriptors is a directory's, and one a connection's at most. */
#define PLACES_SHARE      4
#define CONNECTIONS_SHARE 4

struct arguments {
    const char *file;
    char *overrides[MAX_OVERRIDES];
    size_t n_overrides;
    bool check, foreground, supervised;
};

struct daemon {
    struct arguments args;
    struct fp_conf *conf;       /* as we started; parts of us point into it */
    size_t descriptors;         /* the process may hold */
    struct ev_loop *loop;
    struct fp_mounts_view *view;
    struct fp_mounts *mounts;
    struct fp_watch watch;
    struct fp_resolver_settings resolver;
    struct fp_worker_job job;
    struct fp_sandbox *own_sandbox, *helpers_sandbox;   /* NULL: none */
    struct fp_monitor monitor;
    ev_io monitor_gone;
    struct fp_lease_table *slots;
    struct fp_cache *cache;
    struct fp_coherence *fresh;
    struct fp_worker_pool *helpers;
    struct fp_dispatch *dispatch;
    struct fp_listener *listener;
    struct fp_observer observer;
    struct fp_fleet *fleet;     /* NULL: there is none */
    struct fp_conf *fleet_conf; /* that its settings lie in; may be conf */
    struct fp_wakeups wakeups;
    struct fp_stats stats;
    struct fp_about about;
    struct fp_control_deps control;
    int passed_socket;          /* from a service manager; -1 */
    int ready_pipe;             /* to the process that was called; -1 */
    int pid_file;               /* -1: none is wanted */
    bool pid_written;
    bool failed;                /* the loop ended for a reason that a restart mends */
    ev_signal sigterm, sigint, sighup, sigusr1;
};

/* ---- arguments ---- */

static void usage(FILE *out)
{
    fputs("Usage: flashpached [-c FILE] [-o KEY=VALUE]... [-t] [-f]\n"
          "Answers Apache httpd's questions about paths from a cache.\n\n"
          "  -c, --config FILE     configuration (" FP_DEFAULT_CONF ")\n"
          "  -o, --set KEY=VALUE   override one setting; repeatable\n"
          "  -t, --check           check the configuration and exit\n"
          "  -f, --foreground      stay in the foreground, log to standard error\n"
          "      --supervised      as httpd starts it: in the foreground, standard input\n"
          "                        is a socket of the process that it ends with\n"
          "  -V, --version         print the version and exit\n"
          "  -h, --help            print this and exit\n\n"
          "Signals: TERM ends, HUP rereads the configuration and reopens the log,\n"
          "USR1 logs counters.\n", out);
}

static void add_override(struct arguments *a, char *setting)
{
    if (a->n_overrides == MAX_OVERRIDES) {
        fprintf(stderr, "flashpached: more than %d settings with -o: use a file\n",
                MAX_OVERRIDES);
        exit(1);
    }
    a->overrides[a->n_overrides++] = setting;
}

static void parse_arguments(struct arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        { "config", required_argument, NULL, 'c' },
        { "set", required_argument, NULL, 'o' },
        { "check", no_argument, NULL, 't' },
        { "foreground", no_argument, NULL, 'f' },
        { "supervised", no_argument, NULL, 'S' },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };
    int c;

    a->file = FP_DEFAULT_CONF;
    while ((c = getopt_long(argc, argv, "c:o:tfVh", options, NULL)) != -1) {
        switch (c) {
        case 'c': a->file = optarg; break;
        case 'o': add_override(a, optarg); break;
        case 't': a->check = true; break;
        case 'f': a->foreground = true; break;
        case 'S': a->supervised = true; break;
        case 'V': puts("flashpached " PACKAGE_VERSION); exit(0);
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(1);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "flashpached: unexpected argument: %s\n", argv[optind]);
        exit(1);
    }
}

/* ---- settings that may change while we run ---- */

static size_t most_connections(const struct daemon *d, const struct fp_conf *c)
{
    const size_t share = d->descriptors / CONNECTIONS_SHARE;

    return c->max_connections < share ? c->max_connections : share;
}

static void derive_limits(const struct daemon *d, const struct fp_conf *c,
                          struct fp_cache_limits *l)
{
    size_t reserve = most_connections(d, c) + 2 * c->helpers + OWN_DESCRIPTORS;
    size_t room = d->descriptors > reserve ? d->descriptors - reserve : 16;

    l->files = c->max_descriptors != 0 ? c->max_descriptors : room;
    if (l->files > room) {
        fp_log(FP_LOG_WARNING, 7, "the limit of %zu descriptors leaves %zu for open files: "
               "raise it (LimitNOFILE=, ulimit -n) or lower max_descriptors and "
               "max_connections", d->descriptors, room);
        l->files = room;
    }
    /* Most of the room is for what requests ask for. */
    l->open_dirs = l->files / PLACES_SHARE + 1;
    l->files -= l->files / PLACES_SHARE;
    l->directories = c->max_entries;
    l->negatives = c->max_absent;
    l->bytes = c->max_bytes;
    l->ttl_ms = c->ttl_ms;
    l->watched_ttl_ms = c->watched_ttl_ms;
}

static struct fp_mounts_settings mounts_settings(const struct fp_conf *c)
{
    return (struct fp_mounts_settings){ c->mounts, c->n_mounts, c->watch, c->ttl_ms,
                                        c->stale_if_error_ms };
}

/* The number of helpers is that of the start, and so is their share. */
static struct fp_worker_pool_settings helpers_settings(const struct daemon *d,
                                                   const struct fp_conf *c)
{
    const unsigned n = d->conf->helpers, most = n > 1 ? n * 3 / 4 : 1;

    return (struct fp_worker_pool_settings){
        .helpers = n, .timeout_ms = c->lookup_timeout_ms, .max_queue = c->max_queue,
        .mount_helpers = c->mount_helpers != 0 ? c->mount_helpers : most,
        .monitor = &d->monitor };
}

static struct fp_dispatch_settings dispatch_settings(const struct daemon *d,
                                                     const struct fp_conf *c)
{
    return (struct fp_dispatch_settings){ .max_inflight = c->max_inflight,
                                          .mount_timeout_ms = c->mount_timeout_ms,
                                          .roots = d->conf->roots };
}

static const char *log_target(const struct daemon *d, const struct fp_conf *c)
{
    return d->args.foreground ? "stderr" : c->log;
}

static bool open_log(const struct daemon *d, const struct fp_conf *c)
{
    if (fp_log_open(log_target(d, c), (enum fp_log_level)c->log_level) == 0) {
        if (geteuid() == 0 && fp_log_chown(c->uid, c->gid) == -1)
            fp_log(FP_LOG_WARNING, 8, "cannot give the log %s to uid %u: %m", c->log,
                   (unsigned)c->uid);
        return true;
    }
    fp_log(FP_LOG_ERROR, 8, "cannot open the log %s: %m", log_target(d, c));
    return false;
}

/* As the file says that was reread. */
static void reopen_log(const struct daemon *d, const struct fp_conf *c)
{
    const char *target = log_target(d, c);
    int fd;

    if (target[0] != '/') {
        open_log(d, c);
        return;
    }
    fd = fp_monitor_ask(&d->monitor, FP_MONITOR_LOG);
    if (fd != -1)
        fp_log_take_file(fd, (enum fp_log_level)c->log_level);
    else
        fp_log(FP_LOG_ERROR, 8, "cannot open the log %s: %m", target);
}

/* What cannot change without a restart is said, not silently ignored. */
static void warn_of_fixed(const struct fp_conf *old, const struct fp_conf *new)
{
    bool same_roots = true;

    for (size_t i = 0; same_roots; i++) {
        if (old->roots[i] == NULL || new->roots[i] == NULL) {
            same_roots = old->roots[i] == new->roots[i];
            break;
        }
        same_roots = strcmp(old->roots[i], new->roots[i]) == 0;
    }
    if (!same_roots || strcmp(old->socket, new->socket) != 0 || strcmp(old->user, new->user) != 0
        || strcmp(old->group, new->group) != 0 || strcmp(old->pid_file, new->pid_file) != 0
        || old->helpers != new->helpers
        || old->max_connections != new->max_connections || old->read_ahead != new->read_ahead
        || old->seccomp != new->seccomp)
        fp_log(FP_LOG_WARNING, 9, "socket, user, group, pid_file, helpers, roots, read_ahead, "
               "seccomp and max_connections take effect after a restart only");
}

/* One for everything that can be told of a path, and another one for each
 * directory that is the end of one. */
static uint32_t slots_for(const struct fp_cache_limits *l)
{
    size_t n = l->files + l->negatives + 2 * l->directories;

    return n < FP_MAX_SLOTS ? (uint32_t)n : FP_MAX_SLOTS;
}

/* Askers notice that the table before is given up, and connect again. */
static void resize_leases(struct daemon *d, uint32_t n)
{
    struct fp_lease_table *slots;

    if (n == fp_lease_table_count(d->slots))
        return;
    slots = fp_lease_table_create(n);
    if (slots == NULL) {
        fp_log(FP_LOG_ERROR, 8, "the shared table of leases stays as it was: %m");
        return;
    }
    fp_lease_table_retire(d->slots);
    fp_cache_set_lease_table(d->cache, slots);
    fp_coherence_set_lease_table(d->fresh, slots);
    fp_listener_set_slots(d->listener, slots);
    fp_lease_table_destroy(&d->slots);
    d->slots = slots;
}

static void set_content(struct daemon *d, const struct fp_conf *c)
{
    const struct fp_cache_content content = { c->content_file_max, c->max_content_bytes };

    fp_cache_set_content(d->cache, &content);
}

static void forget_as_told(void *ctx, const char *path, size_t len, bool tree)
{
    const struct daemon *d = ctx;

    fp_dispatch_forget(d->dispatch, path, len, tree);
}

static void tell_fleet(void *ctx, const char *path, size_t len, bool tree)
{
    const struct daemon *d = ctx;

    fp_fleet_publish(d->fleet, path, len, tree);
}

static void leave_fleet(struct daemon *d)
{
    fp_cache_set_report_changed(d->cache, NULL, NULL);
    fp_fleet_destroy(&d->fleet);
    if (d->fleet_conf != d->conf)
        fp_conf_destroy(&d->fleet_conf);
    d->fleet_conf = NULL;
}

/* Into the fleet of that configuration, if it has one, which then stays as long as it. */
static void join_fleet(struct daemon *d, struct fp_conf *c)
{
    if (c->fleet == NULL)
        return;
    d->fleet = fp_fleet_create(d->loop, c->fleet, &d->monitor, forget_as_told, d);
    if (d->fleet == NULL) {
        fp_log(FP_LOG_ERROR, 61, "fleet: out of memory; this daemon is in none");
        return;
    }
    d->fleet_conf = c;
    if (c->fleet->publish_changes)
        fp_cache_set_report_changed(d->cache, tell_fleet, d);
}

static bool is_same_fleet(const struct daemon *d, const struct fp_conf *c)
{
    if (d->fleet == NULL || c->fleet == NULL)
        return d->fleet == NULL && c->fleet == NULL;
    return fp_fleet_settings_equal(d->fleet_conf->fleet, c->fleet);
}

/* What holds at once.  What is known stays, for as long as it was believed. */
static void apply(struct daemon *d, const struct fp_conf *c)
{
    const struct fp_mounts_settings mounts = mounts_settings(c);
    const struct fp_dispatch_settings dispatch = dispatch_settings(d, c);
    const struct fp_worker_pool_settings helpers = helpers_settings(d, c);
    struct fp_cache_limits limits;

    derive_limits(d, c, &limits);
    fp_cache_set_limits(d->cache, &limits);
    resize_leases(d, slots_for(&limits));
    set_content(d, c);
    fp_worker_pool_set(d->helpers, &helpers);
    fp_dispatch_set(d->dispatch, &dispatch);
    fp_slow_set(d->observer.slow, c->slow_log_ms);
    fp_coherence_set(d->fresh, c->ttl_ms, c->stale_if_error_ms);
    if (fp_mounts_set(d->mounts, &mounts) == -1)
        fp_log(FP_LOG_ERROR, 8, "the settings of mounts stay as they were: %m");
    /* What was watched by rules that are gone is not for long. */
    fp_cache_invalidate(d->cache, NULL);
}

static struct fp_conf *reread(const struct daemon *d)
{
    const int fd = fp_monitor_ask(&d->monitor, FP_MONITOR_CONFIGURATION);

    return fd == -1 ? NULL : fp_conf_reload(fd, d->conf, d->args.overrides, d->args.n_overrides);
}

static void reload(struct daemon *d)
{
    struct fp_conf *c = reread(d);

    if (c == NULL) {
        fp_log(FP_LOG_ERROR, 8, "%s has mistakes: keeping the old settings; check it with "
               "flashpached -t", d->args.file);
        return;
    }
    reopen_log(d, c);
    apply(d, c);
    warn_of_fixed(d->conf, c);
    fp_log(FP_LOG_INFO, 8, "configuration %s reread", d->args.file);
    if (!is_same_fleet(d, c)) {
        leave_fleet(d);
        join_fleet(d, c);
    }
    if (c != d->fleet_conf)
        fp_conf_destroy(&c);
}

static void on_reload(struct ev_loop *loop, ev_signal *w, int events)
{
    (void)events;
    fp_service_say_reloading();
    reload(w->data);
    /* That may have taken its time. */
    ev_now_update(loop);
    fp_service_say_ready();
}

/* ---- signals ---- */

static void on_stop(struct ev_loop *loop, ev_signal *w, int events)
{
    (void)events;
    fp_log(FP_LOG_INFO, 1, "ending on signal %d", w->signum);
    ev_break(loop, EVBREAK_ALL);
}

static void on_stats(struct ev_loop *loop, ev_signal *w, int events)
{
    const struct daemon *d = w->data;

    (void)loop;
    (void)events;
    fp_stats_log(&d->stats);
}

static void watch_signal(struct daemon *d, ev_signal *w, int signum,
                         void (*cb)(struct ev_loop *, ev_signal *, int))
{
    ev_signal_init(w, cb, signum);
    w->data = d;
    ev_signal_start(d->loop, w);
}

static void watch_signals(struct daemon *d)
{
    watch_signal(d, &d->sigterm, SIGTERM, on_stop);
    watch_signal(d, &d->sigint, SIGINT, on_stop);
    watch_signal(d, &d->sighup, SIGHUP, on_reload);
    watch_signal(d, &d->sigusr1, SIGUSR1, on_stats);
}

/* ---- into the background ---- */

/* Waits in the process that was called until the daemon is ready or failed. */
static void wait_ready(int pipe_end, pid_t child)
{
    char c;
    ssize_t n;
    int status = 0;

    do {
        n = read(pipe_end, &c, 1);
    } while (n == -1 && errno == EINTR);
    if (n == 1)
        _exit(0);
    waitpid(child, &status, 0);
    _exit(1);
}

static bool detach(struct daemon *d)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) == -1)
        return false;
    pid = fork();
    if (pid == -1)
        return false;
    if (pid > 0) {
        close(ends[1]);
        wait_ready(ends[0], pid);
    }
    close(ends[0]);
    d->ready_pipe = ends[1];
    if (setsid() == -1 || chdir("/") == -1)
        return false;
    return fp_lead_to_null(STDIN_FILENO) && fp_lead_to_null(STDOUT_FILENO);
}

/* Opened while we may, written when the socket is ours: until then it may be
 * that of another daemon. */
static bool open_pid_file(struct daemon *d)
{
    const char *path = d->conf->pid_file;

    if (path[0] == '\0')
        return true;
    d->pid_file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (d->pid_file == -1)
        fp_log(FP_LOG_ERROR, 8, "cannot open the pid file %s: %m", path);
    return d->pid_file != -1;
}

static void write_pid_file(struct daemon *d)
{
    if (d->pid_file == -1)
        return;
    if (ftruncate(d->pid_file, 0) == -1 || dprintf(d->pid_file, "%d\n", (int)getpid()) < 0)
        fp_log(FP_LOG_ERROR, 8, "cannot write the pid file %s: %m", d->conf->pid_file);
    d->pid_written = true;
}

/* In a directory that is not ours it cannot be removed, only emptied. */
static void remove_pid_file(struct daemon *d)
{
    if (d->pid_written && fp_monitor_ask(&d->monitor, FP_MONITOR_END_PID_FILE) == -1
        && ftruncate(d->pid_file, 0) == -1)
        fp_log(FP_LOG_WARNING, 8, "cannot remove the pid file %s: %m", d->conf->pid_file);
    fp_close(&d->pid_file);
}

static void say_ready(struct daemon *d)
{
    write_pid_file(d);
    fp_log_echo(false);
    fp_log(FP_LOG_INFO, 1, "ready: version %s, serving %s as uid %u with %u helpers",
           PACKAGE_VERSION, d->conf->socket, (unsigned)d->conf->uid, d->conf->helpers);
    fp_service_say_ready();
    if (d->ready_pipe == -1)
        return;
    if (write(d->ready_pipe, "", 1) != 1)
        fp_log(FP_LOG_WARNING, 1, "the process that started this daemon is gone");
    fp_close(&d->ready_pipe);
    /* Standard input leads to /dev/null (detach()); what opens that is refused by now. */
    if (strcmp(d->conf->log, "stderr") != 0)
        dup2(STDIN_FILENO, STDERR_FILENO);
}

/* ---- other processes, and the filters ---- */

/* Without filters all goes on as well. */
static void create_sandboxes(struct daemon *d)
{
    if (!d->conf->seccomp)
        return;
    d->own_sandbox = fp_sandbox_create(FP_SANDBOX_DAEMON);
    d->helpers_sandbox = d->own_sandbox != NULL ? fp_sandbox_create(FP_SANDBOX_WORKER) : NULL;
    if (d->helpers_sandbox != NULL)
        return;
    fp_log(FP_LOG_WARNING, 70, "no filters of system calls (%m): configure with libseccomp and run "
           "on a kernel with seccomp, or set seccomp = false");
    fp_sandbox_destroy(&d->own_sandbox);
}

/* From here on nothing is opened but by the monitor. */
static bool enter_sandbox(struct daemon *d)
{
    if (d->own_sandbox == NULL)
        return true;
    /* Reads the file of the time zone, which the log needs. */
    tzset();
    if (fp_sandbox_enter(d->own_sandbox) == 0)
        return true;
    fp_log(FP_LOG_ERROR, 70, "cannot set the filter of system calls: %m; set seccomp = false");
    return false;
}

static void on_monitor_gone(struct ev_loop *loop, ev_io *w, int events)
{
    struct daemon *d = w->data;

    (void)events;
    fp_log(FP_LOG_ERROR, 71, "ending: the process that opens files for this one (fp-monitor) is "
           "gone");
    d->failed = true;
    ev_break(loop, EVBREAK_ALL);
}

/* Whoever waits for the end of what a detached daemon says at its start must not wait for
 * its processes, which would keep standard error open. */
static bool start_monitor(struct daemon *d)
{
    const struct fp_monitor_settings settings = {
        .file = d->args.file, .overrides = d->args.overrides, .n_overrides = d->args.n_overrides,
        .conf = d->conf, .job = &d->job };
    const bool hide = d->ready_pipe != -1 && strcmp(d->conf->log, "stderr") != 0;
    int kept = hide ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1, rc;

    if (kept != -1)
        fp_lead_to_null(STDERR_FILENO);
    rc = fp_monitor_start(&d->monitor, &settings);
    if (kept != -1)
        dup2(kept, STDERR_FILENO);
    fp_close(&kept);
    if (rc == -1)
        fp_log(FP_LOG_ERROR, 71, "cannot start the process that opens files: %m");
    return rc == 0;
}

static void watch_monitor(struct daemon *d)
{
    ev_io_init(&d->monitor_gone, on_monitor_gone, d->monitor.sock, EV_READ);
    d->monitor_gone.data = d;
    ev_io_start(d->loop, &d->monitor_gone);
}

/* ---- start and end ---- */

/* The marks need a right that we are about to give up. */
static bool prepare_watching(struct daemon *d)
{
    const struct fp_mounts_settings settings = mounts_settings(d->conf);

    d->view = fp_mounts_view_create();
    d->mounts = d->view != NULL ? fp_mounts_create(NULL, &settings, d->view) : NULL;
    if (d->mounts == NULL) {
        fp_log(FP_LOG_ERROR, 8, "cannot read the table of mounts /proc/self/mountinfo: %m");
        return false;
    }
    fp_watch_mark(&d->watch, d->mounts, d->conf->roots);
    return true;
}

/* As root if we are, and before anything is shared. */
static bool prepare(struct daemon *d)
{
    const bool stays = d->args.foreground || d->args.supervised;

    if (!open_log(d, d->conf) || (d->args.supervised && !fp_supervisor_take())
        || (!stays && !detach(d)) || !open_pid_file(d) || !prepare_watching(d))
        return false;
    d->descriptors = fp_priv_raise_descriptors();
    if (fp_priv_drop(d->conf->user, d->conf->uid, d->conf->gid) == -1) {
        fp_log(FP_LOG_ERROR, 8, "cannot become user %s: %m", d->conf->user);
        return false;
    }
    if (!fp_watch_open(&d->watch))
        fp_log(FP_LOG_WARNING, 43, "inotify is not to be had (%m): changes are seen after ttl_ms; "
               "raise fs.inotify.max_user_instances");
    return fp_keyed_hash_init() == 0;
}

static void forget_watch(void *ctx, const struct fp_watch_key *key)
{
    fp_watch_forget(ctx, key);
}

static bool start_cache(struct daemon *d)
{
    const struct fp_conf *c = d->conf;
    struct fp_cache_deps means = { .now_ms = fp_now_ms, .forget = forget_watch, .ctx = &d->watch };
    struct fp_coherence_deps parts = { &fp_cache_change_ops, NULL, d->mounts, &d->watch, NULL };
    struct fp_cache_limits limits;

    derive_limits(d, c, &limits);
    d->slots = fp_lease_table_create(slots_for(&limits));
    if (d->slots == NULL) {
        fp_log(FP_LOG_ERROR, 8, "cannot make the shared table of leases: %m; lower max_entries "
               "and max_absent");
        return false;
    }
    parts.lease_table = means.lease_table = d->slots;
    parts.ctx = d->cache = fp_cache_create(&limits, &means);
    if (d->cache == NULL)
        return false;
    set_content(d, c);
    d->fresh = fp_coherence_create(d->loop, &parts, c->ttl_ms, c->stale_if_error_ms);
    return d->fresh != NULL;
}

static void set_reports(struct daemon *d)
{
    d->stats = (struct fp_stats){ d->cache, d->dispatch, d->fresh, d->helpers, d->listener,
                                   &d->fleet, &d->wakeups,
                                   open("/proc/self/statm", O_RDONLY | O_CLOEXEC) };
    d->about = (struct fp_about){ d->conf, d->args.file, d->descriptors,
                                  most_connections(d, d->conf), fp_now_ms(),
                                  d->own_sandbox != NULL };
    d->control = (struct fp_control_deps){
        .dispatch = d->dispatch, .cache = d->cache, .fresh = d->fresh,
        .purged = tell_fleet, .purged_ctx = d,
        .reports = { [FP_REPORT_STATS] = { fp_stats_line, &d->stats },
                     [FP_REPORT_MOUNTS] = { fp_coherence_mount_line, d->fresh },
                     [FP_REPORT_LATENCY] = { fp_latency_line, d->observer.latency },
                     [FP_REPORT_SLOW] = { fp_slow_line, d->observer.slow },
                     [FP_REPORT_HOT] = { fp_hot_line, d->observer.hot },
                     [FP_REPORT_ABOUT] = { fp_about_line, &d->about } } };
    fp_dispatch_set_operator(d->dispatch, &d->control, &d->observer);
}

static bool start(struct daemon *d)
{
    const struct fp_conf *c = d->conf;
    const struct fp_worker_pool_settings helpers = helpers_settings(d, c);
    const struct fp_dispatch_settings dispatch = dispatch_settings(d, c);
    struct fp_listener_settings listener = { .path = c->socket, .passed = d->passed_socket,
                                             .uid = c->uid, .gid = c->gid,
                                             .max_connections = most_connections(d, c),
                                             .ops = &fp_dispatch_ops,
                                             .monitor = &d->monitor };

    create_sandboxes(d);
    d->resolver = (struct fp_resolver_settings){ c->roots, c->read_ahead, d->view, &d->watch,
                                                 d->helpers_sandbox };
    d->job = (struct fp_worker_job){ fp_worker_run, &d->resolver, d->watch.inotify };
    d->loop = start_monitor(d) ? ev_default_loop(EVFLAG_NOENV) : NULL;
    if (d->loop == NULL)
        return false;
    d->helpers = fp_worker_pool_create(d->loop, &helpers);
    if (d->helpers == NULL || !start_cache(d))
        return false;
    d->dispatch = fp_dispatch_create(d->loop, d->cache, d->helpers, d->fresh, &dispatch);
    listener.ctx = d->dispatch;
    listener.slots = d->slots;
    d->listener = d->dispatch != NULL ? fp_listener_create(d->loop, &listener) : NULL;
    if (d->listener == NULL || fp_observer_init(&d->observer, d->fresh, c->slow_log_ms) == -1)
        return false;
    set_reports(d);
    fp_wakeups_count(&d->wakeups, d->loop);
    if (d->args.supervised)
        fp_supervisor_watch(d->loop);
    join_fleet(d, d->conf);
    watch_monitor(d);
    watch_signals(d);
    return enter_sandbox(d);
}

static void stop(struct daemon *d)
{
    fp_service_say_stopping();
    fp_listener_destroy(&d->listener);
    if (d->fleet != NULL)
        leave_fleet(d);
    fp_worker_pool_destroy(&d->helpers);
    fp_dispatch_destroy(&d->dispatch);
    fp_observer_clear(&d->observer);
    fp_coherence_destroy(&d->fresh);
    fp_cache_destroy(&d->cache);
    fp_lease_table_destroy(&d->slots);
    fp_watch_close(&d->watch);
    fp_mounts_destroy(&d->mounts);
    remove_pid_file(d);
    fp_monitor_stop(&d->monitor);
    fp_close(&d->stats.statm);
    fp_sandbox_destroy(&d->own_sandbox);
    fp_sandbox_destroy(&d->helpers_sandbox);
    fp_conf_destroy(&d->conf);
}

int main(int argc, char **argv)
{
    static struct daemon d = { .passed_socket = -1, .ready_pipe = -1, .pid_file = -1,
                               .watch = { -1, -1, NULL }, .monitor = { -1 }, .stats = { .statm = -1 } };
    bool ok;

    parse_arguments(&d.args, argc, argv);
    /* Whatever else we were started with is not for us, nor for our helpers. */
    if (!fp_service_take_socket(&d.passed_socket))
        return 1;
    d.conf = fp_conf_load(d.args.file, d.args.overrides, d.args.n_overrides);
    if (d.conf == NULL)
        return 1;
    if (d.args.check) {
        printf("flashpached: configuration %s is good\n", d.args.file);
        fp_conf_destroy(&d.conf);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    fp_log_echo(true);
    ok = prepare(&d) && start(&d);
    if (ok) {
        say_ready(&d);
        ev_run(d.loop, 0);
        ok = !d.failed;
    }
    stop(&d);
    return ok ? 0 : 1;
}
