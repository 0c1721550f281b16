/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/path.h"

#include <string.h>

#define AT_ONCE 64 /* bytes that are compared by one call */

/* True for a component of a path; how long it may be is the file system's business. */
static bool is_component(const char *name, size_t len)
{
    if (len == 0 || memchr(name, '\0', len) != NULL)
        return false;
    return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

bool fp_name_is_single(const char *name, size_t len)
{
    return len <= FP_MAX_NAME && is_component(name, len) && memchr(name, '/', len) == NULL;
}

bool fp_path_is_normal(const char *path, size_t len)
{
    const char *end = path + len, *p = path + 1;

    if (len == 0 || len > FP_MAX_PATH || path[0] != '/')
        return false;
    while (len > 1) {
        const char *slash = memchr(p, '/', (size_t)(end - p));
        const char *stop = slash != NULL ? slash : end;

        if (!is_component(p, (size_t)(stop - p)))
            return false;
        if (slash == NULL)
            return true;
        p = slash + 1;
    }
    return true;
}

size_t fp_path_depth(const char *path, size_t len)
{
    size_t n = len > 1;

    for (size_t i = 0; i < len; i++)
        n += path[i] == '/';
    return n;
}

size_t fp_path_len(const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

size_t fp_path_parent_len(const char *path, size_t len)
{
    while (path[--len] != '/')
        ;
    return len > 0 ? len : 1;
}

size_t fp_path_child_len(const char *path, size_t len, size_t at)
{
    const size_t from = at > 1 ? at + 1 : 1;
    const char *slash = memchr(path + from, '/', len - from);

    return slash != NULL ? (size_t)(slash - path) : len;
}

bool fp_path_is_below(const char *path, size_t len, const char *above)
{
    size_t n = strlen(above);

    if (n == 1)
        return path[0] == '/';
    return len >= n && memcmp(path, above, n) == 0 && (len == n || path[n] == '/');
}

bool fp_path_is_below_any(const char *path, size_t len, const char *const *above)
{
    for (; *above != NULL; above++) {
        if (fp_path_is_below(path, len, *above))
            return true;
    }
    return false;
}

bool fp_path_is_within(const char *path, size_t len, const char *const *roots)
{
    return roots == NULL || roots[0] == NULL || fp_path_is_below_any(path, len, roots);
}

size_t fp_path_common_len(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t most = a_len < b_len ? a_len : b_len, n = 0;

    while (most - n >= AT_ONCE && memcmp(a + n, b + n, AT_ONCE) == 0)
        n += AT_ONCE;
    while (n < most && a[n] == b[n])
        n++;
    /* Back to the end of a component of both. */
    while (n > 1 && ((n < a_len && a[n] != '/') || (n < b_len && b[n] != '/')))
        n--;
    return n > 1 ? n : 1;
}

/* Appends "/name" to the path in buf, whose *len is 0 for "/". */
static bool add_component(const char *name, size_t n, char *buf, size_t *len)
{
    if (n == 0 || (n == 1 && name[0] == '.'))
        return true;
    if (n == 2 && name[0] == '.' && name[1] == '.') {
        while (*len > 0 && buf[--*len] != '/')
            ;
        return true;
    }
    if (n >= FP_MAX_PATH - *len)
        return false;
    buf[*len] = '/';
    memcpy(buf + *len + 1, name, n);
    *len += 1 + n;
    return true;
}

static bool add_all(const char *path, char *buf, size_t *len)
{
    size_t n;

    for (; *path != '\0'; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (!add_component(path, n, buf, len))
            return false;
    }
    return true;
}

bool fp_path_normalise(const char *dir, const char *path, char *buf)
{
    size_t len = 0;

    if (path[0] == '\0' || (path[0] != '/' && !add_all(dir, buf, &len)) || !add_all(path, buf, &len))
        return false;
    if (len == 0)
        buf[len++] = '/';
    buf[len] = '\0';
    return true;
}
