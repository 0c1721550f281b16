/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/resolve.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "resolve_kit.h"

/* ---- files and directories ---- */

START_TEST(root)
{
    resolve_path("/");
    assert_steps("/");
    ck_assert_uint_eq(answer.n_steps, 1);
    ck_assert_uint_eq(last()->end, 1);
    assert_place_or_nothing();
    ck_assert_int_eq((int)answer.source, FP_SOURCE_WORKER);
}
END_TEST

START_TEST(files_and_directories)
{
    unit_write_file(in_dir("file"), "content");
    unit_write_file(in_dir("empty"), "");
    for_each_name(make_dir, "d d/e");
    unit_write_file(in_dir("d/e/.hidden"), "deep");
    assert_file("file", "content");
    assert_file("empty", "");
    assert_file("d/e/.hidden", "deep");
    assert_thing("d", S_IFDIR);
    assert_thing("d/e", S_IFDIR);
}
END_TEST

START_TEST(absent_names)
{
    make_dir("d");
    resolve("d/no");
    assert_steps(in_dir("d/no"));
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
    ck_assert_uint_eq(last()->end, strlen(in_dir("d/no")));
    assert_ends("no/x/y", FP_ABSENT, "no");
    ck_assert_int_eq(answer.fd, -1);
}
END_TEST

START_TEST(below_a_file)
{
    unit_write_file(in_dir("file"), "content");
    make_link("file", "link");
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "file" : "link";

        resolve_path(unit_join(in_dir(name), "x/y"));
        ck_assert_int_eq((int)last()->status, FP_OK);
        ck_assert_uint_eq(last()->end, strlen(in_dir(name)));
        ck_assert(S_ISREG(fp_step_target(last())->mode));
        ck_assert_int_eq(answer.fd, -1);
    }
}
END_TEST

START_TEST(unusual_names)
{
    static const char *const names[] = { " ",   "a b", "new\nline", "\xff\xfe", "...",
                                         "..a", "%2e", "*",         "\\",       "\"'" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unit_write_file(in_dir(names[i]), "odd");
        assert_file(names[i], "odd");
    }
}
END_TEST

START_TEST(longest_name)
{
    char name[257];

    memset(name, 'n', sizeof(name));
    name[255] = '\0';
    unit_write_file(in_dir(name), "long");
    assert_file(name, "long");
    name[0] = 'm';
    resolve(name);
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
    name[255] = 'n';
    name[256] = '\0';
    resolve(name);
    ck_assert_int_eq((int)last()->status, FP_NAMETOOLONG);
    ck_assert_int_eq(answer.fd, -1);
}
END_TEST

START_TEST(longest_path)
{
    static char path[FP_MAX_PATH + 1];

    memset(path, 'n', FP_MAX_PATH);
    for (size_t i = 0; i < FP_MAX_PATH; i += 100)
        path[i] = '/';
    resolve_path(path);
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
    ck_assert_uint_eq(last()->end, 100);
    for (size_t i = 0; i < FP_MAX_PATH; i += 2)
        path[i] = '/';
    path[FP_MAX_PATH - 1] = 'n';
    resolve_path(path);
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
}
END_TEST

static unsigned count_components(const char *path)
{
    unsigned n = 1;

    for (; *path != '\0'; path++)
        n += *path == '/';
    return n;
}

START_TEST(deepest_path)
{
    char path[PATH_MAX];
    unsigned n = count_components(dir);

    snprintf(path, sizeof(path), "%s", dir);
    for (; n < FP_MAX_STEPS - 1; n++) {
        strcat(path, "/d");
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
    strcat(path, "/f");
    unit_write_file(path, "deep");
    resolve_path(path);
    assert_steps(path);
    ck_assert_uint_eq(answer.n_steps, FP_MAX_STEPS);
    assert_open("deep");
    path[strlen(path) - 1] = 'd';
    ck_assert_int_eq(mkdir(path, 0755), 0);
    resolve_path(path);
    ck_assert_uint_eq(last()->end, strlen(path));
    strcat(path, "/f");
    unit_write_file(path, "deeper");
    resolve_path(path);
    assert_no_answer(FP_TOODEEP);
}
END_TEST

START_TEST(deep_path_that_ends_early)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", in_dir("no"));
    for (int i = 0; i < 200; i++)
        strcat(path, "/d");
    resolve_path(path);
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
}
END_TEST

/* ---- symbolic links ---- */

START_TEST(links_to_files)
{
    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    make_link("d/file", "relative");
    make_link("../d/file", "d/dotted");
    make_link(in_dir("d/file"), "absolute");
    make_link("relative", "chain1");
    make_link("./chain1", "chain2");
    make_link("d//file", "slashes");
    assert_file("relative", "content");
    assert_file("d/dotted", "content");
    assert_file("absolute", "content");
    assert_file("chain2", "content");
    assert_file("slashes", "content");
    ck_assert(S_ISLNK(last()->self.mode));
    ck_assert(S_ISREG(last()->target.mode));
}
END_TEST

