/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl check: checks everything from the socket to httpd's children.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "ctl/ctl_json.h"
#include "ctl/ctl_php.h"
#include "ctl/ctl_report.h"
#include "shared/client.h"
#include "shared/judge.h"
#include "wire/packet.h"
#include "wire/socket_path.h"

#define MODULE      "/mod_flashpache.so"
#define PROGRAM     "flashpached\n" /* as /proc names it */
#define FEW_WATCHES 65536u          /* a lower limit gets a note */
#define START \
    "start flashpached: httpd does with FlashpacheDaemon auto, systemd with systemctl start flashpached"

struct check {
    const struct ctl *ctl;
    struct ctl_reports reports;
    struct ctl_json json;
    unsigned bad;
};

/* NOTE: no reason to fail. */
enum verdict { GOOD = FP_WELL, NOTE = FP_NOTE, BAD = FP_FAULT };

static void say(struct check *c, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct check *c, enum verdict verdict, const char *format, ...)
{
    static const char *const words[] = { "ok", "note", "BAD" };
    char text[2 * FP_MAX_PATH];
    va_list ap;

    c->bad += verdict == BAD;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (!c->ctl->json) {
        fp_text_disarm(text);
        printf("%-5s %s\n", words[verdict], text);
        return;
    }
    ctl_json_begin(&c->json, NULL, '{');
    ctl_json_text(&c->json, "verdict", words[verdict]);
    ctl_json_text(&c->json, "text", text);
    ctl_json_end(&c->json, '}');
}

/* ---- the socket ---- */

/* Another daemon's socket is easily overlooked, beside one that a daemon left behind. */
static void check_others(struct check *c)
{
    for (const char *const *path = ctl_usual_sockets; *path != NULL; path++) {
        if (strcmp(*path, c->ctl->socket) != 0 && fp_socket_path_is_held(*path, NULL))
            say(c, NOTE, "another daemon listens at %s: flashpachectl -s %s check", *path, *path);
    }
}

static void check_socket(struct check *c)
{
    const char *path = c->ctl->socket;
    char copy[FP_MAX_PATH + 1];
    const char *dir;
    struct stat st;

    snprintf(copy, sizeof(copy), "%s", path);
    dir = dirname(copy);
    if (stat(dir, &st) == -1)
        say(c, BAD, "the socket's directory %s: %s; " START, dir, strerror(errno));
    else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        say(c, BAD, "the socket's directory %s may be written to by others: chmod go-w %s", dir, dir);
    else
        say(c, GOOD, "the socket's directory %s belongs to uid %u, and nobody else may write there", dir,
            (unsigned)st.st_uid);
    if (stat(path, &st) == -1 && errno == EACCES)
        say(c, BAD, "the socket %s: permission denied: run this as root or as the daemon's user", path);
    else if (stat(path, &st) == -1)
        say(c, BAD, "the socket %s: %s; " START, path, strerror(errno));
    else if (!S_ISSOCK(st.st_mode))
        say(c, BAD, "%s is not a socket: remove it, and " START, path);
    else if (!fp_socket_path_is_held(path, NULL) && errno == ECONNREFUSED)
        say(c, BAD, "nobody listens at the socket %s, which a daemon left behind: " START, path);
    else
        say(c, GOOD, "the socket %s is there", path);
}

/* ---- the daemon ---- */

