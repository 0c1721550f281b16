/* SPDX-License-Identifier: Apache-2.0 */
/* The glue of Apache 1.3: names and path-info by an answer. */
#include "config.h"
#include "httpd13/path_info.h"

#include "base/path.h"
#include "question/held.h"
#include "unit.h"

/* The file system of these tests: path, type, outcome of what a link leads to. */
static const struct {
    const char *path;
    mode_t type;
    fp_status status, target;
    mode_t target_type;
} nodes[] = {
    { "/", S_IFDIR, FP_OK, FP_OK, 0 },
    { "/d", S_IFDIR, FP_OK, FP_OK, 0 },
    { "/d/e", S_IFDIR, FP_OK, FP_OK, 0 },
    { "/d/f", S_IFREG, FP_OK, FP_OK, 0 },
    { "/d/p", S_IFIFO, FP_OK, FP_OK, 0 },
    { "/d/to-file", S_IFLNK, FP_OK, FP_OK, S_IFREG },
    { "/d/to-dir", S_IFLNK, FP_OK, FP_OK, S_IFDIR },
    { "/d/to-dir/f", S_IFREG, FP_OK, FP_OK, 0 },
    { "/d/to-nothing", S_IFLNK, FP_OK, FP_ABSENT, 0 },
    { "/d/to-below-file", S_IFLNK, FP_OK, FP_NOTDIR, 0 },
    { "/d/to-itself", S_IFLNK, FP_OK, FP_LOOP, 0 },
    { "/d/to-closed", S_IFLNK, FP_OK, FP_DENIED, 0 },
    { "/d/closed", S_IFDIR, FP_OK, FP_OK, 0 },
    { "/d/closed/f", 0, FP_DENIED, FP_OK, 0 },
    { "/d/broken", 0, FP_IOERROR, FP_OK, 0 },
};

static struct fp_answer answer;

/* Appends the step of the first end bytes of path; false: the walk ends there. */
static bool add_step(const char *path, size_t end)
{
    struct fp_step *s = &answer.steps[answer.n_steps++];

    memset(s, 0, sizeof(*s));
    s->end = (uint16_t)end;
    s->status = FP_ABSENT;
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        if (strlen(nodes[i].path) != end || memcmp(nodes[i].path, path, end) != 0)
            continue;
        s->status = nodes[i].status;
        s->self = (struct fp_meta){ .mode = nodes[i].type, .ino = i + 1 };
        s->target_status = nodes[i].target;
        s->target = (struct fp_meta){ .mode = nodes[i].target_type, .ino = i + 101 };
    }
    return fp_step_is_dir(s);
}

/* The daemon's answer about a path in normal form. */
static void walk(const char *path, size_t len)
{
    size_t end = 1;

    fp_answer_init(&answer, FP_OK);
    while (add_step(path, end) && end < len)
        end = fp_path_child_len(path, len, end);
}

static struct fp_held held_on(const char *name)
{
    static char path[FP_MAX_PATH + 1];
    size_t len = fp_path_info_normalise(name, path);

    ck_assert_uint_ne(len, 0);
    walk(path, len);
    return (struct fp_held){ .answer = &answer, .path = path, .path_len = len };
}

/* ---- names ---- */

static const struct {
    const char *name;
    enum fp_found found;
    const char *kept, *path_info;
    uint64_t ino; /* of the metadata; 0: none */
} names[] = {
    { "/d/f", FP_FOUND_FILE, "/d/f", "", 4 },
    { "/d/f/", FP_FOUND_FILE, "/d/f", "/", 4 },
    { "/d/f/more/info", FP_FOUND_FILE, "/d/f", "/more/info", 4 },
    { "/d/f//more//", FP_FOUND_FILE, "/d/f", "//more//", 4 },
    { "//d//f/x", FP_FOUND_FILE, "//d//f", "/x", 4 },
    { "/d", FP_FOUND_FILE, "/d", "", 2 },
    { "/d/e//", FP_FOUND_FILE, "/d/e", "//", 3 },
    { "/d/p", FP_FOUND_FILE, "/d/p", "", 5 },
    { "/d/p/x", FP_FOUND_FILE, "/d/p", "/x", 5 },
    { "/d/to-file/x", FP_FOUND_FILE, "/d/to-file", "/x", 106 },
    { "/d/to-dir", FP_FOUND_FILE, "/d/to-dir", "", 107 },
    { "/d/to-dir/f", FP_FOUND_FILE, "/d/to-dir/f", "", 8 },
    { "/d/to-dir/none/x", FP_FOUND_ABSENT, "/d/to-dir/none", "/x", 107 },
    { "/d/none", FP_FOUND_ABSENT, "/d/none", "", 2 },
    { "/d/none/", FP_FOUND_ABSENT, "/d/none", "/", 2 },
    { "/d/e//none//deeper/x", FP_FOUND_ABSENT, "/d/e//none", "//deeper/x", 3 },
    { "/d/to-nothing", FP_FOUND_ABSENT, "/d/to-nothing", "", 2 },
    { "/d/to-nothing/x", FP_FOUND_ABSENT, "/d/to-nothing", "/x", 2 },
    { "/d/to-below-file/x", FP_FOUND_ABSENT, "/d/to-below-file", "/x", 2 },
    { "/none", FP_FOUND_NOTHING, "/none", "", 0 },
    { "/none/deeper//", FP_FOUND_NOTHING, "/none/deeper//", "", 0 },
    { "/d/to-itself", FP_FOUND_UNKNOWN, NULL, NULL, 0 },
    { "/d/to-itself/x", FP_FOUND_UNKNOWN, NULL, NULL, 0 },
    { "/d/to-closed", FP_FOUND_UNKNOWN, NULL, NULL, 0 },
    { "/d/closed/f", FP_FOUND_UNKNOWN, NULL, NULL, 0 },
    { "/d/closed/f/x", FP_FOUND_UNKNOWN, NULL, NULL, 0 },
    { "/d/broken", FP_FOUND_UNKNOWN, NULL, NULL, 0 },
};

