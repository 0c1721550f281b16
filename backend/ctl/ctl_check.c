/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl check: is everything in place, from the socket to httpd's children?
 */
#include "config.h"
#include "ctl/ctl.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/ctl_report.h"

#define MODULE "/mod_flashpache.so"
#define FEW_WATCHES 65536u      /* fewer allowed watches are worth a word */

struct check {
    const struct ctl *ctl;
    char *about, *stats, *mounts;
    unsigned bad;
};

static void say(const char *verdict, const char *format, va_list ap)
{
    printf("%-5s ", verdict);
    vprintf(format, ap);
    putchar('\n');
}

static void good(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void good(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say("ok", format, ap);
    va_end(ap);
}

/* Worth knowing, and no reason to fail. */
static void doubtful(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void doubtful(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say("note", format, ap);
    va_end(ap);
}

static void bad(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void bad(struct check *c, const char *format, ...)
{
    va_list ap;

    c->bad++;
    va_start(ap, format);
    say("BAD", format, ap);
    va_end(ap);
}

/* ---- the socket ---- */

static void check_socket(struct check *c)
{
    const char *path = c->ctl->socket;
    char copy[FP_MAX_PATH + 1];
    const char *dir;
    struct stat st;

    snprintf(copy, sizeof(copy), "%s", path);
    dir = dirname(copy);
    if (stat(dir, &st) == -1)
        bad(c, "the socket's directory %s: %s", dir, strerror(errno));
    else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        bad(c, "the socket's directory %s may be written to by others: chmod go-w %s", dir, dir);
    else
        good("the socket's directory %s belongs to uid %u, who alone writes there", dir,
             (unsigned)st.st_uid);
    if (stat(path, &st) == -1)
        bad(c, "the socket %s: %s", path, strerror(errno));
    else if (!S_ISSOCK(st.st_mode))
        bad(c, "%s is no socket", path);
    else
        good("the socket %s is there", path);
}

/* ---- the daemon ---- */

static void check_version(struct check *c)
{
    char version[64] = "?";

    ctl_word(c->about, "version", version, sizeof(version));
    if (strcmp(version, PACKAGE_VERSION) == 0)
        good("flashpached %s answers, process %" PRIu64 ", user %" PRIu64, version,
             ctl_value(c->about, "pid"), ctl_value(c->about, "uid"));
    else
        bad(c, "flashpached is %s and this is %s: restart the daemon after an upgrade", version,
            PACKAGE_VERSION);
}

static void check_seccomp(struct check *c)
{
    char seccomp[8] = "?";

    ctl_word(c->about, "seccomp", seccomp, sizeof(seccomp));
    if (strcmp(seccomp, "on") == 0)
        good("the daemon and its workers have filters of system calls");
    else
        doubtful("no filters of system calls: seccomp = false, or see FP0070 in the log");
}

static void check_workers(struct check *c)
{
    const uint64_t alive = ctl_value(c->stats, "workers");
    const uint64_t wanted = ctl_value(c->about, "workers_wanted");

    if (alive < wanted)
        bad(c, "%" PRIu64 " of %" PRIu64 " workers live: see FP0022 and FP0023 in the log", alive,
            wanted);
    else
        good("all %" PRIu64 " workers live", alive);
}

static void check_limits(struct check *c)
{
    const uint64_t descriptors = ctl_value(c->about, "descriptors");
    const uint64_t connections = ctl_value(c->about, "max_connections");
    const uint64_t wanted = ctl_value(c->about, "connections_wanted");

    if (connections < wanted)
        doubtful("%" PRIu64 " descriptors allow %" PRIu64 " connections only, of the %" PRIu64
                 " of max_connections: raise LimitNOFILE= or lower max_connections", descriptors,
                 connections, wanted);
    else
        good("%" PRIu64 " descriptors", descriptors);
    if (ctl_value(c->stats, "refused") > 0)
        bad(c, "%" PRIu64 " connections were refused: FP0010 in the log tells of those of another "
            "identity; for the others raise max_connections", ctl_value(c->stats, "refused"));
    if (ctl_value(c->stats, "displaced") > 0)
        doubtful("%" PRIu64 " idle connections were closed for new ones: raise max_connections",
                 ctl_value(c->stats, "displaced"));
}

static void check_watches(void)
{
    FILE *f = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
    unsigned long most = 0;

    if (f == NULL || fscanf(f, "%lu", &most) != 1)
        doubtful("cannot tell how many inotify watches are allowed");
    else if (most < FEW_WATCHES)
        doubtful("%lu inotify watches are allowed: raise fs.inotify.max_user_watches for large "
                 "sites that fanotify does not watch", most);
    else
        good("%lu inotify watches are allowed", most);
    if (f != NULL)
        fclose(f);
}

static void check_mounts(struct check *c)
{
    const unsigned before = c->bad;
    char *next = c->mounts, *line;
    struct ctl_mount m;

    while ((line = ctl_next_line(&next)) != NULL) {
        if (ctl_parse_mount(line, &m) && m.out)
            bad(c, "the file system at %s does not answer: see to its server", m.point);
    }
    if (c->bad == before)
        good("no file system is out of service");
}

/* ---- httpd ---- */

static bool has_module(const char *pid)
{
    char path[64], line[FP_MAX_PATH + 128];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
    f = fopen(path, "re");
    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
        found = strstr(line, MODULE) != NULL;
    if (f != NULL)
        fclose(f);
    return found;
}

/* Root's is httpd's parent, no child. */
static bool is_child(const char *pid, uint64_t uid, bool *ours_r)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%.20s", pid);
    if (stat(path, &st) == -1)
        return false;
    *ours_r = st.st_uid == uid;
    return *ours_r || st.st_uid != 0;
}

static void count_children(uint64_t uid, unsigned *ours_r, unsigned *foreign_r)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    bool ours;

    *ours_r = *foreign_r = 0;
    while (proc != NULL && (e = readdir(proc)) != NULL) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !has_module(e->d_name)
            || !is_child(e->d_name, uid, &ours))
            continue;
        *ours_r += ours;
        *foreign_r += !ours;
    }
    if (proc != NULL)
        closedir(proc);
}