/* The length of the first directory's path above the socket that this user cannot pass; 0 if there is none. */
static int find_closed(const char *socket, uid_t uid, gid_t gid)
{
    const pid_t pid = fork();
    const struct passwd *user;
    int status;

    if (pid != 0)
        return pid != -1 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    user = getpwuid(uid);
    if (user == NULL || initgroups(user->pw_name, gid) == -1 || setgid(gid) == -1 || setuid(uid) == -1)
        _exit(0);
    for (const char *end = strchr(socket + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
        char dir[FP_MAX_SOCKET_PATH + 1];

        snprintf(dir, sizeof(dir), "%.*s", (int)(end - socket), socket);
        if (access(dir, X_OK) == -1 && errno == EACCES)
            _exit((int)strlen(dir));
    }
    _exit(0);
}

/* Children that are connected go on; others cannot connect. */
static void check_way(struct check *c)
{
    const uid_t uid = (uid_t)ctl_value(c->reports.text[FP_REPORT_ABOUT], "uid");
    const gid_t gid = (gid_t)ctl_value(c->reports.text[FP_REPORT_ABOUT], "gid");
    const int len = geteuid() == 0 ? find_closed(c->ctl->socket, uid, gid) : 0;

    if (len > 0)
        say(c, BAD, "uid %u cannot pass %.*s, so new children of httpd cannot connect: chmod a+x %.*s",
            (unsigned)uid, len, c->ctl->socket, len, c->ctl->socket);
}

static void on_found(void *ctx, enum fp_gravity gravity, const char *why, const char *advice)
{
    say(ctx, (enum verdict)gravity, "%s%s%s", why, advice[0] != '\0' ? ": " : "", advice);
}

static void check_watches(struct check *c)
{
    FILE *f = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
    unsigned long most = 0;

    if (f == NULL || fscanf(f, "%lu", &most) != 1)
        say(c, NOTE, "cannot read how many inotify watches are allowed");
    else if (most < FEW_WATCHES)
        say(c, NOTE, "%lu inotify watches are allowed: raise fs.inotify.max_user_watches for large sites", most);
    else
        say(c, GOOD, "%lu inotify watches are allowed", most);
    if (f != NULL)
        fclose(f);
}

/* ---- httpd ---- */

/* Where a process runs.  Containers differ in one of these, and services of
 * one machine in none.  With PrivateTmp= services have mount namespaces of
 * their own, and yet the same root directory.  st_ino 0: cannot be read. */
struct place {
    struct stat pids, root; /* the pid namespace, the root directory */
};

static void find_place(const char *pid, struct place *p)
{
    char path[64];

    *p = (struct place){ 0 };
    snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
    if (stat(path, &p->pids) == -1)
        p->pids.st_ino = 0;
    snprintf(path, sizeof(path), "/proc/%.20s/root", pid);
    if (stat(path, &p->root) == -1)
        p->root.st_ino = 0;
}

/* Leaves the place unknown for a daemon in another pid namespace, where its number is another process's. */
static void find_daemon(const struct check *c, struct place *p)
{
    char pid[24], path[64], name[sizeof(PROGRAM)] = "";
    FILE *f;

    *p = (struct place){ 0 };
    snprintf(pid, sizeof(pid), "%" PRIu64, ctl_value(c->reports.text[FP_REPORT_ABOUT], "pid"));
    snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    f = fopen(path, "re");
    if (f != NULL && fgets(name, sizeof(name), f) != NULL && strcmp(name, PROGRAM) == 0)
        find_place(pid, p);
    if (f != NULL)
        fclose(f);
}

static bool may_be_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == 0 || b->st_ino == 0 || (a->st_ino == b->st_ino && a->st_dev == b->st_dev);
}

static bool may_be_beside(const char *pid, const struct place *daemon)
{
    struct place p;

    find_place(pid, &p);
    return may_be_same(&p.pids, &daemon->pids) && may_be_same(&p.root, &daemon->root);
}

enum finding { ABSENT, LOADED, HIDDEN }; /* HIDDEN: this process may not see it */

static enum finding find_module(const char *pid)
{
    const int has = ctl_process_has(pid, "maps", '\n', MODULE);

    return has == 1 ? LOADED : has == -1 && (errno == EACCES || errno == EPERM) ? HIDDEN : ABSENT;
}

/* Processes beside the daemon that have the module loaded, by their user. */
struct loaded {
    uint64_t uid; /* of the daemon, */
    struct place daemon;
    unsigned ours, roots, foreign; /* roots: httpd's parents */
    unsigned hidden;               /* of our user, and may have it loaded */
};

static void count_process(void *ctx, const char *pid)
{
    struct loaded *n = ctx;
    const enum finding found = find_module(pid);
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%.20s", pid);
    if (found == ABSENT || !may_be_beside(pid, &n->daemon) || stat(path, &st) == -1)
        return;
    if (found == HIDDEN) {
        n->hidden += st.st_uid == n->uid;
        return;
    }
    n->ours += st.st_uid == n->uid;
    n->roots += st.st_uid == 0 && n->uid != 0;
    n->foreign += st.st_uid != n->uid && st.st_uid != 0;
}

static void check_maker(struct check *c, bool root_started_httpd)
{
    const uid_t maker = fp_client_last(c->ctl->client).maker;

    if (maker == 0)
        say(c, GOOD, "root made the socket: no process of another user can have put it there");
    else if (root_started_httpd)
        say(c, BAD,
            "uid %u made the socket, and httpd's children trust only root: start flashpached by "
            "flashpached.socket, by httpd (FlashpacheDaemon auto) or as root",
            (unsigned)maker);
    else
        say(c, NOTE, "uid %u made the socket: children of an httpd that root starts would not trust it",
            (unsigned)maker);
}

