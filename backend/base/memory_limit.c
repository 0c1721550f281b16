/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/memory_limit.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* A limit that is no number ("max"), or a file that is not there, limits nothing. */
static void take_limit(size_t *least, const char *directory, const char *file)
{
    char path[PATH_MAX], text[32];
    unsigned long long limit;
    FILE *f = NULL;
    char *end;

    if (snprintf(path, sizeof(path), "%s/%s", directory, file) < (int)sizeof(path))
        f = fopen(path, "re");
    if (f == NULL)
        return;
    if (fgets(text, sizeof(text), f) != NULL) {
        limit = strtoull(text, &end, 10);
        if (end != text && limit < *least)
            *least = (size_t)limit;
    }
    fclose(f);
}

/* Of the group and all above it; a namespace shows fewer of them. */
static void take_group(size_t *least, const char *mount, const char *group, const char *file)
{
    char directory[PATH_MAX];
    const size_t top = strlen(mount);

    if (snprintf(directory, sizeof(directory), "%s%s", mount, group) >= (int)sizeof(directory))
        return;
    take_limit(least, directory, file);
    while (strlen(directory) > top) {
        *strrchr(directory, '/') = '\0';
        take_limit(least, directory, file);
    }
}

/* A line is "number:controllers:group"; version 2 has no controllers there. */
static void take_line(size_t *least, const char *root, char *line)
{
    char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    char mount[PATH_MAX];

    if (group == NULL)
        return;
    controllers++;
    *group = '\0';
    group[1 + strcspn(group + 1, "\n")] = '\0';
    if (group == controllers) {
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
        take_group(least, mount, group + 1, "memory.max");
    } else if (fp_text_has_option(controllers, "memory")) {
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/memory", root);
        take_group(least, mount, group + 1, "memory.limit_in_bytes");
    }
}

static FILE *open_in(const char *root, const char *name)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s%s", root, name) < (int)sizeof(path) ? fopen(path, "re") : NULL;
}

static size_t machine_memory(const char *root)
{
    FILE *f = open_in(root, "/proc/meminfo");
    size_t kib = 0;
    char line[128];

    while (f != NULL && kib == 0 && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "MemTotal: %zu kB", &kib) != 1)
            kib = 0;
    }
    if (f != NULL)
        fclose(f);
    return kib > 0 && kib < SIZE_MAX / 1024 ? kib * 1024 : SIZE_MAX;
}

size_t fp_memory_limit(const char *root)
{
    size_t least = machine_memory(root);
    FILE *f = open_in(root, "/proc/self/cgroup");
    char line[PATH_MAX];

    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        take_line(&least, root, line);
    if (f != NULL)
        fclose(f);
    return least;
}
