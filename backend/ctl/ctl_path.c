/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_path.h"

#include <string.h>

#include "common/wire.h"

static void drop_component(const char *room, size_t *len)
{
    while (*len > 0 && room[--*len] != '/')
        ;
}

/* Appends "/name" to what is there; *len is 0 for "/". */
static bool add_component(const char *name, size_t n, char *room, size_t *len)
{
    if (n == 0 || (n == 1 && name[0] == '.'))
        return true;
    if (n == 2 && name[0] == '.' && name[1] == '.') {
        drop_component(room, len);
        return true;
    }
    if (n >= FP_MAX_PATH - *len)
        return false;
    room[*len] = '/';
    memcpy(room + *len + 1, name, n);
    *len += 1 + n;
    return true;
}

static bool add_all(const char *path, char *room, size_t *len)
{
    size_t n;

    for (; *path != '\0'; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (!add_component(path, n, room, len))
            return false;
    }
    return true;
}

bool ctl_path_normalise(const char *dir, const char *path, char *room)
{
    size_t len = 0;

    if (path[0] == '\0' || (path[0] != '/' && !add_all(dir, room, &len))
        || !add_all(path, room, &len))
        return false;
    if (len == 0)
        room[len++] = '/';
    room[len] = '\0';
    return true;
}
