/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define LINE_SIZE 4096  /* more than FP0006 has */
#define BURST     5     /* messages of one id and level ... */
#define WINDOW_MS 10000 /* ... in this time; errors of start-up are fewer */
#define MAX_ID    256

static const char *const level_names[] = { "error", "warning", "info", "debug" };
static const int priorities[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

static enum fp_log_level threshold = FP_LOG_INFO;
static int file = STDERR_FILENO;
static bool to_syslog, echo;
static bool made; /* the file, by the last fp_log_open() */

static struct window {
    uint64_t since_ms;
    unsigned seen;
} windows[MAX_ID][FP_LOG_DEBUG]; /* by level too: a frequent message must not hide an error of the same id */

int fp_log_level_parse(const char *name)
{
    for (int i = 0; i <= FP_LOG_DEBUG; i++) {
        if (strcmp(name, level_names[i]) == 0)
            return i;
    }
    return -1;
}

const char *fp_log_level_text(void)
{
    return level_names[threshold];
}

/* A FIFO must hold up neither the start nor, when it is full, a message. */
static int open_file(const char *path, int more)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | more, 0640);
}

int fp_log_open_file(const char *path)
{
    return open_file(path, 0);
}

void fp_log_take_file(int fd, enum fp_log_level level)
{
    if (file != STDERR_FILENO)
        close(file);
    file = fd;
    to_syslog = false;
    threshold = level;
}

int fp_log_open(const char *target, enum fp_log_level level)
{
    int fd = STDERR_FILENO;
    bool is_new = false;

    if (strcmp(target, "syslog") == 0) {
        fp_log_take_file(STDERR_FILENO, level);
        openlog("flashpached", LOG_PID, LOG_DAEMON);
        to_syslog = true;
        return 0;
    }
    if (strcmp(target, "stderr") != 0) {
        fd = open_file(target, O_EXCL);
        is_new = fd != -1;
        if (fd == -1 && errno == EEXIST)
            fd = open_file(target, 0);
    }
    if (fd == -1)
        return -1;
    made = is_new;
    fp_log_take_file(fd, level);
    return 0;
}

int fp_log_chown(uid_t uid, gid_t gid)
{
    return to_syslog || file == STDERR_FILENO || !made ? 0 : fchown(file, uid, gid);
}

void fp_log_echo(bool on)
{
    echo = on;
}

static void emit(enum fp_log_level level, int id, const char *text)
{
    char stamp[32], line[LINE_SIZE + 96];
    struct tm tm;
    time_t now = time(NULL);
    int n;

    if (echo && level == FP_LOG_ERROR && (to_syslog || file != STDERR_FILENO))
        dprintf(STDERR_FILENO, "flashpached: FP%04d %s\n", id, text);
    if (to_syslog) {
        syslog(priorities[level], "FP%04d %s: %s", id, level_names[level], text);
        return;
    }
    localtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S%z", &tm);
    n = snprintf(line, sizeof(line), "%s flashpached[%d] FP%04d %s: %s\n", stamp, (int)getpid(), id,
                 level_names[level], text);
    /* A log that cannot be written must not end the service. */
    if (n > 0 && write(file, line, (size_t)n) == -1)
        return;
}

/* Counts the message; false if it is above the limit.  *left_out_r: how many were left out in the window
 * before. */
static bool admit(enum fp_log_level level, int id, unsigned *left_out_r)
{
    uint64_t now = fp_now_ms(); /* the wall clock may be set back by years */
    struct window *w = &windows[(unsigned)id % MAX_ID][level];

    *left_out_r = 0;
    if (now - w->since_ms >= WINDOW_MS) {
        if (w->seen > BURST)
            *left_out_r = w->seen - BURST;
        w->since_ms = now;
        w->seen = 0;
    }
    return w->seen++ < BURST;
}

void fp_log(enum fp_log_level level, int id, const char *format, ...)
{
    int saved = errno;
    char text[LINE_SIZE];
    unsigned left_out;
    va_list ap;

    if (level > threshold || (level != FP_LOG_DEBUG && !admit(level, id, &left_out)))
        return;
    if (level != FP_LOG_DEBUG && left_out > 0) {
        snprintf(text, sizeof(text), "%u messages like the next one were left out", left_out);
        emit(level, id, text);
    }
    errno = saved; /* for %m */
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    /* Strangers choose paths: one message stays one line of printable bytes. */
    fp_text_disarm(text);
    emit(level, id, text);
    errno = saved;
}
