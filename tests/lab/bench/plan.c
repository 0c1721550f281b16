/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan.h"

#include "args.h"
#include "rng.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct entry {
    char *request;
    size_t request_size;
    char *path;
    size_t number;
    UT_hash_handle hh;
};

struct bench_plan {
    const struct bench_args *args;
    struct entry *by_path;
    struct entry **lines;
    size_t count; /* of lines */
    size_t capacity;
    size_t path_count;
    struct entry **paths; /* by number */
    size_t next;
    struct bench_rng choice;
    struct bench_rng gaps;
    double arrival_ns;
};

static char *make_request(const struct bench_args *args, const char *path)
{
    bool ipv6 = strchr(args->host, ':') != NULL;
    char *request = NULL;

    if (asprintf(&request,
                 "GET %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: flashpache-bench\r\n"
                 "Accept: */*\r\n\r\n",
                 path, ipv6 ? "[" : "", args->host, ipv6 ? "]" : "", args->port)
        < 0)
        return NULL;
    return request;
}

static int no_memory(void)
{
    (void)fputs("flashpache-bench: out of memory for the paths\n", stderr);
    return -1;
}

/* The entry of a path, made if need be; NULL when there is no memory. */
static struct entry *entry_of(struct bench_plan *plan, const char *path)
{
    struct entry *entry;

    HASH_FIND_STR(plan->by_path, path, entry);
    if (entry != NULL)
        return entry;
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return NULL;
    entry->path = strdup(path);
    entry->request = make_request(plan->args, path);
    if (entry->path == NULL || entry->request == NULL) {
        free(entry->path);
        free(entry->request);
        free(entry);
        return NULL;
    }
    entry->request_size = strlen(entry->request);
    entry->number = plan->path_count++;
    HASH_ADD_KEYPTR(hh, plan->by_path, entry->path, strlen(entry->path), entry);
    return entry;
}

static int add(struct bench_plan *plan, const char *path, const char *where)
{
    struct entry *entry;

    if (path[0] != '/' || strpbrk(path, " \t\r\n") != NULL) {
        (void)fprintf(stderr,
                      "flashpache-bench: %s: \"%s\" is no URL path: it must begin with / and "
                      "have no white space (write %%20)\n",
                      where, path);
        return -1;
    }
    if (plan->count == plan->capacity) {
        size_t capacity = plan->capacity == 0 ? 64 : plan->capacity * 2;
        struct entry **lines = realloc(plan->lines, capacity * sizeof(struct entry *));

        if (lines == NULL)
            return no_memory();
        plan->lines = lines;
        plan->capacity = capacity;
    }
    entry = entry_of(plan, path);
    if (entry == NULL)
        return no_memory();
    plan->lines[plan->count++] = entry;
    return 0;
}

static int read_file(struct bench_plan *plan, const char *name)
{
    FILE *file = fopen(name, "re");
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;

    if (file == NULL) {
        (void)fprintf(stderr, "flashpache-bench: cannot open %s: %s\n", name, strerror(errno));
        return -1;
    }
    while (status == 0 && getline(&line, &capacity, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0')
            status = add(plan, line, name);
    }
    if (status == 0 && ferror(file)) {
        (void)fprintf(stderr, "flashpache-bench: cannot read %s\n", name);
        status = -1;
    }
    free(line);
    (void)fclose(file);
    return status;
}

static int collect(struct bench_plan *plan)
{
    const struct bench_args *args = plan->args;

    for (int i = 0; i < args->path_count; i++)
        if (add(plan, args->paths[i], "command line") != 0)
            return -1;
    if (args->urls != NULL && read_file(plan, args->urls) != 0)
        return -1;
    if (plan->count == 0 && args->urls != NULL) {
        (void)fprintf(stderr, "flashpache-bench: %s has no paths\n", args->urls);
        return -1;
    }
    return plan->count == 0 ? add(plan, "/", "default") : 0;
}

static int number_paths(struct bench_plan *plan)
{
    plan->paths = calloc(plan->path_count, sizeof(struct entry *));
    if (plan->paths == NULL)
        return no_memory();
    for (struct entry *entry = plan->by_path; entry != NULL; entry = entry->hh.next)
        plan->paths[entry->number] = entry;
    return 0;
}

struct bench_plan *bench_plan_create(const struct bench_args *args)
{
    struct bench_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL) {
        (void)no_memory();
        return NULL;
    }
    plan->args = args;
    bench_rng_seed(&plan->choice, args->seed);
    /* A sequence of its own: the order of paths does not depend on the arrivals. */
    bench_rng_seed(&plan->gaps, ~args->seed);
    if (collect(plan) != 0 || number_paths(plan) != 0)
        bench_plan_destroy(&plan);
    return plan;
}

void bench_plan_destroy(struct bench_plan **plan)
{
    struct entry *entry;
    struct entry *following;

    if (*plan == NULL)
        return;
    HASH_ITER(hh, (*plan)->by_path, entry, following) {
        HASH_DEL((*plan)->by_path, entry);
        free(entry->path);
        free(entry->request);
        free(entry);
    }
    free((*plan)->lines);
    free((*plan)->paths);
    free(*plan);
    *plan = NULL;
}

size_t bench_plan_size(const struct bench_plan *plan)
{
    return plan->count;
}

size_t bench_plan_path_count(const struct bench_plan *plan)
{
    return plan->path_count;
}

const char *bench_plan_path(const struct bench_plan *plan, size_t index)
{
    return plan->paths[index]->path;
}

const char *bench_plan_request(const struct bench_plan *plan, size_t index, size_t *size_r)
{
    *size_r = plan->paths[index]->request_size;
    return plan->paths[index]->request;
}

size_t bench_plan_next(struct bench_plan *plan, size_t *line_r)
{
    if (plan->args->random) {
        *line_r = (size_t)bench_rng_below(&plan->choice, plan->count);
    } else {
        *line_r = plan->next;
        plan->next = (plan->next + 1) % plan->count;
    }
    return plan->lines[*line_r]->number;
}

uint64_t bench_plan_next_arrival(struct bench_plan *plan)
{
    uint64_t arrival = (uint64_t)plan->arrival_ns;
    double gap = plan->args->constant_arrivals ? 1.0 : bench_rng_exponential(&plan->gaps);

    plan->arrival_ns += gap * 1e9 / bench_args_arrivals(plan->args);
    return arrival;
}
