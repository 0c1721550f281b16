/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf.h"

#include <grp.h>
#include <pwd.h>

#include "base/log.h"
#include "changes/mounts.h"
#include "conf_kit.h"

/* ---- accepted settings ---- */

static const struct {
    const char *key;
    size_t offset, size;
    unsigned long least, most; /* of the default */
    unsigned long given;       /* in every_setting_from_a_file */
    bool may_be_zero;
} numbers[] = {
#define ROW(key, ...) \
    { \
#key, offsetof(struct fp_conf, key), sizeof(((struct fp_conf *)NULL)->key), __VA_ARGS__ \
    }
    ROW(workers, 1, ULONG_MAX, 2, false),          ROW(lookup_timeout_ms, 1, ULONG_MAX, 900, false),
    ROW(ttl_ms, 1, ULONG_MAX, 60000, false),       ROW(max_connections, 1, ULONG_MAX, 30, false),
    ROW(watched_ttl_ms, 600000, 600000, 50, false), ROW(memory, SIZE_MAX, SIZE_MAX, 9876543210, false),
    ROW(stale_if_error_ms, 0, 0, 60, true),        ROW(mount_workers, 0, 0, 1, true),
    ROW(mount_timeout_ms, 2000, 2000, 700, false),
#undef ROW
};
#define NUMBERS ((int)(sizeof(numbers) / sizeof(numbers[0])))

static unsigned long number(int i)
{
    const char *field = (const char *)conf + numbers[i].offset;

    return numbers[i].size == sizeof(uint32_t) ? *(const uint32_t *)(const void *)field
                                               : *(const size_t *)(const void *)field;
}

START_TEST(nothing_set)
{
    assert_loaded(NULL, NULL);
    ck_assert_str_eq(conf->socket, FP_DEFAULT_SOCKET);
    ck_assert_str_eq(conf->log, "stderr");
    ck_assert_int_eq(conf->log_level, FP_LOG_INFO);
    ck_assert_ptr_nonnull(conf->roots);
    ck_assert_ptr_null(conf->roots[0]);
    ck_assert_int_eq(conf->watch, FP_BY_AUTO);
    ck_assert_uint_eq(conf->n_mounts, 0);
    ck_assert_str_eq(conf->group, "");
    ck_assert(conf->seccomp);
    for (int i = 0; i < NUMBERS; i++) {
        ck_assert_uint_ge(number(i), numbers[i].least);
        ck_assert_uint_le(number(i), numbers[i].most);
    }
}
END_TEST

START_TEST(without_filters)
{
    assert_loaded("seccomp = false\n", NULL);
    ck_assert(!conf->seccomp);
    assert_loaded("seccomp = false\n", "seccomp=true");
    ck_assert(conf->seccomp);
    ck_assert(!load("seccomp = perhaps\n", NULL));
}
END_TEST

/* Text of a file, with one override. */
static struct fp_conf *reread(const char *text, const char *override)
{
    static const struct fp_conf now = { .uid = 12, .gid = 34 };
    char *overrides[] = { (char *)(uintptr_t) override };

    unit_write_file(file, text);
    return fp_conf_reload(open(file, O_RDONLY | O_CLOEXEC), &now, overrides, 1);
}

/* As the daemon does where it cannot look up names: it asks for none, and numbers stay. */
START_TEST(reread_from_a_descriptor)
{
    struct fp_conf *c =
        reread("user = \"no-such-user\"\ngroup = \"no-such-group\"\nworkers = 5\n", "ttl_ms=7");

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->uid, 12);
    ck_assert_uint_eq(c->gid, 34);
    ck_assert_str_eq(c->user, "no-such-user");
    ck_assert_str_eq(c->group, "no-such-group");
    ck_assert_uint_eq(c->workers, 5);
    ck_assert_uint_eq(c->ttl_ms, 7);
    fp_conf_destroy(&c);
    ck_assert_ptr_null(reread("workers = none\n", "ttl_ms=7"));
    ck_assert_ptr_null(fp_conf_reload(-1, &(struct fp_conf){ .uid = 12, .gid = 34 }, NULL, 0));
}
END_TEST

START_TEST(empty_files)
{
    assert_loaded("", NULL);
    assert_loaded("# nothing\n\n   \n# at all", NULL);
    assert_loaded("workers = 3", NULL); /* without a line end */
    ck_assert_uint_eq(conf->workers, 3);
}
END_TEST

