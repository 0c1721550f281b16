/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections and what each of them is doing: free, busy with a request, or kept by a
 * session whose user thinks.
 */
#ifndef BENCH_CLIENTS_H
#define BENCH_CLIENTS_H

#include "conn.h"

struct bench_client {
    struct bench_conn conn;    /* first: epoll's data points to it */
    struct bench_client *next; /* in the queue of free ones, or in that of busy ones by age */
    struct bench_client *previous;
    bool busy;
    bool warmup;
    size_t path;
    size_t line;
    uint64_t left;      /* requests of its session after this one */
    uint64_t start_ns;  /* intended */
    uint64_t issued_ns; /* actual; the time limit counts from here */
    uint64_t freed_ns;
};

struct bench_list {
    struct bench_client *first;
    struct bench_client *last;
};

void bench_list_append(struct bench_list *list, struct bench_client *client);
void bench_list_remove(struct bench_list *list, struct bench_client *client);

struct bench_clients {
    struct bench_client *all;
    unsigned count;
};

/* All are appended to the list. 0, or -1 after an error, which was printed. */
int bench_clients_open(struct bench_clients *clients, unsigned count, struct bench_peer *peer, int epoll_fd,
                       struct bench_list *free_list);

/* Returns how often requests were sent again. */
uint64_t bench_clients_close(struct bench_clients *clients);

#endif
