/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations that are loaded, and the messages about them. */
#ifndef FP_CONF_KIT_H
#define FP_CONF_KIT_H

#include <pwd.h>
#include <sys/mman.h>

#include "conf/conf.h"
#include "unit.h"

static char dir[PATH_MAX], file[PATH_MAX];
static char user_setting[64]; /* root must name somebody else */
static struct fp_conf *conf;
static char said[1 << 16]; /* what came on stderr */

static inline void setup(void)
{
    unit_fresh_dir(dir);
    strcpy(file, unit_join(dir, "conf"));
    snprintf(user_setting, sizeof(user_setting), "user=%s",
             geteuid() == 0 ? "nobody" : getpwuid(geteuid())->pw_name);
}

static inline void teardown(void)
{
    fp_conf_destroy(&conf);
    ck_assert_ptr_null(conf);
}

/* Loads with stderr taken aside, and without naming a user. */
static inline bool load_as_is(const char *name, char *const *overrides, size_t n)
{
    const int saved = dup(STDERR_FILENO);
    int room = memfd_create("stderr", MFD_CLOEXEC);
    ssize_t len;

    fp_conf_destroy(&conf);
    fflush(stderr);
    ck_assert_int_ne(dup2(room, STDERR_FILENO), -1);
    conf = fp_conf_load(name, overrides, n);
    fflush(stderr);
    ck_assert_int_ne(dup2(saved, STDERR_FILENO), -1);
    len = pread(room, said, sizeof(said) - 1, 0);
    said[len > 0 ? len : 0] = '\0';
    close(saved);
    close(room);
    return conf != NULL;
}

static inline bool load(const char *text, const char *override)
{
    char *overrides[2] = { user_setting, (char *)(uintptr_t) override };

    if (text != NULL)
        unit_write_file(file, text);
    return load_as_is(text != NULL ? file : NULL, overrides, override != NULL ? 2 : 1);
}

static inline void assert_loaded(const char *text, const char *override)
{
    ck_assert_msg(load(text, override), "%s", said);
    ck_assert_str_eq(said, "");
}

static inline size_t lines_said(void)
{
    size_t n = 0;

    for (const char *p = said; *p != '\0'; p++)
        n += *p == '\n';
    return n;
}

/* Refused with one line that says all of these words (NULL: none). */
static inline void assert_refused(const char *text, const char *override, const char *word, const char *other)
{
    ck_assert_msg(!load(text, override), "taken: %s %s", text != NULL ? text : "",
                  override != NULL ? override : "");
    ck_assert_msg(lines_said() == 1, "not one line: %s", said);
    ck_assert_msg(word == NULL || strstr(said, word) != NULL, "no \"%s\" in: %s", word, said);
    ck_assert_msg(other == NULL || strstr(said, other) != NULL, "no \"%s\" in: %s", other, said);
}

#endif