START_TEST(every_setting_from_a_file)
{
    char text[1024] = "socket = \"/run/x/s.sock\" # here\n"
                      "log = \"/var/log/x.log\"\n"
                      "log_level = \"debug\"\n"
                      "watch = \"inotify\"\n"
                      "roots = {\"/var/www\", \"/srv\"}\n";

    for (int i = 0; i < NUMBERS; i++) {
        const size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, "%s = %lu\n", numbers[i].key, numbers[i].given);
    }
    assert_loaded(text, NULL);
    for (int i = 0; i < NUMBERS; i++)
        ck_assert_uint_eq(number(i), numbers[i].given);
    ck_assert_str_eq(conf->socket, "/run/x/s.sock");
    ck_assert_str_eq(conf->log, "/var/log/x.log");
    ck_assert_int_eq(conf->log_level, FP_LOG_DEBUG);
    ck_assert_int_eq(conf->watch, FP_BY_INOTIFY);
    ck_assert_str_eq(conf->roots[0], "/var/www");
    ck_assert_str_eq(conf->roots[1], "/srv");
    ck_assert_ptr_null(conf->roots[2]);
}
END_TEST

static void assert_mount(size_t i, const char *point, int by, long ttl_ms, long stale_ms)
{
    ck_assert_uint_lt(i, conf->n_mounts);
    ck_assert_str_eq(conf->mounts[i].point, point);
    ck_assert_int_eq(conf->mounts[i].by, by);
    ck_assert_int_eq(conf->mounts[i].ttl_ms, ttl_ms);
    ck_assert_int_eq(conf->mounts[i].stale_if_error_ms, stale_ms);
}

START_TEST(sections_of_mounts)
{
    assert_loaded("watch = \"ttl\"\n"
                  "mount \"/srv\" {\n  watch = \"inotify\"  # here\n  ttl_ms = 5\n"
                  "  stale_if_error_ms = 0\n}\n"
                  "mount \"/\" { watch = \"ttl\" }\n"
                  "mount \"/a b\" {}\n"
                  "mount '/x' { watch = \"inotify\" stale_if_error_ms = 86400000 }\n"
                  "mount /y { watch = \"auto\" }\n"
                  "ttl_ms = 9\n",
                  "watch=auto");
    ck_assert_uint_eq(conf->n_mounts, 5);
    assert_mount(0, "/srv", FP_BY_INOTIFY, 5, 0);
    assert_mount(1, "/", FP_BY_TTL, -1, -1);
    assert_mount(2, "/a b", FP_BY_AUTO, -1, -1);
    assert_mount(3, "/x", FP_BY_INOTIFY, -1, 86400000);
    assert_mount(4, "/y", FP_BY_AUTO, -1, -1);
    ck_assert_uint_eq(conf->ttl_ms, 9);
    ck_assert_int_eq(conf->watch, FP_BY_AUTO);
}
END_TEST

START_TEST(override_wins)
{
    char *overrides[] = { user_setting, strdup("workers=5"), strdup("workers=6"), strdup("socket=/run/y"),
                          strdup("log_level=error") };

    unit_write_file(file, "workers = 2\nsocket = \"/run/x\"\nttl_ms = 77\n");
    ck_assert(load_as_is(file, overrides, 5));
    ck_assert_uint_eq(conf->workers, 6);
    ck_assert_str_eq(conf->socket, "/run/y");
    ck_assert_int_eq(conf->log_level, FP_LOG_ERROR);
    ck_assert_uint_eq(conf->ttl_ms, 77);
    for (size_t i = 1; i < 5; i++)
        free(overrides[i]);
}
END_TEST

START_TEST(every_setting_by_override)
{
    assert_loaded(NULL, "ttl_ms=123");
    ck_assert_uint_eq(conf->ttl_ms, 123);
    assert_loaded(NULL, "log=stderr");
    ck_assert_str_eq(conf->log, "stderr");
    assert_loaded(NULL, "log=/a=b");
    ck_assert_str_eq(conf->log, "/a=b");
    assert_loaded(NULL, "roots=/var/www");
    ck_assert_str_eq(conf->roots[0], "/var/www");
    ck_assert_ptr_null(conf->roots[1]);
    assert_loaded(NULL, "memory=64M");
    ck_assert_uint_eq(conf->memory, 64 << 20);
    assert_loaded("roots = {}", NULL);
    ck_assert_ptr_null(conf->roots[0]);
}
END_TEST