static void check_children(struct check *c, const struct loaded *n, uint64_t clients)
{
    if (n->ours > 0)
        say(c, GOOD, "%u processes of that user have mod_flashpache loaded", n->ours);
    else if (geteuid() != 0)
        say(c, NOTE, "cannot see whether httpd has loaded mod_flashpache: run this as root");
    else if (n->hidden > 0)
        say(c, NOTE,
            "cannot see whether httpd has loaded mod_flashpache: the maps of processes of user %" PRIu64
            " are closed to a root without CAP_SYS_PTRACE: run this with it (docker exec --privileged), or on the host",
            n->uid);
    else if (clients > 0)
        say(c, NOTE,
            "no process here of user %" PRIu64
            " has mod_flashpache loaded: the connected ones run in another container, whose httpd -M names its "
            "modules",
            n->uid);
    else
        say(c, BAD,
            "no process of user %" PRIu64
            " has mod_flashpache loaded: LoadModule flashpache_module, and does httpd run as that user? Of one in "
            "another container only the connections show, after a request",
            n->uid);
}

/* Without a refusal they are another httpd's, which has a daemon of its own or none. */
static void check_foreign(struct check *c, unsigned foreign)
{
    if (foreign == 0)
        return;
    if (ctl_value(c->reports.text[FP_REPORT_STATS], "refused") > 0)
        say(c, BAD,
            "%u processes of other users have it loaded, and are refused: user and group of "
            "flashpached.conf must be httpd's User and Group",
            foreign);
    else
        say(c, NOTE,
            "%u processes of other users have it loaded, and none was refused: if they are to use this daemon, user "
            "and group of flashpached.conf must be their httpd's User and Group",
            foreign);
}

static void check_httpd(struct check *c)
{
    const uint64_t uid = ctl_value(c->reports.text[FP_REPORT_ABOUT], "uid");
    const uint64_t connections = ctl_value(c->reports.text[FP_REPORT_STATS], "connections");
    const uint64_t clients = connections > 1 ? connections - 1 : 0; /* one is this process's own */
    struct loaded n = { .uid = uid };

    find_daemon(c, &n.daemon);
    ctl_each_process(count_process, &n);
    check_maker(c, n.roots > 0);
    check_children(c, &n, clients);
    check_foreign(c, n.foreign);
    if (clients > 0)
        say(c, GOOD, "%" PRIu64 " connection%s", clients, clients == 1 ? "" : "s");
    else
        say(c, NOTE,
            "nobody is connected: no request has come yet, or FlashpacheEngine is Off, or "
            "FlashpacheSocket is another socket");
}

static void check_program(void *check, const struct ctl_php *p)
{
    if (!p->loaded)
        say(check, NOTE,
            "process %" PRIu64 " was started with libflashpache_files.so and does without: it is linked "
            "statically",
            p->pid);
}

/* ---- the command ---- */

static enum ctl_exit check_all(struct check *c)
{
    static const enum fp_report wanted[] = { FP_REPORT_ABOUT, FP_REPORT_STATS, 0 };
    struct fp_judged judged;
    enum ctl_exit rc;

    if (c->ctl->conf != NULL)
        say(c, GOOD,
            "the configuration %s has no mistakes; flashpached -t looks for its user and group as well",
            c->ctl->conf);
    check_socket(c);
    check_others(c);
    rc = ctl_read_reports(c->ctl, wanted, &c->reports);
    if (rc == CTL_DONE) {
        judged = ctl_judged(c->ctl, &c->reports);
        fp_judge(&judged, on_found, c);
        check_way(c);
        check_watches(c);
        check_httpd(c);
        ctl_php_each(check_program, c);
        rc = c->bad > 0 ? CTL_FAILED : CTL_DONE;
    }
    ctl_free_reports(&c->reports);
    return rc;
}

enum ctl_exit ctl_check(const struct ctl *ctl, char **args)
{
    struct check c = { .ctl = ctl, .json = { .to = stdout } };
    enum ctl_exit rc;

    (void)args;
    if (ctl->json) {
        ctl_json_begin(&c.json, NULL, '{');
        ctl_json_begin(&c.json, "checks", '[');
    }
    rc = check_all(&c);
    if (ctl->json) {
        ctl_json_end(&c.json, ']');
        ctl_json_bool(&c.json, "answered", rc != CTL_NO_DAEMON);
        ctl_json_number(&c.json, "bad", c.bad);
        ctl_json_finish(&c.json, '}');
    }
    return rc;
}
