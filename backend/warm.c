/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "warm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/turn.h"
#include "conf/conf.h"
#include "lookup/dispatch.h"
#include "lookup/warm_list.h"
#include "wire/packet.h"

#define SLICE_S 0.02 /* from one slice of a list to the next */
#define LAST_MS 5000 /* the daemon's end waits for so long for a list to be written */

/* ---- at the start ---- */

/* Returns NULL if the file may be used, else why not. */
static const char *refusal(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "it is not a regular file";
    if (st->st_uid != geteuid())
        return "it belongs to another user than the daemon's";
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "others than the daemon's user may write to it";
    return st->st_size <= (off_t)FP_WARM_BYTES ? NULL : "it is too large";
}

static void ignore(const char *file, unsigned line, const char *why)
{
    fp_log(
        FP_LOG_WARNING, 13,
        "ignoring the list of paths %s: %s (line %u); the cache begins empty, and the daemon writes another list "
        "in its place",
        file, why, line);
}

static void take_text(const struct fp_warm *w, char *text, size_t len)
{
    struct fp_warm_reader r = { .text = text, .len = len };
    const char *wrong = fp_warm_check(&r);

    if (wrong == NULL) {
        fp_dispatch_restore(w->dispatch, text, len);
        return;
    }
    ignore(w->file, r.line, wrong);
    free(text);
}

static void read_list(const struct fp_warm *w)
{
    const char *file = w->file, *why;
    struct stat st;
    size_t len;
    char *text;
    int fd;

    fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd == -1 && errno == ENOENT)
        return; /* the first start */
    if (fd == -1 || fstat(fd, &st) == -1) {
        fp_log(FP_LOG_WARNING, 13, "cannot read the list of paths %s: %m; the cache begins empty", file);
        fp_close(&fd);
        return;
    }
    why = refusal(&st);
    text = why == NULL ? fp_text_read(fd, FP_WARM_BYTES, &len) : NULL;
    if (why != NULL)
        ignore(file, 0, why);
    else if (text == NULL)
        fp_log(FP_LOG_WARNING, 13, "cannot read the list of paths %s: %m; the cache begins empty", file);
    else
        take_text(w, text, len);
    fp_close(&fd);
}

/* ---- lists ---- */

static bool is_wanted(const struct fp_warm *w)
{
    return w->file != NULL && w->file[0] != '\0';
}

static void drop_list(struct fp_warm *w)
{
    fp_warm_drop(&w->text);
    w->at = (struct fp_cache_cursor){ .bucket = 0 };
}

static void say_failed(struct fp_warm *w, int why)
{
    errno = why;
    if (!w->failed && why == EPIPE)
        fp_log(FP_LOG_WARNING, 13,
               "the process that writes the list of paths %s (fp-lister) has ended: the list stays as it is; "
               "restart the daemon",
               w->file);
    else if (!w->failed)
        fp_log(FP_LOG_WARNING, 13,
               "cannot write the list of paths %s: %m; the former one stays: let its directory belong to the "
               "daemon's user, or leave warm_file out",
               w->file);
    w->failed = true;
}

/* ---- from time to time ---- */

static void rest(struct fp_warm *w)
{
    drop_list(w);
    w->work = FP_WARM_WAITS;
    w->timer.repeat = w->every_s;
    ev_timer_again(w->loop, &w->timer);
}

static void on_told(struct ev_loop *loop, ev_io *io, int events)
{
    struct fp_warm *w = io->data;
    const int why = fp_lister_hear(&w->lister, 0) == 0 ? 0 : errno;

    fp_turn_work(FP_WORK_TIMER);
    (void)events;
    if (why == 0) {
        w->written = w->text.hash;
        w->failed = false;
    } else {
        say_failed(w, why);
    }
    rest(w);
    if (why == EPIPE) {
        ev_io_stop(loop, io);
        ev_timer_stop(loop, &w->timer);
    }
}

/* The process does not write again what it has written. */
static void write_or_rest(struct fp_warm *w)
{
    if (w->text.paths == 0 || !fp_warm_end(&w->text) || w->text.hash == w->written) {
        rest(w);
    } else if (fp_lister_write(&w->lister, fileno(w->text.file)) == 0) {
        w->work = FP_WARM_WRITES;
        ev_timer_stop(w->loop, &w->timer);
    } else {
        say_failed(w, errno);
        rest(w);
    }
}

static void begin_list(struct fp_warm *w)
{
    if (!fp_dispatch_is_restored(w->dispatch))
        return;
    w->work = FP_WARM_LISTS;
    w->timer.repeat = SLICE_S;
    ev_timer_again(w->loop, &w->timer);
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_warm *w = timer->data;

    fp_turn_work(FP_WORK_TIMER);
    (void)loop;
    (void)events;
    if (w->work == FP_WARM_WAITS)
        begin_list(w);
    else if (!fp_dispatch_list_some(w->dispatch, &w->at, &w->text))
        write_or_rest(w);
}

bool fp_warm_start(struct fp_warm *w, const struct fp_conf *c, bool lent_log)
{
    w->file = c->warm_file;
    w->every_s = c->warm_file_s;
    if (!is_wanted(w) || fp_lister_start(&w->lister, w->file, lent_log) == 0)
        return true;
    fp_log(FP_LOG_ERROR, 71, "cannot start the process that writes warm_file: %m");
    return false;
}

static void begin(struct fp_warm *w)
{
    ev_init(&w->timer, on_time);
    ev_io_init(&w->told, on_told, w->lister.sock, EV_READ);
    w->timer.data = w->told.data = w;
    if (w->every_s == 0)
        return;
    ev_io_start(w->loop, &w->told);
    rest(w);
}

void fp_warm_read(struct fp_warm *w, struct ev_loop *loop, struct fp_dispatch *dispatch)
{
    w->loop = loop;
    w->dispatch = dispatch;
    if (!is_wanted(w))
        return;
    read_list(w);
    begin(w);
}

/* ---- at the end ---- */

/* Waits for the disk, but not for one that does not answer. */
static bool write_last(struct fp_warm *w)
{
    if (w->work == FP_WARM_WRITES)
        fp_lister_hear(&w->lister, LAST_MS);
    drop_list(w);
    while (fp_dispatch_list_some(w->dispatch, &w->at, &w->text))
        ;
    if (w->text.paths == 0)
        return true;
    return fp_warm_end(&w->text) && fp_lister_write(&w->lister, fileno(w->text.file)) == 0
           && fp_lister_hear(&w->lister, LAST_MS) == 0;
}

void fp_warm_write(struct fp_warm *w)
{
    if (!is_wanted(w) || !fp_dispatch_is_restored(w->dispatch))
        return;
    w->failed = false;
    if (!write_last(w))
        say_failed(w, errno);
    else if (w->text.paths > 0)
        fp_log(FP_LOG_INFO, 13, "wrote %zu paths in use to %s", w->text.paths, w->file);
}

void fp_warm_stop(struct fp_warm *w)
{
    if (!is_wanted(w))
        return;
    drop_list(w);
    fp_lister_stop(&w->lister);
}