static void check_httpd(struct check *c)
{
    const uint64_t uid = ctl_value(c->about, "uid");
    unsigned ours, foreign;

    count_children(uid, &ours, &foreign);
    if (ours > 0)
        good("%u processes of that user have mod_flashpache loaded", ours);
    else if (geteuid() != 0 && geteuid() != uid)
        doubtful("cannot see whether httpd has loaded mod_flashpache: run this as root");
    else
        bad(c, "no process of user %" PRIu64 " has mod_flashpache loaded: LoadModule "
            "flashpache_module, and does httpd run as that user?", uid);
    if (foreign > 0)
        bad(c, "%u processes of other users have it loaded, and are refused: user and group of "
            "flashpached.conf must be httpd's User and Group", foreign);
    if (ctl_value(c->stats, "connections") > 1)
        good("%" PRIu64 " connections", ctl_value(c->stats, "connections") - 1);
    else
        doubtful("nobody is connected: no request has come yet, or FlashpacheEngine is Off, or "
                 "FlashpacheSocket is another socket");
}

/* ---- the command ---- */

static enum ctl_exit check_daemon(struct check *c)
{
    const struct ctl_part parts[] = {
        { FP_REPORT_ABOUT, &c->about }, { FP_REPORT_STATS, &c->stats },
        { FP_REPORT_MOUNTS, &c->mounts } };
    enum ctl_exit rc = ctl_read_reports(c->ctl, parts, sizeof(parts) / sizeof(parts[0]));

    if (rc != CTL_DONE)
        return rc;
    check_version(c);
    check_workers(c);
    check_seccomp(c);
    check_limits(c);
    check_watches();
    check_mounts(c);
    check_httpd(c);
    return c->bad > 0 ? CTL_FAILED : CTL_DONE;
}

enum ctl_exit ctl_check(const struct ctl *ctl, int argc, char **argv)
{
    struct check c = { .ctl = ctl };
    enum ctl_exit rc;

    (void)argv;
    if (argc > 1)
        return ctl_misused("check takes nothing more");
    if (ctl->conf != NULL)
        good("the configuration %s has no mistakes", ctl->conf);
    check_socket(&c);
    rc = check_daemon(&c);
    free(c.about);
    free(c.stats);
    free(c.mounts);
    return rc;
}