START_TEST(destroying_nothing)
{
    struct fp_conf *none = NULL;

    fp_conf_destroy(&none);
    ck_assert_ptr_null(none);
}
END_TEST

/* ---- settings fixed at the start ---- */

START_TEST(settings_that_need_a_restart)
{
    static const struct {
        const char *changed, *keys;
    } cases[] = {
        { "", "" },
        { "ttl_ms = 9\nlog = \"stderr\"\n", "" },
        { "workers = 9\nsocket = \"/run/other\"\n", "socket, workers" },
        { "seccomp = false\nroots = {\"/srv\"}\n", "seccomp, roots" },
        { "memory = 1G\nmax_connections = 7\n", "memory, max_connections" },
    };
    struct fp_conf *now;
    char keys[256];

    assert_loaded("", NULL);
    now = conf;
    conf = NULL;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_loaded(cases[i].changed, NULL);
        ck_assert(fp_conf_needs_restart(now, conf, keys, sizeof(keys)) == (cases[i].keys[0] != '\0'));
        ck_assert(cases[i].keys[0] == '\0' || strcmp(keys, cases[i].keys) == 0);
    }
    fp_conf_destroy(&now);
}
END_TEST

/* ---- refused settings ---- */

START_TEST(numbers_that_are_none_or_out_of_range)
{
    static const char *const wrong[] = {
        "-1", "4294967296000", "99999999999999999999", "-99999999999999999999", "x", "5x", "1.5"
    };
    char text[128];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(text, sizeof(text), "%s = %s\n", numbers[_i].key, wrong[i]);
        assert_refused(text, NULL, numbers[_i].key, file);
        snprintf(text, sizeof(text), "%s=%s", numbers[_i].key, wrong[i]);
        assert_refused(NULL, text, numbers[_i].key, NULL);
    }
    if (!numbers[_i].may_be_zero) {
        snprintf(text, sizeof(text), "%s = 0\n", numbers[_i].key);
        assert_refused(text, NULL, numbers[_i].key, "out of range");
    }
}
END_TEST

START_TEST(bounds_are_said)
{
    assert_refused("workers = 257", NULL, "257", "1 to 256");
    assert_refused("ttl_ms = 0", NULL, "ttl_ms", "1 to");
    assert_refused("max_connections = 4294967296", NULL, "4294967296", "1 to");
    assert_refused(NULL, "workers=", "workers", NULL);
    assert_refused("memory = 212991", NULL, "memory", "212992 to");
}
END_TEST

START_TEST(units_of_memory)
{
    static const struct {
        const char *text;
        size_t bytes;
    } right[] = { { "memory = 212992", 212992 },
                  { "memory = 208K", 212992 },
                  { "memory = \"5M\"", (size_t)5 << 20 },
                  { "memory = 1024G", (size_t)1 << 40 } };
    static const char *const outside[] = { "207K", "0G", "-1M", "1025G", "9999999999G", "-9999999999G" };
    static const char *const wrong[] = { "M", "5MB", "5 M", "5m", "5T", "05M", "5MM" };
    char text[64];

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        assert_loaded(right[i].text, NULL);
        ck_assert_uint_eq(conf->memory, right[i].bytes);
    }
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        snprintf(text, sizeof(text), "memory = %s", outside[i]);
        assert_refused(text, NULL, outside[i], "212992 to 1099511627776");
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(text, sizeof(text), "memory = \"%s\"", wrong[i]);
        assert_refused(text, NULL, wrong[i], "K, M or G");
    }
    assert_refused("ttl_ms = 5K", NULL, "5K", "a unit");
}
END_TEST

