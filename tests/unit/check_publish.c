/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatch's writes to shared memory: answers of every source, contents, and places of moved
 * ones. */
#include "config.h"
#include "lookup/publish.h"

#include "dispatch_kit.h"
#include "lease_kit.h"
#include "shared/answer_table.h"
#include "shared/contents.h"

static struct fp_answer_view *view;
static struct fp_contents_view *bytes;
static struct fp_lease_view *lease_view;
static struct fp_answer found;
static const struct fp_chosen none = { .n = 0 };

static void begin(void)
{
    const struct fp_cache_content content = { .file_max = 1000 };

    setup();
    fp_cache_set_content(cache, &content);
    view = fp_answer_view_create(fp_answer_table_fd(tables.answers), &none);
    bytes = fp_contents_view_create(fp_contents_fd(tables.contents), false);
    lease_view = unit_view(leases);
    ck_assert(view != NULL && bytes != NULL);
}

static void end(void)
{
    fp_answer_view_destroy(&view);
    fp_contents_view_destroy(&bytes);
    fp_lease_view_release(&lease_view);
    teardown();
}

static bool find(const char *path)
{
    return fp_answer_view_find(view, path, strlen(path), &found);
}

static bool is_valid(void)
{
    for (unsigned i = 0; i < found.n_steps; i++) {
        const struct fp_step *s = &found.steps[i];

        if (!fp_lease_view_is_valid(lease_view, s->slot, s->generation, fp_now_ms()))
            return false;
    }
    return true;
}

/* It is there, and holds. */
static bool holds(const char *path)
{
    return find(path) && is_valid();
}

static uint64_t last_ino(void)
{
    return found.steps[found.n_steps - 1].self.ino;
}

static void know_a_directory(void)
{
    ask(&early, "/a");
    finish("/", "d");
    finish("/a", "dd");
}

/* The walk of the path ends with the content, a byte. */
static void finish_with_content(const char *path, char version)
{
    static struct fp_walk_result result;
    static struct fp_answer a;
    struct job job = take_walk(path);

    fp_walk_result_init(&result);
    kit_answer(&a, path, (char[]){ 'd', 'd', 'f', version, '\0' });
    a.source = FP_SOURCE_WORKER;
    a.steps[2].self.size = 1;
    a.local = a.content = result.settled = true;
    if (job.task->base_len > 0) {
        a.steps[0] = a.steps[2];
        a.n_steps = 1;
    }
    job.done(job.ctx, FP_OK, &a, &result, job.began_ms);
    ck_assert_int_eq(a.fd, -1);
}

static char content_of(void)
{
    char byte = '?';

    ck_assert(found.content);
    return fp_contents_view_read(bytes, found.content_at, &byte, 1) ? byte : '?';
}

/* The ring comes round once. */
static void overwrite_contents(void)
{
    static const char zeros[1000];
    int fd = memfd_create("zeros", MFD_CLOEXEC);

    ck_assert_int_eq(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
    for (size_t n = 0; n <= FP_CONTENTS_LEAST / sizeof(zeros); n++)
        ck_assert_uint_ne(fp_contents_put(tables.contents, "/x", 2, fd, sizeof(zeros)), FP_NO_CONTENT);
    fp_close(&fd);
}

START_TEST(answers_of_walks_and_hits)
{
    const struct fp_names names = { 1, { { ".acl", 4 } } };

    know_a_directory();
    ck_assert(holds("/a"));
    ck_assert(holds("/"));
    ask(&early, "/a/f");
    ck_assert(!find("/a/f"));
    finish("/a/f", "ddf");
    ck_assert(holds("/a/f"));
    ck_assert(found.readable && !found.content && found.n_steps == 3);
    ck_assert_uint_eq(last_ino(), ino_of("/a/f", '0'));
    ask(&early, "/a/none/x/y");
    finish("/a/none/x", "dda");
    ck_assert(holds("/a/none/x/y"));
    ck_assert(!found.readable && found.n_steps == 3);
    /* Nobody has looked for the access files of a name that a client brings now. */
    ck_assert_uint_eq(fp_dispatch_add_names(dispatch, &names)->n, 1);
    ck_assert(!holds("/a/f"));
    ask(&other, "/a/f");
    ck_assert(!other.answered);
}
END_TEST

START_TEST(forgotten_answers_do_not_hold)
{
    know_a_directory();
    ask(&early, "/a/f");
    finish("/a/f", "ddf");
    ck_assert(holds("/a/f"));
    forget("/a/f", false);
    ck_assert(!holds("/a/f"));
    /* An earlier walk's result is for the questions that wait for it. */
    ask(&early, "/a/f");
    forget("/a/f", false);
    finish("/a/f", "ddf1");
    ck_assert(!holds("/a/f"));
    ask(&late, "/a/f");
    finish("/a/f", "ddf2");
    ck_assert(holds("/a/f"));
    ck_assert_uint_eq(last_ino(), ino_of("/a/f", '2'));
}
END_TEST

START_TEST(contents_come_with_answers)
{
    know_a_directory();
    ask(&early, "/a/f");
    finish_with_content("/a/f", '7');
    ck_assert(early.answered);
    ck_assert_int_eq((int)early.status, FP_OK);
    ck_assert(holds("/a/f"));
    ck_assert(found.readable && found.local);
    ck_assert_int_eq(content_of(), '7');
    ck_assert_uint_eq(fp_cache_counts(cache).content_files, 1);
}
END_TEST

/* Its metadata stay known, and the answer holds; only the content is read again. */
START_TEST(overwritten_contents_are_read_again)
{
    know_a_directory();
    ask(&early, "/a/f");
    finish_with_content("/a/f", '7');
    overwrite_contents();
    ck_assert_uint_eq(fp_cache_counts(cache).content_files, 0);
    ck_assert(holds("/a/f"));
    ck_assert_int_eq(content_of(), '?');
    ask(&late, "/a/f");
    ck_assert(!late.answered);
    ck_assert_uint_eq(n_jobs, 1);
    ck_assert_uint_eq(jobs[0].task->content_max, 1000);
    finish_with_content("/a/f", '7');
    ck_assert(late.answered);
    ck_assert(holds("/a/f"));
    ck_assert_int_eq(content_of(), '7');
}
END_TEST

START_TEST(contents_in_use_move)
{
    uint64_t before;

    know_a_directory();
    ask(&early, "/a/f");
    finish_with_content("/a/f", '7');
    for (int i = 0; i < 5; i++) {
        ck_assert(holds("/a/f"));
        ck_assert_int_eq(content_of(), '7');
        before = found.content_at;
        fp_lease_view_reference(lease_view, found.steps[2].slot);
        overwrite_contents();
        ck_assert(holds("/a/f"));
        ck_assert_uint_gt(found.content_at, before);
        ck_assert_int_eq(content_of(), '7');
    }
    /* No question was needed. */
    ask(&late, "/a/f");
    ck_assert(late.answered);
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("publish");
    TCase *t = unit_add_case(s, "publish", begin, end, 0);

    tcase_add_test(t, answers_of_walks_and_hits);
    tcase_add_test(t, forgotten_answers_do_not_hold);
    tcase_add_test(t, contents_come_with_answers);
    tcase_add_test(t, overwritten_contents_are_read_again);
    tcase_add_test(t, contents_in_use_move);
    return unit_run(s);
}
