/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl list: all daemons of this machine that can be found, by their sockets.  A daemon in another
 * network namespace is found where its socket has a usual path.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <glob.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "conf/conf.h"
#include "ctl/ctl_json.h"
#include "ctl/ctl_out.h"
#include "ctl/ctl_paint.h"
#include "ctl/ctl_report.h"
#include "shared/client.h"

#define MOST      64
#define OUR_NAME  "flashpache"
#define LISTENS   0x10000u /* __SO_ACCEPTCON among the flags of /proc/net/unix */
#define SEQPACKET 5u

struct sockets {
    char *paths[MOST];
    unsigned n;
};

struct daemon {
    const char *socket;
    enum ctl_state state;
    char problem[512]; /* "": none */
    char version[64];  /* "": it did not answer */
    uint64_t pid, uid, uptime_s;
};

/* ---- where there is a socket ---- */

/* True if both paths name one socket: -s may have a relative path, or one through a link. */
static bool is_same(const char *a, const char *b)
{
    struct stat x, y;

    return strcmp(a, b) == 0
           || (lstat(a, &x) == 0 && lstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static void add(struct sockets *s, const char *path)
{
    for (unsigned i = 0; i < s->n; i++) {
        if (is_same(s->paths[i], path))
            return;
    }
    if (s->n < MOST && (s->paths[s->n] = strdup(path)) != NULL)
        s->n++;
}

static void add_there(struct sockets *s, const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        add(s, path);
}

static void add_matching(struct sockets *s, const char *pattern)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_there(s, found.gl_pathv[i]);
    globfree(&found);
}

static void add_configured(struct sockets *s, const char *file)
{
    bool given;
    struct fp_conf *conf = access(file, R_OK) == 0 ? fp_conf_read(file, &given) : NULL;

    if (conf != NULL && given)
        add_there(s, conf->socket);
    fp_conf_destroy(&conf);
}

/* Adds the sockets at which somebody listens, wherever they
 * are, if their name says that they may be a daemon's. */
static void add_listening(struct sockets *s)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char line[512];
    unsigned flags, type;
    int path;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        path = 0;
        if (sscanf(line, "%*s %*s %*s %x %x %*s %*s %n", &flags, &type, &path) == 2 && path > 0
            && (flags & LISTENS) != 0 && type == SEQPACKET && line[path] == '/'
            && strstr(line + path, OUR_NAME) != NULL)
            add_there(s, line + path);
    }
    if (f != NULL)
        fclose(f);
}

static void find_sockets(const struct ctl *ctl, struct sockets *s)
{
    if (ctl->named)
        add(s, ctl->socket);
    for (const char *const *path = ctl_usual_sockets; *path != NULL; path++)
        add_there(s, *path);
    add_configured(s, FP_DEFAULT_CONF);
    add_matching(s, "/run/" OUR_NAME "*/*.sock");
    add_matching(s, "/run/*/" OUR_NAME "/*.sock");
    add_listening(s);
}

/* ---- who answers there ---- */