START_TEST(links_to_directories)
{
    for_each_name(make_dir, "releases releases/42");
    unit_write_file(in_dir("releases/42/file"), "content");
    make_link("releases/42", "current");
    make_link("../releases", "releases/self");
    make_link("/", "root");
    assert_file("current/file", "content");
    assert_file("releases/self/self/42/file", "content");
    assert_thing("current", S_IFDIR);
    assert_thing("root", S_IFDIR);
    assert_thing("root/proc", S_IFDIR);
}
END_TEST

START_TEST(links_that_lead_nowhere)
{
    static const struct {
        const char *text;
        fp_status status;
    } rows[] = { { "no", FP_ABSENT },
                 { "/no/such/thing", FP_ABSENT },
                 { "link", FP_LOOP },
                 { "file/x", FP_NOTDIR },
                 { "file/", FP_NOTDIR } };

    unit_write_file(in_dir("file"), "content");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make_link(rows[i].text, "link");
        resolve("link");
        assert_steps(in_dir("link"));
        ck_assert_int_eq((int)last()->status, FP_OK);
        ck_assert(S_ISLNK(last()->self.mode));
        ck_assert_int_eq((int)last()->target_status, (int)rows[i].status);
        ck_assert_int_eq(answer.fd, -1);
        resolve("link/below");
        ck_assert_uint_eq(last()->end, strlen(in_dir("link")));
        ck_assert_int_eq((int)last()->target_status, (int)rows[i].status);
        remove_name("link");
    }
}
END_TEST

START_TEST(link_loop_of_two)
{
    make_link("b", "a");
    make_link("a", "b");
    assert_leads("a", FP_LOOP);
    assert_leads("b/c", FP_LOOP);
}
END_TEST

START_TEST(long_link_chains)
{
    char name[16], text[16] = "file";

    unit_write_file(in_dir("file"), "content");
    for (int i = 1; i <= 60; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        make_link(text, name);
        resolve(name);
        /* The kernel follows 40; the walk reads the first one by itself. */
        if (i != 41)
            assert_steps(in_dir(name));
        strcpy(text, name);
    }
    ck_assert_int_eq((int)last()->target_status, FP_LOOP);
}
END_TEST

START_TEST(longest_link_text)
{
    char text[PATH_MAX];

    memset(text, '/', sizeof(text));
    snprintf(text + sizeof(text) - 5, 5, "proc");
    make_link(text, "link");
    assert_thing("link", S_IFDIR);
}
END_TEST

START_TEST(owner_of_a_link_is_its_own)
{
    if (geteuid() != 0)
        return;
    unit_write_file(in_dir("file"), "content");
    make_link("file", "link");
    ck_assert_int_eq(lchown(in_dir("link"), UNIT_NOBODY, UNIT_NOBODY), 0);
    assert_file("link", "content");
    ck_assert_uint_eq(last()->self.uid, UNIT_NOBODY);
    ck_assert_uint_eq(last()->target.uid, 0);
}
END_TEST

/* ---- files that are never opened ---- */

/* Opening the FIFO would wait for a writer, for ever. */
START_TEST(fifo_is_not_opened)
{
    ck_assert_int_eq(mkfifo(in_dir("fifo"), 0644), 0);
    make_link("fifo", "link");
    assert_thing("fifo", S_IFIFO);
    assert_thing("link", S_IFIFO);
    resolve("fifo/below");
    ck_assert_uint_eq(last()->end, strlen(in_dir("fifo")));
    ck_assert_int_eq(answer.fd, -1);
}
END_TEST

START_TEST(device_is_not_opened)
{
    static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/tty" };

    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        resolve_path(devices[i]);
        if (last()->status != FP_OK)
            continue;
        ck_assert(S_ISCHR(fp_step_target(last())->mode));
        ck_assert_int_eq(answer.fd, -1);
    }
    make_link("/dev/zero", "link");
    assert_thing("link", S_IFCHR);
}
END_TEST