START_TEST(found_as_by_stat)
{
    const struct fp_held held = held_on(names[_i].name);
    struct fp_path_info found = fp_path_info_find(&held, names[_i].name);

    ck_assert_int_eq(found.found, names[_i].found);
    if (names[_i].kept != NULL) {
        ck_assert_uint_eq(found.cut, strlen(names[_i].kept));
        ck_assert_str_eq(names[_i].name + found.cut, names[_i].path_info);
    }
    ck_assert_uint_eq(found.meta != NULL ? found.meta->ino : 0, names[_i].ino);
}
END_TEST

static const struct {
    const char *name, *normal; /* NULL: it has no normal form */
} forms[] = {
    { "/d/f", "/d/f" },         { "//d///f//", "/d/f" }, { "/", "/" },    { "//", "/" }, { "/d/./f", NULL },
    { "/d/../f", NULL },        { "/d/..", NULL },       { "d/f", NULL }, { "", NULL },  { "/d/.f", "/d/.f" },
    { "/d/f/ /x", "/d/f/ /x" },
};

START_TEST(normal_form)
{
    char path[FP_MAX_PATH + 1];
    size_t len = fp_path_info_normalise(forms[_i].name, path);

    ck_assert_uint_eq(len, forms[_i].normal != NULL ? strlen(forms[_i].normal) : 0);
    if (len > 0)
        ck_assert_str_eq(path, forms[_i].normal);
}
END_TEST

START_TEST(longest_name)
{
    static char name[FP_MAX_PATH + 8];
    char path[FP_MAX_PATH + 1];

    for (size_t i = 0; i < FP_MAX_PATH; i++)
        name[i] = i % 100 == 0 ? '/' : 'a';
    ck_assert_uint_eq(fp_path_info_normalise(name, path), FP_MAX_PATH);
    name[FP_MAX_PATH] = 'b';
    ck_assert_uint_eq(fp_path_info_normalise(name, path), 0);
}
END_TEST

START_TEST(metadata_as_stat_has_it)
{
    const struct fp_meta m = { .mode = S_IFREG | 0640,
                               .uid = 1,
                               .gid = 2,
                               .dev = 3,
                               .ino = 4,
                               .nlink = 5,
                               .size = 6,
                               .blocks = 8,
                               .atime = { 10, 11 },
                               .mtime = { 12, 13 },
                               .ctime = { 14, 15 } };
    struct stat st;

    memset(&st, 0xff, sizeof(st));
    fp_path_info_fill(&st, &m);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
    ck_assert_uint_eq(st.st_uid, 1);
    ck_assert_uint_eq(st.st_gid, 2);
    ck_assert_uint_eq(st.st_dev, 3);
    ck_assert_uint_eq(st.st_ino, 4);
    ck_assert_uint_eq(st.st_nlink, 5);
    ck_assert_int_eq(st.st_size, 6);
    ck_assert_int_eq(st.st_blocks, 8);
    ck_assert_int_eq(st.st_atim.tv_sec, 10);
    ck_assert_int_eq(st.st_mtim.tv_sec, 12);
    ck_assert_int_eq(st.st_mtim.tv_nsec, 13);
    ck_assert_int_eq(st.st_ctim.tv_sec, 14);
    ck_assert_uint_eq(st.st_rdev, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("path_info");
    TCase *t = unit_add_case(s, "names", NULL, NULL, 0);

    tcase_add_loop_test(t, found_as_by_stat, 0, (int)(sizeof(names) / sizeof(names[0])));
    tcase_add_loop_test(t, normal_form, 0, (int)(sizeof(forms) / sizeof(forms[0])));
    tcase_add_test(t, longest_name);
    tcase_add_test(t, metadata_as_stat_has_it);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