static void worsen(struct daemon *d, enum ctl_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void worsen(struct daemon *d, enum ctl_state state, const char *format, ...)
{
    const size_t len = strlen(d->problem);
    va_list ap;

    if (state > d->state)
        d->state = state;
    if (len > 0)
        snprintf(d->problem + len, sizeof(d->problem) - len, "; ");
    va_start(ap, format);
    vsnprintf(d->problem + strlen(d->problem), sizeof(d->problem) - strlen(d->problem), format, ap);
    va_end(ap);
}

static const char *no_answer(const struct ctl *at, fp_status why)
{
    switch (why) {
    case FP_CLOSED: return ctl_no_connection_text(at);
    case FP_FOREIGN: return "the process that listens there belongs to another user: run this as the "
                            "daemon's user or as root";
    case FP_TIMEOUT: return "it did not answer in time: it hangs or is stopped";
    default: return fp_status_text(why);
    }
}

/* Reads the first part of a report, terminated; a short one is whole then. */
static fp_status ask(const struct ctl *at, enum fp_report what, char *text)
{
    static uint8_t buf[FP_MAX_FRAME];
    const struct fp_control question = { .op = FP_CONTROL_REPORT, .what = what };
    struct fp_reply reply;
    fp_status st = fp_client_control(at->client, &question, &reply, buf);

    if (st == FP_OK)
        st = reply.status;
    if (st != FP_OK)
        return st;
    memcpy(text, reply.text, reply.text_len);
    text[reply.text_len] = '\0';
    return FP_OK;
}

static void on_found(void *ctx, enum fp_gravity gravity, const char *why, const char *advice)
{
    (void)advice;
    if (gravity == FP_FAULT)
        worsen(ctx, CTL_WARNING, "%s", why);
}

static void look(const struct ctl *ctl, struct daemon *d)
{
    static char about[FP_MAX_REPORT + 1], stats[FP_MAX_REPORT + 1];
    struct ctl at = { .socket = d->socket, .client = ctl_client(d->socket, ctl->timeout_ms) };
    fp_status st = at.client != NULL ? ask(&at, FP_REPORT_ABOUT, about) : FP_NOMEM;

    if (st == FP_OK)
        st = ask(&at, FP_REPORT_STATS, stats);
    if (st == FP_OK) {
        ctl_word(about, "version", d->version, sizeof(d->version));
        d->pid = ctl_value(about, "pid");
        d->uid = ctl_value(about, "uid");
        d->uptime_s = ctl_value(about, "uptime_s");
        ctl_judge(&at, about, stats, on_found, d);
    } else {
        worsen(d, CTL_ERROR, "%s", no_answer(&at, st));
    }
    if (at.client != NULL)
        fp_client_destroy(&at.client);
}

/* ---- the list ---- */

static const char *state_text(enum ctl_state state)
{
    static const char *const words[] = { "ok", "warning", "error" };

    return words[state];
}

static void print(const struct daemon *d)
{
    char pid[24] = "-";

    if (d->version[0] != '\0')
        snprintf(pid, sizeof(pid), "%" PRIu64, d->pid);
    ctl_paint(d->state);
    printf("%-7s", state_text(d->state));
    ctl_plain();
    printf(" %9s  %-9s %s%s%s\n", pid, d->version[0] != '\0' ? d->version : "-",
           ctl_name(d->socket, strlen(d->socket)), d->problem[0] != '\0' ? ": " : "", d->problem);
}

static void put(struct ctl_json *j, const struct daemon *d)
{
    ctl_json_begin(j, NULL, '{');
    ctl_json_path(j, "socket", d->socket, strlen(d->socket));
    ctl_json_text(j, "state", state_text(d->state));
    if (d->version[0] != '\0') {
        ctl_json_text(j, "version", d->version);
        ctl_json_number(j, "pid", d->pid);
        ctl_json_number(j, "uid", d->uid);
        ctl_json_number(j, "uptime_s", d->uptime_s);
    }
    if (d->problem[0] != '\0')
        ctl_json_text(j, "problem", d->problem);
    ctl_json_end(j, '}');
}

/* Lists the daemons; returns how many answered. */
static unsigned list(const struct ctl *ctl, const struct sockets *s)
{
    struct ctl_json j = { .to = stdout };
    unsigned answered = 0;

    if (ctl->json) {
        ctl_json_begin(&j, NULL, '{');
        ctl_json_begin(&j, "daemons", '[');
    } else if (s->n > 0) {
        printf("%-7s %9s  %-9s %s\n", "state", "process", "version", "socket");
    }
    for (unsigned i = 0; i < s->n; i++) {
        struct daemon d = { .socket = s->paths[i] };

        look(ctl, &d);
        answered += d.version[0] != '\0';
        if (ctl->json)
            put(&j, &d);
        else
            print(&d);
    }
    if (ctl->json) {
        ctl_json_end(&j, ']');
        ctl_json_finish(&j, '}');
    }
    return answered;
}

enum ctl_exit ctl_list(const struct ctl *ctl, int argc, char **argv)
{
    struct sockets s = { .n = 0 };
    unsigned answered;

    (void)argv;
    if (argc > 1)
        return ctl_misused("list takes nothing more");
    find_sockets(ctl, &s);
    answered = list(ctl, &s);
    if (s.n == 0)
        ctl_complain("no daemon's socket was found: start flashpached, or name its socket with -s");
    while (s.n > 0)
        free(s.paths[--s.n]);
    return answered > 0 ? CTL_DONE : CTL_NO_DAEMON;
}
