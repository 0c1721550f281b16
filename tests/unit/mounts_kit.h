/* SPDX-License-Identifier: Apache-2.0 */
/* A table of mounts that is made from text. */
#ifndef FP_MOUNTS_KIT_H
#define FP_MOUNTS_KIT_H

#include "changes/mount_list.h"
#include "changes/mounts.h"
#include "unit.h"

#define GENERAL_TTL   3000
#define GENERAL_STALE 7

static char dir[PATH_MAX], file[PATH_MAX];
static struct fp_mounts *mounts;
static struct fp_mount_list *list;
static int fds_before;

static const struct fp_mounts_settings general = { NULL, 0, FP_BY_AUTO, GENERAL_TTL, GENERAL_STALE, 0 };

static inline void setup(void)
{
    unit_fresh_dir(dir);
    strcpy(file, unit_join(dir, "mountinfo"));
    fds_before = unit_open_fds();
    list = fp_mount_list_create();
    ck_assert_ptr_nonnull(list);
}

static inline void teardown(void)
{
    fp_mounts_destroy(&mounts);
    ck_assert_ptr_null(mounts);
    ck_assert_int_eq(unit_open_fds(), fds_before);
}

static inline void load_with(const char *text, const struct fp_mounts_settings *s)
{
    fp_mounts_destroy(&mounts);
    unit_write_file(file, text);
    mounts = fp_mounts_create(file, s, list);
    ck_assert_ptr_nonnull(mounts);
}

static inline void load(const char *text)
{
    load_with(text, &general);
}

/* The id of a path's mount; 0: none. */
static inline uint32_t of_path(const char *path)
{
    const struct fp_mount *m = fp_mounts_of_path(mounts, path, strlen(path));

    return m != NULL ? m->id : 0;
}

/* "PATH=ID", a space between them: each path lies on that mount. */
static inline void assert_on(const char *expected)
{
    char copy[256], *rest = copy, *path, *id;

    ck_assert_int_lt(snprintf(copy, sizeof(copy), "%s", expected), (int)sizeof(copy));
    while ((id = strsep(&rest, " ")) != NULL) {
        path = strsep(&id, "=");
        ck_assert_msg(of_path(path) == (uint32_t)atoi(id), "%s: %u, not %s", path, (unsigned)of_path(path),
                      id);
    }
}

static inline const struct fp_mount *known(uint32_t id)
{
    const struct fp_mount *m = fp_mounts_find(mounts, id);

    ck_assert_ptr_nonnull(m);
    ck_assert_uint_eq(m->id, id);
    return m;
}

#endif