START_TEST(settings_of_earlier_releases)
{
    static const char *const of_memory[] = { "max_absent", "max_negative",      "max_entries",
                                             "max_bytes",  "max_content_bytes", "max_answer_bytes" };
    char text[64];

    assert_refused("ttl_ms = 5\nhelpers = 7\n", NULL, "conf:2: helpers", "write workers");
    assert_refused("mount_helpers = 2\n", NULL, "conf:1: mount_helpers", "write mount_workers");
    for (size_t i = 0; i < sizeof(of_memory) / sizeof(of_memory[0]); i++) {
        snprintf(text, sizeof(text), "%s = 1048576\n", of_memory[i]);
        assert_refused(text, NULL, of_memory[i], "set memory");
    }
    assert_refused(NULL, "max_absent=99", "max_absent", "set memory");
    assert_refused("max_descriptors = 5\n", NULL, "conf:1: max_descriptors", "LimitNOFILE=");
    assert_refused("max_queue = 5\n", NULL, "conf:1: max_queue", "leave it out");
    assert_refused("max_inflight = 5\n", NULL, "conf:1: max_inflight", "leave it out");
    assert_refused("slow_log_ms = 5\n", NULL, "conf:1: slow_log_ms", "leave it out");
    assert_refused("read_ahead = 5\n", NULL, "conf:1: read_ahead", "leave it out");
    assert_refused("pid_file = \"/run/x.pid\"\n", NULL, "conf:1: pid_file", "leave it out");
    ck_assert_ptr_null(reread("helpers = 5\n", "workers=3"));
}
END_TEST

START_TEST(unknown_settings)
{
    assert_refused("workers = 2\nhelper = 2\n", NULL, "helper", "conf:2");
    assert_refused("nonsense = 2\n", NULL, "nonsense", "conf:1");
    assert_refused(NULL, "helper=2", "helper", NULL);
    assert_refused(NULL, "Helpers=2", "Helpers", NULL);
    assert_refused(NULL, "workers =2", "workers", NULL);
}
END_TEST

START_TEST(overrides_that_are_none)
{
    assert_refused(NULL, "workers", "KEY=VALUE", "workers");
    assert_refused(NULL, "", "KEY=VALUE", NULL);
    assert_refused(NULL, "=", NULL, NULL);
    assert_refused(NULL, "=5", NULL, NULL);
    assert_refused(NULL, "a_key_that_is_longer_than_all_the_real_ones_are=5", NULL, NULL);
}
END_TEST

START_TEST(mistakes_in_the_file)
{
    static const char *const texts[] = {
        "workers\n",
        "workers 5\n",
        "= 5\n",
        "workers = \n",
        "socket = {\"/a\"}\n",
        "socket = \"/run/x\n",
        "roots = {\"/a\"\n",
        "roots = {\"/a\",,}\n",
        "}\n",
        "{\n",
        "workers = {5}\n",
        "\x01\x02\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_msg(!load(texts[i], NULL), "taken: %s", texts[i]);
        ck_assert_msg(strstr(said, file) != NULL, "%s", said);
    }
}
END_TEST

START_TEST(paths_that_are_not_normal)
{
    static const char *const wrong[] = { "",
                                         "x",
                                         "./x",
                                         "run/x",
                                         "/run/",
                                         "/run//x",
                                         "/run/../x",
                                         "/run/./x",
                                         "/"
                                         "/" };
    static const char *const keys[] = { "socket", "log", "roots" };
    char text[128];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
            snprintf(text, sizeof(text), "%s = %s\"%s\"%s\n", keys[k], k == 2 ? "{\"/a\"," : "", wrong[i],
                     k == 2 ? "}" : "");
            assert_refused(text, NULL, keys[k], file);
            snprintf(text, sizeof(text), "%s=%s", keys[k], wrong[i]);
            assert_refused(NULL, text, keys[k], NULL);
        }
    }
}
END_TEST

START_TEST(socket_path_of_the_most_bytes)
{
    char path[109], text[160];

    memset(path, 's', sizeof(path));
    path[0] = '/';
    path[107] = '\0';
    snprintf(text, sizeof(text), "socket=%s", path);
    assert_loaded(NULL, text);
    ck_assert_str_eq(conf->socket, path);
    path[107] = 's';
    path[108] = '\0';
    snprintf(text, sizeof(text), "socket=%s", path);
    assert_refused(NULL, text, "socket", "108");
    snprintf(text, sizeof(text), "socket = \"%s\"\n", path);
    assert_refused(text, NULL, "socket", "conf:1");
}
END_TEST

START_TEST(log_targets_levels_and_ways_of_watching)
{
    assert_refused("log = \"file\"\n", NULL, "log", file);
    assert_refused("log_level = \"loud\"\n", NULL, "loud", "error, warning, info or debug");
    assert_refused(NULL, "log_level=", "log_level", NULL);
    assert_refused("watch = \"loud\"\n", NULL, "loud", "inotify or ttl");
    assert_refused("watch = \"fanotify\"\n", NULL, "fanotify", "auto");
    assert_refused("watch = \"TTL\"\n", NULL, "TTL", "auto");
    assert_refused("watch = \"inotify2\"\n", NULL, "inotify2", "auto");
    assert_refused(NULL, "watch=", "watch", NULL);
}
END_TEST

