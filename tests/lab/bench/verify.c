/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "verify.h"

#include "plan.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    bool tried;
    const char *content;
    uint64_t size;
};

struct bench_verify {
    const char *directory;
    const struct bench_plan *plan;
    struct file *files;
};

struct bench_verify *bench_verify_create(const char *directory, const struct bench_plan *plan)
{
    struct bench_verify *verify = calloc(1, sizeof(*verify));

    if (verify == NULL)
        return NULL;
    verify->directory = directory;
    verify->plan = plan;
    verify->files = calloc(bench_plan_count(plan), sizeof(*verify->files));
    if (verify->files == NULL)
        bench_verify_destroy(&verify);
    return verify;
}

static void unmap(const struct file *file)
{
    /* munmap wants no const; the content of an empty file is a literal. */
    if (file->size > 0)
        (void)munmap((void *)(uintptr_t)file->content, (size_t)file->size);
}

void bench_verify_destroy(struct bench_verify **verify)
{
    struct bench_verify *v = *verify;

    if (v == NULL)
        return;
    for (size_t i = 0; v->files != NULL && i < bench_plan_count(v->plan); i++)
        unmap(&v->files[i]);
    free(v->files);
    free(v);
    *verify = NULL;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return tolower((unsigned char)c) - 'a' + 10;
}

/* The URL path without its query and with %XX decoded, in place. */
static void decode(char *path)
{
    char *out = path;

    path[strcspn(path, "?#")] = '\0';
    for (const char *in = path; *in != '\0'; in++) {
        if (in[0] == '%' && isxdigit((unsigned char)in[1]) && isxdigit((unsigned char)in[2])) {
            *out++ = (char)(hex_value(in[1]) * 16 + hex_value(in[2]));
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
}

static void map_fd(struct file *file, int fd)
{
    struct stat st;
    void *content;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    if (st.st_size == 0) {
        file->content = "";
        return;
    }
    content = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (content == MAP_FAILED)
        return;
    file->content = content;
    file->size = (uint64_t)st.st_size;
}

static void load(struct bench_verify *v, size_t index)
{
    char *path = strdup(bench_plan_request(v->plan, index)->path);
    char *name = NULL;
    int fd = -1;

    v->files[index].tried = true;
    if (path != NULL) {
        decode(path);
        if (asprintf(&name, "%s%s", v->directory, path) < 0)
            name = NULL;
    }
    if (name != NULL)
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        map_fd(&v->files[index], fd);
        (void)close(fd);
    }
    free(name);
    free(path);
}

void bench_verify_begin(struct bench_verify *v, size_t index, struct bench_check *check)
{
    if (!v->files[index].tried)
        load(v, index);
    *check = (struct bench_check){ .content = v->files[index].content, .size = v->files[index].size };
}

void bench_check_data(struct bench_check *check, const char *data, size_t size)
{
    if (check->content == NULL || check->differs)
        return;
    if (size > check->size - check->offset || memcmp(check->content + check->offset, data, size) != 0)
        check->differs = true;
    else
        check->offset += size;
}

const char *bench_check_problem(const struct bench_check *check)
{
    if (check->content == NULL)
        return "there is no such file to compare the body with";
    if (check->differs)
        return "the body differs from the file";
    return check->offset == check->size ? NULL : "the body is shorter than the file";
}
