/* SPDX-License-Identifier: Apache-2.0 */
/* On which mount a path lies. */
#include "config.h"
#include "changes/mounts.h"

#include "mounts_kit.h"

START_TEST(longest_point_by_components)
{
    load("1 1 0:1 / / rw - ext4 d rw\n2 1 0:2 / /srv rw - tmpfs t rw\n"
         "3 2 0:3 / /srv/www/htdocs rw - tmpfs t rw\n4 1 0:4 / /srvxy rw - tmpfs t rw\n"
         "5 1 0:5 / /srv-a rw - tmpfs t rw\n");
    assert_on("/=1 /s=1 /srvx=1 /srvx/www=1 /srv=2 /srv/www=2 /srv/www/htdocs2=2 /srvxy=4 /srv-a/b=5");
    assert_on("/srv/www/htdocs=3 /srv/www/htdocs/a/b/c=3");
    ck_assert_uint_eq(fp_mounts_of_path(mounts, "/srvxy", 4)->id, 2); /* not terminated */
}
END_TEST

START_TEST(the_top_of_a_stack)
{
    load("1 1 0:1 / / rw - rootfs rootfs rw\n9 1 0:5 / / rw - ext4 d rw\n"
         "20 9 0:2 / /srv rw - tmpfs t rw\n"
         "15 20 0:3 / /srv rw - nfs t rw\n30 15 0:4 / /srv rw - xfs t rw\n");
    assert_on("/=9 /srv/x=30");
    ck_assert_str_eq(known(15)->point, "/srv"); /* known, though covered */
    /* The same, where the lower ones came last: mounted beneath. */
    load("9 1 0:5 / / rw - ext4 d rw\n30 15 0:4 / /srv rw - xfs t rw\n"
         "15 20 0:3 / /srv rw - nfs t rw\n20 9 0:2 / /srv rw - tmpfs t rw\n");
    ck_assert_uint_eq(of_path("/srv/x"), 30);
    /* Two on the same: the last. */
    load("9 1 0:5 / / rw - ext4 d rw\n30 9 0:4 / /srv rw - xfs t rw\n"
         "15 9 0:3 / /srv rw - nfs t rw\n");
    ck_assert_uint_eq(of_path("/srv/x"), 15);
}
END_TEST

START_TEST(covered_by_a_mount_above)
{
    load("1 1 0:1 / / rw - ext4 d rw\n2 1 0:2 / /a/b rw - tmpfs t rw\n"
         "3 2 0:2 / /a/b/c/d rw - tmpfs t rw\n4 1 0:3 / /a rw - tmpfs t rw\n");
    assert_on("/a/b/x=4 /a/b/c/d/e=4");
    load("1 1 0:1 / / rw - ext4 d rw\n2 1 0:2 / /a/b rw - tmpfs t rw\n"
         "4 1 0:3 / /a rw - tmpfs t rw\n5 4 0:4 / /a/b/c rw - tmpfs t rw\n");
    assert_on("/a/b=4 /a/b/c=5");
}
END_TEST

/* In a chroot the root directory may be no mount point. */
START_TEST(without_a_root)
{
    load("30 27 0:1 / /proc rw - proc proc rw\n31 27 0:2 / /srv rw - ext4 d rw\n"
         "32 31 0:3 / /srv/a rw - ext4 d rw\n");
    assert_on("/=0 /var=0 /srv/b=31 /srv/a/b=32");
}
END_TEST

START_TEST(parents_in_a_circle)
{
    load("1 1 0:1 / / rw - ext4 d rw\n2 3 0:2 / /a rw - tmpfs t rw\n"
         "3 2 0:3 / /a rw - tmpfs t rw\n4 4 0:4 / /b rw - tmpfs t rw\n");
    assert_on("/a=1 /b=1");
    ck_assert_uint_eq(fp_mounts_count(mounts), 4);
}
END_TEST

/* Against the plainest way of finding it, in random trees of mounts. */
struct model {
    uint32_t id, parent;
    char point[32];
};

static uint32_t model_at(const struct model *all, size_t n, const char *path)
{
    const size_t len = strlen(path);
    uint32_t at = 0;

    for (size_t cut = 1; cut <= len; cut++) {
        if (cut > 1 && cut < len && path[cut] != '/')
            continue;
        for (size_t i = 0; i < n; i++) {
            if (all[i].parent == at && strlen(all[i].point) == cut && strncmp(all[i].point, path, cut) == 0) {
                at = all[i].id;
                i = (size_t)-1; /* something may be mounted on it */
            }
        }
    }
    return at;
}

static void random_path(uint64_t *seed, char *room)
{
    const uint64_t depth = unit_random(seed) % 4;

    strcpy(room, depth == 0 ? "/" : "");
    for (uint64_t i = 0; i < depth; i++)
        strcat(room, unit_random(seed) % 2 ? "/a" : unit_random(seed) % 2 ? "/ab" : "/a-");
}

START_TEST(random_trees)
{
    uint64_t seed = 77 + (uint64_t)_i;
    struct model all[12];
    char text[4096], path[32];
    size_t len = 0;

    for (uint32_t n = 0; n < 12; n++) {
        struct model *m = &all[n];

        random_path(&seed, m->point);
        if (n == 0)
            strcpy(m->point, "/");
        m->parent = model_at(all, n, m->point);
        m->id = 100 - n * 7 % 12; /* ids are used again: in no order */
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%u %u 0:9 / %s rw - tmpfs t rw\n",
                                (unsigned)m->id, (unsigned)m->parent, m->point);
    }
    load(text);
    ck_assert_uint_eq(fp_mounts_count(mounts), 12);
    for (int i = 0; i < 100; i++) {
        random_path(&seed, path);
        ck_assert_msg(of_path(path) == model_at(all, 12, path), "%s: %u in\n%s", path,
                      (unsigned)of_path(path), text);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("mounts_paths");
    TCase *t = unit_add_case(s, "paths", setup, teardown, 0);

    tcase_add_test(t, longest_point_by_components);
    tcase_add_test(t, the_top_of_a_stack);
    tcase_add_test(t, covered_by_a_mount_above);
    tcase_add_test(t, without_a_root);
    tcase_add_test(t, parents_in_a_circle);
    tcase_add_loop_test(t, random_trees, 0, 20);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
