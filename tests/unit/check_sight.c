/* SPDX-License-Identifier: Apache-2.0 */
/* A process's sight: tables of mounts that lead to the same files, and tables that differ. */
#include "config.h"
#include "wire/sight.h"

#include <fcntl.h>

#include "base/mount_table.h"
#include "unit.h"
#include "wire/packet.h"

static char file[PATH_MAX];

static void setup(void)
{
    char dir[PATH_MAX];

    unit_fresh_dir(dir);
    strcpy(file, unit_join(dir, "mountinfo"));
}

static void read_table(struct fp_mount_table *t, const char *text)
{
    int fd;

    unit_write_file(file, text);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ne(fd, -1);
    *t = (struct fp_mount_table){ 0 };
    ck_assert_int_eq(fp_mount_table_read(t, fd), 0);
    fp_close(&fd);
}

static uint64_t number_of(const char *text)
{
    struct fp_mount_table t;
    uint64_t number;

    read_table(&t, text);
    number = fp_sight_mounts(&t);
    fp_mount_table_free(&t);
    return number;
}

#define ROOT "20 1 8:1 / / rw - ext4 /dev/a rw\n"
#define HOME "21 20 8:2 / /home rw - ext4 /dev/b rw\n"

START_TEST(the_same_files)
{
    static const char *const same[] = {
        /* Other ids, other options, as in another namespace. */
        "520 1 8:1 / / ro,relatime master:1 - ext4 /dev/a rw\n521 520 8:2 / /home ro - ext4 /dev/b rw\n",
        /* In another order. */
        "21 520 8:2 / /home rw - ext4 /dev/b rw\n520 1 8:1 / / rw - ext4 /dev/a rw\n",
        /* Directories mounted on themselves: ProtectSystem=, ProtectHome=read-only. */
        ROOT HOME "22 20 8:1 /usr /usr ro - ext4 /dev/a rw\n",
        ROOT HOME "22 21 8:2 / /home ro - ext4 /dev/b rw\n",
        ROOT HOME "22 21 8:2 /a/b /home/a/b ro - ext4 /dev/b rw\n",
        ROOT HOME "22 20 8:1 / / ro - ext4 /dev/a rw\n23 22 8:2 / /home rw - ext4 /dev/b rw\n",
        /* The kernel's, and systemd's of a service. */
        ROOT HOME "22 20 0:5 / /proc rw - proc proc rw\n23 20 0:6 / /dev rw - tmpfs t rw\n",
        ROOT HOME "22 20 0:7 /x /run/credentials/x.service ro - tmpfs t rw\n",
        ROOT HOME "22 20 0:8 /i /usr/lib/modules ro - tmpfs t rw\n",
        ROOT HOME "22 20 0:4 mnt:[1] /srv/ns rw - nsfs nsfs rw\n",
        ROOT HOME "22 20 0:8 / /var/lib/docker/overlay2/a/merged rw - overlay o rw\n",
    };

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        ck_assert_msg(number_of(same[i]) == number_of(ROOT HOME), "%zu differs", i);
}
END_TEST

START_TEST(other_files)
{
    static const char *const other[] = {
        ROOT,
        "20 1 8:9 / / rw - ext4 /dev/z rw\n" HOME,
        ROOT "21 20 8:3 / /home rw - ext4 /dev/c rw\n",
        ROOT "21 20 8:2 /part /home rw - ext4 /dev/b rw\n",
        ROOT HOME "22 20 0:9 / /tmp rw - tmpfs t rw\n",
        ROOT HOME "22 20 8:1 /tmp/private/tmp /tmp rw - ext4 /dev/a rw\n",
        ROOT HOME "22 21 0:9 / /home rw - tmpfs hidden rw\n",
        ROOT HOME "22 20 8:1 /usrx /usr ro - ext4 /dev/a rw\n",
        ROOT HOME "22 20 8:1 / /usr ro - ext4 /dev/a rw\n",
        ROOT HOME "22 21 8:2 /b /home/a ro - ext4 /dev/b rw\n",
        ROOT HOME "22 20 0:9 / /devices rw - tmpfs t rw\n",
        ROOT HOME "22 20 0:9 / /run rw - tmpfs t rw\n",
        "",
    };
    uint64_t numbers[sizeof(other) / sizeof(other[0]) + 1] = { number_of(ROOT HOME) };

    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        numbers[i + 1] = number_of(other[i]);
        for (size_t before = 0; before <= i; before++)
            ck_assert_msg(numbers[i + 1] != numbers[before], "%zu is as %zu", i + 1, before);
    }
}
END_TEST

/* Covered mounts lead nowhere. */
START_TEST(what_is_covered_does_not_count)
{
    ck_assert_uint_eq(
        number_of(ROOT "21 20 8:3 / /home rw - ext4 /dev/c rw\n22 21 8:2 / /home rw - ext4 /dev/b rw\n"),
        number_of(ROOT HOME));
}
END_TEST

START_TEST(own_sight)
{
    struct fp_sight s, more;

    fp_sight_take(&s);
    fp_sight_take(&more);
    ck_assert_mem_eq(&s, &more, sizeof(s));
    ck_assert_uint_ne(s.root_ino, 0);
    ck_assert_uint_ne(s.mounts_ns, 0);
    ck_assert_uint_ne(s.users_ns, 0);
    ck_assert_int_eq((int)fp_sight_compare(&s, true), FP_SIGHT_SAME);
    for (int d = FP_SIGHT_SAME; d < FP_SIGHT_DIFFERENCES; d++)
        ck_assert_str_ne(fp_sight_text((enum fp_sight_difference)d), "unknown");
}
END_TEST

static void count(void *ctx, const struct fp_mount *m)
{
    ck_assert_str_eq(m->point, "/srv");
    ++*(unsigned *)ctx;
}

/* The mount point of a mount that is gone: the same id, device, parent and point. */
START_TEST(another_mount_with_the_same_id)
{
    static const char *const later[] = {
        ROOT "21 20 8:2 /b /srv rw - ext4 /dev/b rw\n",
        ROOT "21 20 8:2 /a /srv rw - xfs /dev/b rw\n",
    };
    struct fp_mount_table before, now;

    read_table(&before, ROOT "21 20 8:2 /a /srv rw - ext4 /dev/b rw\n");
    ck_assert_uint_eq(fp_mount_table_missing(&before, &before, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        unsigned n = 0;

        read_table(&now, later[i]);
        ck_assert_uint_eq(fp_mount_table_missing(&now, &before, count, &n), 1);
        ck_assert_uint_eq(n, 1);
        fp_mount_table_free(&now);
    }
    fp_mount_table_free(&before);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sight");
    TCase *t = unit_add_case(s, "mounts", setup, NULL, 0);

    tcase_add_test(t, the_same_files);
    tcase_add_test(t, other_files);
    tcase_add_test(t, what_is_covered_does_not_count);
    tcase_add_test(t, own_sight);
    tcase_add_test(t, another_mount_with_the_same_id);
    return unit_run(s);
}
