/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks that answer with a file's content. The test plays the clock and the copying, so that a file
 * is old at once, and changes while it is copied.
 */
#include "config.h"
#include "workers/resolve.h"

#include <sys/mman.h>

#include "workers/content.h"
#include "resolve_kit.h"

#define MAX 100u

static bool settled, fails;
static const char *appended_to;    /* while it is copied; NULL: nothing */
static const char *appended_first; /* the same, after the first look at it */
static unsigned copies, asking_looks;

fp_status __real_fp_look_synced(int fd, int sync, struct fp_meta *m, uint32_t *mount_r);
fp_status __wrap_fp_look_synced(int fd, int sync, struct fp_meta *m, uint32_t *mount_r);

fp_status __wrap_fp_look_synced(int fd, int sync, struct fp_meta *m, uint32_t *mount_r)
{
    asking_looks += sync != AT_STATX_DONT_SYNC;
    return __real_fp_look_synced(fd, sync, m, mount_r);
}

int __wrap_fp_resolver_sync(const struct fp_resolver *r, uint32_t mount);

/* As on a file system of the network: the first look at a file is not enough. */
int __wrap_fp_resolver_sync(const struct fp_resolver *r, uint32_t mount)
{
    (void)r;
    (void)mount;
    return AT_STATX_FORCE_SYNC;
}

static void append_to(const char **path)
{
    const int fd = *path != NULL ? open(*path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    if (fd == -1)
        return;
    ck_assert_int_eq(write(fd, "more", 4), 4);
    close(fd);
    *path = NULL;
}

bool fp_content_is_settled(const struct fp_meta *m, const struct fp_mount_traits *traits)
{
    (void)m;
    (void)traits;
    return settled;
}

bool fp_content_is_wanted(const struct fp_meta *m, uint32_t max, const struct fp_mount_traits *traits)
{
    const bool is = settled && m->size > 0 && m->size <= max;

    (void)traits;
    append_to(&appended_first);
    return is;
}

int fp_content_create(int file, uint64_t size)
{
    char room[MAX];
    int fd = fails ? -1 : memfd_create("played", MFD_CLOEXEC);

    copies++;
    ck_assert_uint_le(size, MAX);
    ck_assert_int_eq(pread(file, room, size, 0), (ssize_t)size);
    if (fd != -1)
        ck_assert_int_eq(pwrite(fd, room, size, 0), (ssize_t)size);
    append_to(&appended_to);
    return fd;
}

static void begin(void)
{
    setup();
    settled = true;
    fails = false;
    appended_to = appended_first = NULL;
    copies = 0;
    unit_write_file(in_dir("file"), "content");
}

static void resolve_as(const char *name, const struct fp_meta *known, uint32_t max)
{
    struct fp_task t = { .content_max = max, .has_known = known != NULL };

    if (known != NULL)
        t.known = *known;
    resolve_as_asked(name, t);
}

static void assert_content_of(const char *text)
{
    ck_assert(answer.content && answer.local && !answer.unchanged);
    ck_assert_uint_eq(fp_step_target(last())->size, strlen(text));
    assert_content(text);
    ck_assert_int_ne(fcntl(answer.fd, F_GET_SEALS), -1); /* it is the memfd */
}

static void assert_descriptor_of(const char *text)
{
    struct stat st;

    ck_assert(!answer.content && !answer.local && !answer.unchanged);
    ck_assert_int_eq(fstat(answer.fd, &st), 0);
    assert_meta(fp_step_target(last()), &st);
    assert_content(text);
}

START_TEST(content_of_a_file)
{
    make_link("file", "link");
    resolve_as("file", NULL, MAX);
    assert_content_of("content");
    resolve_as("link", NULL, MAX);
    assert_content_of("content");
    resolve_as("file", NULL, 7);
    assert_content_of("content");
}
END_TEST

START_TEST(descriptor_where_no_content_is_due)
{
    resolve_as("file", NULL, 0);
    assert_descriptor_of("content");
    resolve_as("file", NULL, 6);
    assert_descriptor_of("content");
    settled = false;
    resolve_as("file", NULL, MAX);
    assert_descriptor_of("content");
    ck_assert_uint_eq(copies, 0);
}
END_TEST

/* The file is appended to at that moment, and its copy is of no use. */
static void assert_copied_in_vain(const char **at)
{
    char path[PATH_MAX];

    *at = strcpy(path, in_dir("file"));
    resolve_as("file", NULL, MAX);
    ck_assert_uint_eq(copies, 1);
    assert_descriptor_of("contentmore");
}

START_TEST(file_that_changes_while_it_is_copied)
{
    assert_copied_in_vain(&appended_to);
}
END_TEST

/* The first look asks no server, and the copy is of the file as it was then. */
START_TEST(file_that_changed_after_the_first_look)
{
    fails = _i == 1;
    assert_copied_in_vain(&appended_first);
}
END_TEST

/* The look after the reading counts for the one that a file without a content gets. */
START_TEST(content_costs_no_look_more)
{
    unsigned before;

    asking_looks = 0;
    resolve_as("file", NULL, 0);
    before = asking_looks;
    asking_looks = 0;
    resolve_as("file", NULL, MAX);
    assert_content_of("content");
    ck_assert_uint_eq(asking_looks, before);
}
END_TEST

START_TEST(file_that_cannot_be_copied)
{
    fails = true;
    resolve_as("file", NULL, MAX);
    ck_assert_uint_eq(copies, 1);
    assert_descriptor_of("content");
}
END_TEST

/* It was open, and becomes a content when that is due. */
START_TEST(unchanged_file)
{
    struct fp_meta known;

    resolve_as("file", NULL, 0);
    known = last()->self;
    resolve_as("file", &known, 0);
    ck_assert(answer.unchanged && !answer.content);
    ck_assert_int_eq(answer.fd, -1);
    settled = false;
    resolve_as("file", &known, MAX);
    ck_assert(answer.unchanged && !answer.content);
    settled = true;
    resolve_as("file", &known, MAX);
    assert_content_of("content");
}
END_TEST

START_TEST(unchanged_file_that_cannot_be_copied)
{
    struct fp_meta known;

    resolve_as("file", NULL, 0);
    known = last()->self;
    fails = true;
    resolve_as("file", &known, MAX);
    ck_assert(answer.unchanged && !answer.content && !answer.local);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_uint_eq(copies, 1);
}
END_TEST

START_TEST(directories_and_what_is_absent)
{
    make_dir("d");
    resolve_as("d", NULL, UINT32_MAX);
    assert_place_or_nothing();
    ck_assert(!answer.content);
    resolve_as("no", NULL, UINT32_MAX);
    ck_assert(!answer.content);
    ck_assert_uint_eq(copies, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("resolve_content");
    TCase *t = unit_add_case(s, "content", begin, teardown, 0);

    tcase_add_test(t, content_of_a_file);
    tcase_add_test(t, descriptor_where_no_content_is_due);
    tcase_add_test(t, file_that_changes_while_it_is_copied);
    tcase_add_loop_test(t, file_that_changed_after_the_first_look, 0, 2);
    tcase_add_test(t, content_costs_no_look_more);
    tcase_add_test(t, file_that_cannot_be_copied);
    tcase_add_test(t, unchanged_file);
    tcase_add_test(t, unchanged_file_that_cannot_be_copied);
    tcase_add_test(t, directories_and_what_is_absent);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