START_TEST(socket_is_not_opened)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_lt(snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", in_dir("s")),
                     (int)sizeof(addr.sun_path));
    ck_assert_int_eq(bind(sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_thing("s", S_IFSOCK);
    close(sock);
}
END_TEST

/* ---- rights ---- */

START_TEST(file_that_may_not_be_read)
{
    unit_write_file(in_dir("secret"), "content");
    make_link("secret", "link");
    ck_assert_int_eq(chmod(in_dir("secret"), 0), 0);
    become_nobody();
    assert_thing("secret", S_IFREG);
    assert_thing("link", S_IFREG);
    become_root_again();
}
END_TEST

START_TEST(directory_that_may_not_be_searched)
{
    make_dir("closed");
    unit_write_file(in_dir("closed/file"), "content");
    make_link("closed/file", "link");
    ck_assert_int_eq(chmod(in_dir("closed"), 0600), 0);
    become_nobody();
    assert_thing("closed", S_IFDIR);
    resolve("closed/file");
    assert_steps(in_dir("closed/file"));
    ck_assert_int_eq((int)last()->status, FP_DENIED);
    ck_assert_uint_eq(last()->end, strlen(in_dir("closed/file")));
    assert_ends("closed/no/x", FP_DENIED, "closed/no");
    assert_leads("link", FP_DENIED);
    ck_assert_int_eq(answer.fd, -1);
    become_root_again();
    chmod(in_dir("closed"), 0755);
}
END_TEST

START_TEST(directory_that_may_only_be_searched)
{
    make_dir("blind");
    unit_write_file(in_dir("blind/file"), "content");
    ck_assert_int_eq(chmod(in_dir("blind"), 0711), 0);
    become_nobody();
    assert_file("blind/file", "content");
    become_root_again();
}
END_TEST

/* ---- roots ---- */

static void make_site(void)
{
    for_each_name(make_dir, "site site/sub site2 private");
    unit_write_file(in_dir("site/sub/file"), "public");
    unit_write_file(in_dir("site2/file"), "other");
    unit_write_file(in_dir("private/file"), "private");
}

START_TEST(only_below_the_roots)
{
    const char *roots[2] = { strdup(in_dir("site")), NULL };

    make_site();
    settings.roots = roots;
    assert_file("site/sub/file", "public");
    assert_thing("site/sub", S_IFDIR);
    assert_thing("site", S_IFDIR);
    resolve("site/no");
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
    assert_refused(in_dir("site2/file"));
    assert_refused(in_dir("site2"));
    assert_refused(in_dir("private/file"));
    assert_refused(dir);
    assert_refused("/");
    assert_refused("/etc/passwd");
    free((void *)(uintptr_t)roots[0]);
}
END_TEST

START_TEST(links_out_of_the_roots)
{
    const char *roots[2] = { strdup(in_dir("site")), NULL };

    make_site();
    make_link("../private/file", "site/file");
    make_link("../private", "site/directory");
    make_link("/etc/passwd", "site/passwd");
    make_link("sub/file", "site/inside");
    make_link("../site2/file", "site/neighbour");
    settings.roots = roots;
    assert_file("site/inside", "public");
    assert_refused(in_dir("site/file"));
    assert_refused(in_dir("site/directory/file"));
    assert_refused(in_dir("site/passwd"));
    assert_refused(in_dir("site/neighbour"));
    free((void *)(uintptr_t)roots[0]);
}
END_TEST

START_TEST(several_roots_and_all)
{
    const char *roots[3] = { strdup(in_dir("site")), strdup(in_dir("private")), NULL };
    static const char *const everywhere[] = { "/", NULL };
    static const char *const none[] = { NULL };

    make_site();
    make_link("../private/file", "site/link");
    settings.roots = roots;
    assert_file("site/link", "private");
    assert_file("private/file", "private");
    assert_refused(in_dir("site2/file"));
    settings.roots = everywhere;
    assert_file("site2/file", "other");
    settings.roots = none;
    assert_file("site2/file", "other");
    free((void *)(uintptr_t)roots[0]);
    free((void *)(uintptr_t)roots[1]);
}
END_TEST

static void add_path_tests(TCase *t)
{
    tcase_add_test(t, root);
    tcase_add_test(t, files_and_directories);
    tcase_add_test(t, absent_names);
    tcase_add_test(t, below_a_file);
    tcase_add_test(t, unusual_names);
    tcase_add_test(t, longest_name);
    tcase_add_test(t, longest_path);
    tcase_add_test(t, deepest_path);
    tcase_add_test(t, deep_path_that_ends_early);
}

static void add_link_tests(TCase *t)
{
    tcase_add_test(t, links_to_files);
    tcase_add_test(t, links_to_directories);
    tcase_add_test(t, links_that_lead_nowhere);
    tcase_add_test(t, link_loop_of_two);
    tcase_add_test(t, long_link_chains);
    tcase_add_test(t, longest_link_text);
    tcase_add_test(t, owner_of_a_link_is_its_own);
}

static Suite *make_suite(void)
{
    Suite *s = suite_create("resolve");
    TCase *t;

    add_path_tests(add_case(s, "paths"));
    add_link_tests(add_case(s, "links"));
    t = add_case(s, "never_opened");
    tcase_add_test(t, fifo_is_not_opened);
    tcase_add_test(t, device_is_not_opened);
    tcase_add_test(t, socket_is_not_opened);
    t = add_case(s, "rights");
    tcase_add_test(t, file_that_may_not_be_read);
    tcase_add_test(t, directory_that_may_not_be_searched);
    tcase_add_test(t, directory_that_may_only_be_searched);
    t = add_case(s, "roots");
    tcase_add_test(t, only_below_the_roots);
    tcase_add_test(t, links_out_of_the_roots);
    tcase_add_test(t, several_roots_and_all);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
