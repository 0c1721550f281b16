/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Descriptors needed besides the connections'. */
#define SPARE_DESCRIPTORS 16

void bench_list_append(struct bench_list *list, struct bench_client *client)
{
    client->next = NULL;
    client->previous = list->last;
    if (list->last != NULL)
        list->last->next = client;
    else
        list->first = client;
    list->last = client;
}

void bench_list_remove(struct bench_list *list, struct bench_client *client)
{
    if (client->previous != NULL)
        client->previous->next = client->next;
    else
        list->first = client->next;
    if (client->next != NULL)
        client->next->previous = client->previous;
    else
        list->last = client->previous;
}

static int raise_descriptor_limit(unsigned connections)
{
    rlim_t needed = (rlim_t)connections + SPARE_DESCRIPTORS;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return 0;
    limit.rlim_cur = needed;
    if (limit.rlim_max < needed)
        limit.rlim_max = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    (void)fprintf(stderr,
                  "flashpache-bench: %u connections need more descriptors than allowed; raise "
                  "the limit (ulimit -Hn %llu) or use fewer\n",
                  connections, (unsigned long long)needed);
    return -1;
}

static int no_memory(void)
{
    (void)fprintf(stderr, "flashpache-bench: connections: %s\n", strerror(errno));
    return -1;
}

int bench_clients_open(struct bench_clients *clients, unsigned count, struct bench_peer *peer, int epoll_fd,
                       struct bench_list *free_list)
{
    if (raise_descriptor_limit(count) != 0)
        return -1;
    clients->all = calloc(count, sizeof(*clients->all));
    if (clients->all == NULL)
        return no_memory();
    while (clients->count < count) {
        struct bench_client *client = &clients->all[clients->count];

        if (bench_conn_init(&client->conn, peer, epoll_fd) != 0)
            return no_memory();
        bench_list_append(free_list, client);
        clients->count++;
    }
    return 0;
}

uint64_t bench_clients_close(struct bench_clients *clients)
{
    uint64_t retries = 0;

    for (unsigned i = 0; i < clients->count; i++) {
        retries += clients->all[i].conn.retries;
        bench_conn_destroy(&clients->all[i].conn);
    }
    free(clients->all);
    *clients = (struct bench_clients){ 0 };
    return retries;
}
