/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helper processes of amped and new-flash: they make the calls that wait for
 * the disk.  All of them read one socket, so that the next idle one takes the
 * next job.
 *
 * A helper goes by the path, again for data. Where the name has changed since, it reads another
 * file in, and the loop itself waits for the disk.
 */
#ifndef ARCHSERVER_HELPERS_H
#define ARCHSERVER_HELPERS_H

#include <stdbool.h>

#include "conn.h"

struct helpers {
    int fd;                    /* the loop's side */
    struct conn *first, *last; /* connections whose jobs found the socket full */
};

/* Both sides of the socket: [0] the loop's, [1] the helpers'. Returns 0 or an errno. */
int helpers_socket(int fds_r[2]);

/* One helper: user points to its side. Returns only with an errno. */
int helpers_process(struct server *server, void *user);

/* Asks for what a connection wants, CONN_FILE or CONN_DATA; it waits until helpers_take returns its slot. */
void helpers_ask(struct helpers *helpers, struct conn *c, enum conn_want want);

/*
 * Takes one reply and gives it to the connection that table has at its slot.
 * Returns that, or NULL if there is no reply now.
 */
struct conn *helpers_take(const struct server *server, struct helpers *helpers, struct conn *const *table);

#endif
