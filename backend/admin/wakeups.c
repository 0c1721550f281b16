/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/wakeups.h"

static void on_wakeup(struct ev_loop *loop, ev_check *check, int events)
{
    struct fp_wakeups *w = check->data;

    (void)events;
    w->wakeups++;
    w->ready += ev_pending_count(loop);
}

void fp_wakeups_count(struct fp_wakeups *w, struct ev_loop *loop)
{
    ev_check_init(&w->check, on_wakeup);
    /* Before any other, while all that is ready is still to be done. */
    ev_set_priority(&w->check, EV_MAXPRI);
    w->check.data = w;
    ev_check_start(loop, &w->check);
}
