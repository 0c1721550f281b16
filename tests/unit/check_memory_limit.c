/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that a process may use, by files that stand for the kernel's.
 */
#include "config.h"
#include "base/memory_limit.h"

#include "unit.h"

#define MIB ((size_t)1 << 20)

static char root[PATH_MAX];

static void setup(void)
{
    unit_fresh_dir(root);
}

static void teardown(void)
{
}

/* With the directories above it. */
static void put(const char *name, const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", unit_join(root, name));
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0755);
    }
    unit_write_file(path, text);
}

static void put_machine(void)
{
    put("proc/meminfo", "MemTotal:        1048576 kB\nMemFree:          524288 kB\n");
}

START_TEST(of_the_machine)
{
    put_machine();
    ck_assert_uint_eq(fp_memory_limit(root), 1024 * MIB);
    put("proc/self/cgroup", "0::/\n");
    ck_assert_uint_eq(fp_memory_limit(root), 1024 * MIB);
}
END_TEST

START_TEST(of_a_group_of_version_2)
{
    put_machine();
    put("proc/self/cgroup", "0::/system.slice/apache2.service\n");
    put("sys/fs/cgroup/system.slice/apache2.service/memory.max", "max\n");
    ck_assert_uint_eq(fp_memory_limit(root), 1024 * MIB);
    put("sys/fs/cgroup/system.slice/memory.max", "536870912\n");
    ck_assert_uint_eq(fp_memory_limit(root), 512 * MIB);
    put("sys/fs/cgroup/system.slice/apache2.service/memory.max", "134217728\n");
    ck_assert_uint_eq(fp_memory_limit(root), 128 * MIB);
    /* More than there is. */
    put("sys/fs/cgroup/system.slice/memory.max", "9223372036854771712\n");
    put("sys/fs/cgroup/system.slice/apache2.service/memory.max", "9223372036854771712\n");
    ck_assert_uint_eq(fp_memory_limit(root), 1024 * MIB);
}
END_TEST

START_TEST(of_a_group_of_version_1)
{
    put_machine();
    put("proc/self/cgroup", "11:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/memory\n");
    put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
    ck_assert_uint_eq(fp_memory_limit(root), 256 * MIB);
    put("proc/self/cgroup", "3:hugetlb,memory:/a/b\n");
    put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1048576\n");
    ck_assert_uint_eq(fp_memory_limit(root), MIB);
}
END_TEST

/* A container's own group is "/" to it. */
START_TEST(of_a_container)
{
    put_machine();
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "67108864\n");
    ck_assert_uint_eq(fp_memory_limit(root), 64 * MIB);
    /* One that sees the groups outside, whose directories it has not. */
    put("proc/self/cgroup", "0::/../../kubepods/pod1\n");
    ck_assert_uint_eq(fp_memory_limit(root), 64 * MIB);
}
END_TEST

START_TEST(what_cannot_be_read_limits_nothing)
{
    ck_assert_uint_eq(fp_memory_limit(root), SIZE_MAX);
    put("proc/meminfo", "MemTotal: much\n");
    put("proc/self/cgroup", "\n0\n0:\n0::\n:::\n4:memory\n");
    ck_assert_uint_eq(fp_memory_limit(root), SIZE_MAX);
    ck_assert_uint_gt(fp_memory_limit(""), MIB);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("memory_limit");
    TCase *t = unit_add_case(s, "limits", setup, teardown, 0);

    tcase_add_test(t, of_the_machine);
    tcase_add_test(t, of_a_group_of_version_2);
    tcase_add_test(t, of_a_group_of_version_1);
    tcase_add_test(t, of_a_container);
    tcase_add_test(t, what_cannot_be_read_limits_nothing);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