START_TEST(sections_with_mistakes)
{
    static const struct {
        const char *text, *word, *place;
    } wrong[] = {
        { "mount \"/srv\" {\n watch = \"tt\"\n}\n", "auto, inotify or ttl", "conf:2" },
        { "mount \"/srv\" {\n\n ttl_ms = 0\n}\n", "ttl_ms", "conf:3" },
        { "mount \"/srv\" {\n ttl_ms = -1\n}\n", "1 to 86400000", "conf:2" },
        { "mount \"/srv\" {\n stale_if_error_ms = -1\n}\n", "0 to 86400000", "conf:2" },
        { "mount \"/srv\" {\n stale_if_error_ms = x\n}\n", "stale_if_error_ms", "conf:2" },
        { "mount \"/srv\" {\n workers = 2\n}\n", "workers", "conf:2" },
        { "mount \"srv\" { }\n", "\"srv\"", "conf:1" },
        { "mount \"/srv/\" { }\n", "\"/srv/\"", "conf:1" },
        { "mount \"\" { }\n", "mount", "conf:1" },
        { "mount { }\n", "mount", "conf:1" },
        { "mount = \"/srv\"\n", "mount", "conf:1" },
        { "mount \"/srv\"\n", "end of file", "conf:2" },
        { "mount \"/a\" { }\nmount \"/b\" { }\nmount \"/a\" { }\n", "/a", "conf:3" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_refused(wrong[i].text, NULL, wrong[i].word, wrong[i].place);
    assert_refused(NULL, "mount=/srv", "in the file", "mount");
    assert_refused("mount \"/srv\" { }\n", "mount|ttl_ms=5", "in the file", "mount");
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    char *overrides[] = { user_setting };

    ck_assert(!load_as_is(unit_join(dir, "no"), overrides, 1));
    ck_assert_ptr_nonnull(strstr(said, "/no"));
    ck_assert_ptr_nonnull(strstr(said, strerror(ENOENT)));
    ck_assert(!load_as_is(dir, overrides, 1));
    ck_assert_ptr_nonnull(strstr(said, dir));
}
END_TEST

START_TEST(null_device_is_an_empty_file)
{
    char *overrides[] = { user_setting };

    ck_assert_msg(load_as_is("/dev/null", overrides, 1), "%s", said);
    ck_assert_str_eq(conf->socket, FP_DEFAULT_SOCKET);
}
END_TEST

/* ---- user and group ---- */

START_TEST(user_is_taken)
{
    const struct passwd *pw = getpwnam(strchr(user_setting, '=') + 1);

    assert_loaded(NULL, NULL);
    ck_assert_uint_eq(conf->uid, pw->pw_uid);
    ck_assert_uint_eq(conf->gid, pw->pw_gid);
    ck_assert_str_eq(conf->user, pw->pw_name);
}
END_TEST

START_TEST(group_is_taken)
{
    const struct group *gr = getgrgid(getegid());
    char text[128];

    ck_assert_ptr_nonnull(gr);
    snprintf(text, sizeof(text), "group=%s", gr->gr_name);
    assert_loaded(NULL, text);
    ck_assert_uint_eq(conf->gid, gr->gr_gid);
    assert_refused("group = \"no-such-group\"\n", NULL, "no-such-group", file);
}
END_TEST

/* By any process: for the identity of the daemon there may be no user, or another than this process's. */
START_TEST(read_without_becoming_the_daemon)
{
    bool given = true;
    struct fp_conf *c;

    unit_write_file(file, "ttl_ms = 7\n");
    c = fp_conf_read(file, &given);
    ck_assert_ptr_nonnull(c);
    ck_assert(!given);
    ck_assert_str_eq(c->socket, FP_DEFAULT_SOCKET);
    ck_assert_uint_eq(c->ttl_ms, 7);
    fp_conf_destroy(&c);
    unit_write_file(file, "socket = \"/run/x/s.sock\"\nuser = \"root\"\n");
    c = fp_conf_read(file, &given);
    ck_assert_ptr_nonnull(c);
    ck_assert(given);
    ck_assert_str_eq(c->socket, "/run/x/s.sock");
    fp_conf_destroy(&c);
    unit_write_file(file, "socket = \"relative\"\n");
    ck_assert_ptr_null(fp_conf_read(file, &given));
    ck_assert(!given);
}
END_TEST

START_TEST(users_that_cannot_be)
{
    char *nobody[] = { strdup("user=no-such-user") }, *root[] = { strdup("user=root") };

    ck_assert(!load_as_is(NULL, nobody, 1));
    ck_assert_ptr_nonnull(strstr(said, "no-such-user"));
    ck_assert(!load_as_is(NULL, root, 1));
    ck_assert_ptr_nonnull(strstr(said, "root"));
    ck_assert_uint_eq(lines_said(), 1);
    free(nobody[0]);
    free(root[0]);
}
END_TEST

START_TEST(root_must_name_a_user)
{
    const bool taken = load_as_is(NULL, NULL, 0);

    ck_assert_int_eq(taken, geteuid() != 0);
    if (taken)
        ck_assert_uint_eq(conf->uid, geteuid());
    else
        ck_assert_ptr_nonnull(strstr(said, "user"));
}
END_TEST

/* ---- hostile files ---- */

START_TEST(changed_files_are_harmless)
{
    static const char good[] = "socket = \"/run/x\" # c\nroots = {\"/var/www\", \"/srv\"}\n"
                               "workers = 4\nlog_level = \"info\"\n"
                               "mount \"/srv\" { watch = \"ttl\" ttl_ms = 5 }\n";
    char text[sizeof(good)];
    uint64_t seed = 5 + (uint64_t)_i;

    for (int i = 0; i < 300; i++) {
        strcpy(text, good);
        for (uint64_t k = 1 + unit_random(&seed) % 4; k > 0; k--) {
            const char c = "\"{}=#,\n x5\\$'/*+"[unit_random(&seed) % 16];

            text[unit_random(&seed) % (sizeof(good) - 1)] = c;
        }
        if (!load(text, NULL))
            ck_assert_msg(said[0] != '\0', "silently refused: %s", text);
    }
}
END_TEST

/* A warning, and the settings hold. */
START_TEST(timeouts_that_do_not_go_together)
{
    ck_assert(load("lookup_timeout_ms = 1999\n", NULL));
    ck_assert_ptr_nonnull(strstr(said, "lookup_timeout_ms (1999) is below mount_timeout_ms (2000)"));
    ck_assert_uint_eq(conf->lookup_timeout_ms, 1999);
    ck_assert(load("lookup_timeout_ms = 2000\n", NULL));
    ck_assert_str_eq(said, "");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conf");
    TCase *t = unit_add_case(s, "taken", setup, teardown, 0);

    tcase_add_test(t, timeouts_that_do_not_go_together);
    tcase_add_test(t, nothing_set);
    tcase_add_test(t, without_filters);
    tcase_add_test(t, reread_from_a_descriptor);
    tcase_add_test(t, empty_files);
    tcase_add_test(t, every_setting_from_a_file);
    tcase_add_test(t, sections_of_mounts);
    tcase_add_test(t, override_wins);
    tcase_add_test(t, every_setting_by_override);
    tcase_add_test(t, destroying_nothing);
    tcase_add_test(t, null_device_is_an_empty_file);
    tcase_add_test(t, user_is_taken);
    tcase_add_test(t, group_is_taken);
    tcase_add_test(t, settings_that_need_a_restart);
    tcase_add_test(t, read_without_becoming_the_daemon);
    t = unit_add_case(s, "refused", setup, teardown, 30);
    tcase_add_loop_test(t, numbers_that_are_none_or_out_of_range, 0, NUMBERS);
    tcase_add_test(t, bounds_are_said);
    tcase_add_test(t, units_of_memory);
    tcase_add_test(t, settings_of_earlier_releases);
    tcase_add_test(t, unknown_settings);
    tcase_add_test(t, overrides_that_are_none);
    tcase_add_test(t, mistakes_in_the_file);
    tcase_add_test(t, paths_that_are_not_normal);
    tcase_add_test(t, socket_path_of_the_most_bytes);
    tcase_add_test(t, log_targets_levels_and_ways_of_watching);
    tcase_add_test(t, sections_with_mistakes);
    tcase_add_test(t, files_that_cannot_be_read);
    tcase_add_test(t, users_that_cannot_be);
    tcase_add_test(t, root_must_name_a_user);
    tcase_add_loop_test(t, changed_files_are_harmless, 0, 4);
    return unit_run(s);
}
