/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's view of a lease table, with a set of events in which nothing is ready.
 */
#ifndef FP_LEASE_KIT_H
#define FP_LEASE_KIT_H

#include <sys/epoll.h>

#include "shared/lease_table.h"
#include "unit.h"

/* NULL with errno. */
static inline struct fp_lease_view *unit_view_of(int generations, int referenced)
{
    int events = epoll_create1(EPOLL_CLOEXEC), alive = dup(events), error;
    struct fp_lease_view *view;

    ck_assert_int_ne(events, -1);
    view = fp_lease_view_create(generations, referenced, events, alive);
    error = errno;
    close(events);
    close(alive);
    errno = error;
    return view;
}

static inline struct fp_lease_view *unit_view(const struct fp_lease_table *t)
{
    struct fp_lease_view *view =
        unit_view_of(fp_lease_table_generations_fd(t), fp_lease_table_referenced_fd(t));

    ck_assert_ptr_nonnull(view);
    return view;
}

#endif
