/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/shared.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "question/held.h"
#include "question/open_files.h"
#include "question/open_path.h"
#include "shared/client.h"
#include "shared/contents.h"
#include "shared/known.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/packet.h"

static bool in_use;

void fp_shared_init(bool use)
{
    in_use = use;
}

bool fp_shared_may_predate(struct fp_client *client, uint64_t then_ms)
{
    const uint64_t now = fp_now_ms();
    struct fp_lease_view *view;
    uint64_t ms;

    if (client == NULL || fp_client_view(client, &view) != FP_OK || view == NULL)
        return true;
    /* There may be another daemon by now, whose answers live for longer. */
    ms = fp_lease_view_is_current(view, now) ? fp_lease_view_unreported_ms(view) : 0;
    fp_lease_view_release(&view);
    return ms == 0 || now - then_ms <= ms;
}

/* ---- files ---- */

static bool is_time(const struct fp_time *t, const struct timespec *ts)
{
    return t->sec == ts->tv_sec && t->nsec == (uint32_t)ts->tv_nsec;
}

static bool is_file(int fd, const struct fp_meta *m)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == m->dev && st.st_ino == m->ino
           && (uint64_t)st.st_size == m->size && is_time(&m->mtime, &st.st_mtim)
           && is_time(&m->ctime, &st.st_ctim);
}

/* Opens the file by its name. False: it opened nothing, or another file. */
static bool open_by_name(const struct fp_held *h)
{
    struct fp_answer *a = h->answer;
    char name[FP_MAX_PATH + 1];

    memcpy(name, h->path, h->path_len);
    name[h->path_len] = '\0';
    a->fd = fp_open_from_memory(name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    /* The name may have led elsewhere for a moment. */
    if (a->fd != -1 && is_file(a->fd, fp_step_target(fp_held_last(h))) && fp_held_holds(h))
        return true;
    fp_close(&a->fd);
    return false;
}

/* A file whose content is in memory needs no descriptor. The daemon opens a file that other
 * machines, or a server in user space, may change: once it is to be sent. */
static bool have_file(struct fp_held *h)
{
    const struct fp_answer *a = h->answer;

    if (a->content)
        return fp_contents_view_has(fp_lease_view_contents(h->view), a->content_at);
    if (!a->readable || !a->local)
        return true;
    h->file = fp_open_files_find(h->view, fp_held_last(h));
    return h->file != NULL || (open_by_name(h) && fp_held_take_file(h));
}

fp_status fp_shared_view(struct fp_client *client, struct fp_lease_view **view_r)
{
    fp_status st;

    *view_r = NULL;
    if (!in_use)
        return FP_UNKNOWN;
    st = fp_client_view(client, view_r);
    return st == FP_OK && *view_r == NULL ? FP_UNKNOWN : st;
}

fp_status fp_shared_find(struct fp_client *client, bool fresh, struct fp_held *h)
{
    fp_status st;

    fp_answer_init(h->answer, FP_UNKNOWN);
    st = fp_shared_view(client, &h->view);
    if (st != FP_OK)
        return st;
    st = fp_known_find(h->view, h->path, h->path_len, fresh, h->answer);
    if (st == FP_OK) {
        fp_known_use(h->view, h->answer);
        st = have_file(h) ? FP_OK : FP_ASK;
    }
    h->found = FP_COUNT_LEASE;
    if (st != FP_OK)
        fp_lease_view_release(&h->view);
    return st;
}
