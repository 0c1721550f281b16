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

struct entry {
    char *request;
    size_t request_size;
    char *path;
};

struct bench_plan {
    const struct bench_args *args;
    struct entry *entries;
    size_t count;
    size_t capacity;
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
                 path, ipv6 ? "[" : "", args->host, ipv6 ? "]" : "", args->port) < 0)
        return NULL;
    return request;
}

static int no_memory(void)
{
    (void)fputs("flashpache-bench: out of memory for the paths\n", stderr);
    return -1;
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
        struct entry *entries = realloc(plan->entries, capacity * sizeof(*entries));

        if (entries == NULL)
            return no_memory();
        plan->entries = entries;
        plan->capacity = capacity;
    }
    entry = &plan->entries[plan->count];
    entry->path = strdup(path);
    entry->request = make_request(plan->args, path);
    plan->count++;
    if (entry->path == NULL || entry->request == NULL)
        return no_memory();
    entry->request_size = strlen(entry->request);
    return 0;
}

static int add_line(struct bench_plan *plan, char *line, const char *file)
{
    line[strcspn(line, "\r\n")] = '\0';
    return line[0] == '\0' ? 0 : add(plan, line, file);
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
    while (status == 0 && getline(&line, &capacity, file) >= 0)
        status = add_line(plan, line, name);
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
    if (collect(plan) != 0)
        bench_plan_destroy(&plan);
    return plan;
}

void bench_plan_destroy(struct bench_plan **plan)
{
    if (*plan == NULL)
        return;
    for (size_t i = 0; i < (*plan)->count; i++) {
        free((*plan)->entries[i].path);
        free((*plan)->entries[i].request);
    }
    free((*plan)->entries);
    free(*plan);
    *plan = NULL;
}

size_t bench_plan_size(const struct bench_plan *plan)
{
    return plan->count;
}

const char *bench_plan_path(const struct bench_plan *plan, size_t index)
{
    return plan->entries[index].path;
}

const char *bench_plan_request(const struct bench_plan *plan, size_t index, size_t *size_r)
{
    *size_r = plan->entries[index].request_size;
    return plan->entries[index].request;
}

size_t bench_plan_next(struct bench_plan *plan)
{
    size_t index = plan->next;

    if (plan->args->random)
        return (size_t)bench_rng_below(&plan->choice, plan->count);
    plan->next = (plan->next + 1) % plan->count;
    return index;
}

uint64_t bench_plan_next_arrival(struct bench_plan *plan)
{
    uint64_t arrival = (uint64_t)plan->arrival_ns;
    double gap = plan->args->constant_arrivals ? 1.0 : bench_rng_exponential(&plan->gaps);

    plan->arrival_ns += gap * 1e9 / plan->args->rate;
    return arrival;
}
