/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/mounts.h"
#include "changes/mount_list.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "mounts_kit.h"

#define VIEW_ROOM 4096 /* mounts that workers can know */

static const char *by_of(uint32_t id)
{
    return fp_verdict_text(known(id)->traits.verdict);
}

/* ---- the file ---- */

START_TEST(fields_are_taken)
{
    load("27 1 254:3 / / rw,relatime - ext4 /dev/vda rw\n"
         "36 27 98:0 /mnt1 /srv/a rw,noatime master:1 - xfs /dev/root rw,errors=continue\n"
         "37 27 0:44 / /srv/b rw shared:7 master:1 propagate_from:2 unbindable - nfs4 h:/x rw\n"
         "40 27 0:45 / /srv/c rw - fuse.sshfs h: rw");
    ck_assert_uint_eq(fp_mounts_count(mounts), 4);
    ck_assert_str_eq(known(36)->point, "/srv/a");
    ck_assert_str_eq(known(36)->type, "xfs");
    ck_assert_uint_eq(known(36)->dev, makedev(98, 0));
    ck_assert_uint_eq(known(27)->dev, makedev(254, 3));
    ck_assert_str_eq(known(37)->type, "nfs4");
    ck_assert_str_eq(known(40)->type, "fuse.sshfs"); /* no line end */
    ck_assert_uint_eq(known(40)->ttl_ms, GENERAL_TTL);
    ck_assert_uint_eq(known(40)->stale_if_error_ms, GENERAL_STALE);
    ck_assert_ptr_null(fp_mounts_find(mounts, 38));
    ck_assert_ptr_null(fp_mounts_find(mounts, 0));
    ck_assert_ptr_null(fp_mounts_find(mounts, UINT32_MAX));
}
END_TEST

START_TEST(listed_by_id)
{
    load("30 27 0:3 / /c rw - tmpfs t rw\n27 1 0:1 / / rw - ext4 /dev/vda rw\n"
         "4294967295 27 0:4 / /d rw - tmpfs t rw\n29 27 0:2 / /b rw - tmpfs t rw\n");
    ck_assert_uint_eq(fp_mounts_count(mounts), 4);
    ck_assert_uint_eq(fp_mounts_at(mounts, 0)->id, 27);
    ck_assert_uint_eq(fp_mounts_at(mounts, 1)->id, 29);
    ck_assert_uint_eq(fp_mounts_at(mounts, 2)->id, 30);
    ck_assert_uint_eq(fp_mounts_at(mounts, 3)->id, UINT32_MAX);
}
END_TEST

START_TEST(mounts_whose_links_are_not_followed)
{
    load("1 1 0:1 / / rw,nosymfollow,relatime - ext4 d rw\n2 1 0:2 / /a nosymfollow - tmpfs t rw\n"
         "3 1 0:3 / /b rw,nosymfollows - tmpfs t nosymfollow\n4 1 0:4 / /c rw,xnosymfollow - tmpfs t rw\n"
         "5 1 0:5 / /d rw,nosymfollow shared:1 - tmpfs t rw\n");
    for (uint32_t id = 1; id <= 5; id++) {
        const struct fp_mount_traits traits = fp_mount_list_find(list, id);

        ck_assert_int_eq(known(id)->traits.nosymfollow, id <= 2 || id == 5);
        ck_assert_int_eq(traits.nosymfollow, known(id)->traits.nosymfollow);
    }
}
END_TEST

START_TEST(mounts_that_wait_to_be_mounted_over)
{
    load("1 1 0:1 / / rw - ext4 d rw\n2 1 0:2 / /a rw - autofs t rw,fd=6,direct,pipe_ino=1\n"
         "3 1 0:3 / /b rw - autofsx t rw\n5 1 0:5 / /d rw - autofs t rw,fd=6,indirect,pipe_ino=1\n");
    for (uint32_t id = 1; id <= 5; id++) {
        const struct fp_mount_traits traits = fp_mount_list_find(list, id);

        ck_assert_int_eq(traits.known, id != 4);
        ck_assert_int_eq(traits.automount, id == 2 || id == 5);
        ck_assert_int_eq(traits.names_are_mounted, id == 5);
    }
}
END_TEST

START_TEST(mounts_where_each_process_finds_its_own_files)
{
    load("1 1 0:1 / / rw - ext4 proc rw\n2 1 0:2 / /p rw - proc none rw\n3 1 0:3 / /proc rw - procx t rw\n");
    for (uint32_t id = 1; id <= 3; id++) {
        const struct fp_mount_traits traits = fp_mount_list_find(list, id);

        ck_assert_int_eq(traits.processes, id == 2);
        ck_assert_int_eq(known(id)->traits.processes, id == 2);
    }
}
END_TEST

START_TEST(mounts_that_fold_case)
{
    load(
        "1 1 0:1 / / rw - ext4 d rw,casefolds\n2 1 0:2 / /a rw - vfat t rw\n3 1 0:3 / /b rw - cifs h rw\n"
        "4 1 0:4 / /c rw,casefold - tmpfs t rw\n5 1 0:5 / /d rw shared:1 - tmpfs t rw,casefold\n"
        "6 1 0:6 / /e rw - tmpfs t rw,casefold=utf8-12.1.0,size=1k\n7 1 0:7 / /f rw - zfs z rw,caseinsensitive\n"
        "8 1 0:8 / /g rw - zfs z rw,casesensitive\n9 1 0:9 / /h rw - ntfs3\n");
    for (uint32_t id = 1; id <= 9; id++) {
        const struct fp_mount_traits traits = fp_mount_list_find(list, id);

        ck_assert_msg(known(id)->traits.folds == (id != 1 && id != 4 && id != 8), "%u", (unsigned)id);
        ck_assert_int_eq(traits.folds, known(id)->traits.folds);
    }
}
END_TEST

START_TEST(escapes_are_undone)
{
    load("1 1 0:1 / / rw - ext4 d rw\n"
         "2 1 0:2 / /a\\040b\\011c\\012d\\134e\\043 rw - fuse.a\\040b s rw\n"
         "3 1 0:3 / /x\\04 rw - tmpfs s rw\n"
         "4 1 0:4 / /x\\ rw - tmpfs s rw\n"
         "5 1 0:5 / /x\\089\\134040 rw - tmpfs s rw\n"
         "6 1 0:6 / /\\303\\244 rw - tmpfs s rw\n");
    ck_assert_str_eq(known(2)->point, "/a b\tc\nd\\e#");
    ck_assert_str_eq(known(2)->type, "fuse.a b");
    ck_assert_str_eq(known(3)->point, "/x\\04");
    ck_assert_str_eq(known(4)->point, "/x\\");
    ck_assert_str_eq(known(5)->point, "/x\\089\\040");
    ck_assert_str_eq(known(6)->point, "/\xc3\xa4");
    ck_assert_uint_eq(of_path("/a b\tc\nd\\e#/f"), 2);
}
END_TEST

START_TEST(garbage_is_skipped)
{
    load("\n \nx\n27 1 254:0 / / rw - ext4 d rw\n"
         "28 27 0:1 / /a rw no-separator ext4 d rw\n"
         "29 27 0:1 / /a rw -\n"
         "30 27 0:1 / /a rw -  d rw\n"
         "31 27 0:1 / a rw - ext4 d rw\n"
         "32 27 0:1 /  rw - ext4 d rw\n"
         "33 27 0 / /a rw - ext4 d rw\n"
         "34 27 0:x / /a rw - ext4 d rw\n"
         "35 27 :1 / /a rw - ext4 d rw\n"
         "36 27 0:1: / /a rw - ext4 d rw\n"
         "-37 27 0:1 / /a rw - ext4 d rw\n"
         "4294967296 27 0:1 / /a rw - ext4 d rw\n"
         "99999999999999999999 27 0:1 / /a rw - ext4 d rw\n"
         "38 x 0:1 / /a rw - ext4 d rw\n"
         "39 27 0:4294967296 / /a rw - ext4 d rw\n"
         "40x 27 0:1 / /a rw - ext4 d rw\n"
         "41 27 0:1 / - rw - ext4 d rw\n"
         "42 27 0:1 / /b rw - tmpfs\n");
    ck_assert_uint_eq(fp_mounts_count(mounts), 2);
    ck_assert_str_eq(known(27)->point, "/");
    ck_assert_str_eq(known(42)->type, "tmpfs");
    ck_assert_uint_eq(of_path("/a"), 27);
}
END_TEST

START_TEST(empty_table)
{
    load("");
    ck_assert_uint_eq(fp_mounts_count(mounts), 0);
    ck_assert_ptr_null(fp_mounts_find(mounts, 1));
    assert_on("/=0 /a/b=0");
    ck_assert(!fp_mounts_changed(mounts));
}
END_TEST

START_TEST(the_later_of_a_repeated_id)
{
    load("1 1 0:1 / / rw - ext4 d rw\n50 1 0:2 / /a rw - tmpfs t rw\n"
         "51 1 0:3 / /b rw - tmpfs t rw\n50 1 0:4 / /c rw - nfs n rw\n");
    ck_assert_uint_eq(fp_mounts_count(mounts), 3);
    ck_assert_str_eq(known(50)->point, "/c");
    assert_on("/a=1 /c/x=50");
}
END_TEST

/* A file of many kilobytes, with long lines. */
START_TEST(large_file)
{
    static char text[1 << 20];
    char path[64];
    size_t len = (size_t)snprintf(text, sizeof(text), "1 1 0:1 / / rw - ext4 d rw\n");

    for (int i = 2; i <= 6000; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "%d 1 0:%d / /data/volumes/%d rw,nosuid,nodev,noexec,relatime "
                                "shared:%d - tmpfs tmpfs rw,size=1024k\n",
                                i, i, i, i);
    }
    load(text);
    ck_assert_uint_eq(fp_mounts_count(mounts), 6000);
    for (uint32_t i = 2; i <= 6000; i++) {
        const struct fp_mount_traits traits = fp_mount_list_find(list, i);

        snprintf(path, sizeof(path), "/data/volumes/%u/x/y", (unsigned)i);
        ck_assert_uint_eq(of_path(path), i);
        ck_assert_int_eq((int)known(i)->traits.verdict, (int)FP_REPORTED);
        ck_assert_int_eq((int)traits.verdict, (int)(i <= VIEW_ROOM ? FP_REPORTED : FP_TTL_UNWATCHED));
        ck_assert_int_eq(traits.local, i <= VIEW_ROOM);
    }
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    mounts = fp_mounts_create(unit_join(dir, "no"), &general, NULL);
    ck_assert_ptr_null(mounts);
    ck_assert_int_eq(errno, ENOENT);
    mounts = fp_mounts_create(dir, &general, NULL);
    ck_assert_ptr_null(mounts);
    ck_assert_int_eq(errno, EISDIR);
}
END_TEST

/* The kernel does not show a chroot the mount that its root lies in. */
static bool root_is_told(void)
{
    struct statx st;

    ck_assert_int_eq(statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, &st), 0);
    if (st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return true;
    fprintf(stderr, "SKIPPED: / is no mount point here: a chroot\n");
    return false;
}

/* The table says what statx() says. */
START_TEST(this_system)
{
    static const char *const paths[] = { "/", "/proc", "/dev", "/sys" };
    struct statx st;

    if (!root_is_told())
        return;
    mounts = fp_mounts_create(NULL, &general, NULL);
    ck_assert_ptr_nonnull(mounts);
    ck_assert_uint_ge(fp_mounts_count(mounts), 1);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        ck_assert_int_eq(statx(AT_FDCWD, paths[i], 0, STATX_BASIC_STATS | STATX_MNT_ID, &st), 0);
        ck_assert_uint_eq(of_path(paths[i]), st.stx_mnt_id);
    }
    ck_assert_str_eq(by_of(of_path("/proc/self")), "ttl");
}
END_TEST

/* ---- how they are watched ---- */

static const char some_types[] = "1 1 254:0 / / rw - ext4 d rw\n2 1 0:2 / /nfs rw - nfs4 h:/ rw\n"
                                 "3 1 0:3 / /ov rw - overlay o rw\n4 1 0:4 / /bt rw - btrfs d rw\n"
                                 "5 1 0:5 / /proc rw - proc p rw\n6 1 254:0 /x /bind rw - ext4 d rw\n"
                                 "7 1 0:7 / /tmp rw - tmpfs t rw\n8 1 0:8 / /new rw - ext5 t rw\n";

static void assert_ways(const char *expected)
{
    char found[256] = "";

    for (size_t i = 0; i < fp_mounts_count(mounts); i++) {
        const struct fp_mount *m = fp_mounts_at(mounts, i);
        const struct fp_mount_traits traits = fp_mount_list_find(list, m->id);

        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i > 0 ? " " : "",
                 fp_verdict_text(m->traits.verdict));
        ck_assert_int_eq((int)traits.verdict, (int)m->traits.verdict);
        ck_assert_int_eq(traits.local, m->traits.local);
        ck_assert_int_eq(traits.nosymfollow, m->traits.nosymfollow);
        ck_assert_int_eq(traits.by_directory, strncmp(m->type, "nfs", 3) == 0);
    }
    ck_assert_str_eq(found, expected);
}

static void assert_way_of(const char *type, bool is_local, const char *way)
{
    char text[128];

    snprintf(text, sizeof(text), "5 1 0:1 / / rw - %s x rw\n", type);
    load(text);
    ck_assert_msg(known(5)->traits.local == is_local, "%s", type);
    ck_assert_msg(known(5)->traits.remote == (!is_local && strcmp(type, "overlay") != 0 && strcmp(type, "zfs") != 0),
                  "%s", type);
    assert_ways(way);
}

START_TEST(by_type)
{
    static const char *const local[] = { "ext2",  "ext3",  "ext4",     "xfs",     "btrfs",    "f2fs", "tmpfs",
                                         "ramfs", "ntfs3", "bcachefs", "jfs",     "reiserfs", "vfat", "exfat",
                                         "erofs", "squashfs", "iso9660", "udf" };
    static const char *const other[] = { "nfs",  "nfs4",     "cifs",   "smb3",    "ceph",       "glusterfs",
                                         "virtiofs", "fuse",   "fuseblk", "fuse.sshfs", "overlay",
                                         "aufs", "devtmpfs", "rootfs", "ext",     "ext44",      "EXT4",
                                         "zfs" };
    static const char *const silent[] = { "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "autofs", "9p" };

    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        assert_way_of(local[i], true, "inotify");
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        assert_way_of(other[i], false, "inotify+ttl");
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        assert_way_of(silent[i], false, "ttl");
}
END_TEST

/* The kernel makes and changes its own files, and 9p's client has many inodes for one. An automounter's entry stays; an operator's rule
 * overrides the type's. */
START_TEST(of_what_nothing_is_kept)
{
    static const char text[] = "1 1 254:0 / / rw - ext4 d rw\n2 1 0:1 / /proc rw - proc p rw\n"
                               "3 1 0:2 / /home rw - autofs a rw\n4 1 0:3 / /sys rw - sysfs s rw\n";
    const struct fp_mount_rule sys = { "/sys", FP_BY_TTL, -1, -1, -1 };
    struct fp_mounts_settings s = general;

    load(text);
    ck_assert_int_eq((int)known(1)->traits.verdict, (int)FP_REPORTED);
    ck_assert_int_eq((int)known(2)->traits.verdict, (int)FP_EACH_REQUEST);
    ck_assert_int_eq((int)known(3)->traits.verdict, (int)FP_TTL_UNWATCHED);
    ck_assert_int_eq((int)known(4)->traits.verdict, (int)FP_EACH_REQUEST);
    s.rules = &sys;
    s.n_rules = 1;
    load_with(text, &s);
    ck_assert_int_eq((int)known(2)->traits.verdict, (int)FP_EACH_REQUEST);
    ck_assert_int_eq((int)known(4)->traits.verdict, (int)FP_TTL_UNWATCHED);
}
END_TEST

START_TEST(rules_override)
{
    const struct fp_mount_rule rules[] = { { "/", FP_BY_TTL, 10, -1, 4 },
                                           { "/ov", FP_BY_INOTIFY, -1, 20, -1 },
                                           { "/bt", FP_BY_INOTIFY, -1, -1, -1 },
                                           { "/tmp", FP_BY_INOTIFY, 0, 0, -1 },
                                           { "/nfs", FP_BY_AUTO, LONG_MAX, 40, -1 },
                                           { "/none", FP_BY_TTL, 1, 1, -1 },
                                           { "/bin", FP_BY_TTL, 1, 1, -1 } };
    struct fp_mounts_settings s = { rules, 7, FP_BY_AUTO, 100, 200, 50 };

    load_with(some_types, &s);
    assert_ways("ttl inotify+ttl inotify inotify ttl inotify inotify inotify+ttl");
    ck_assert_uint_eq(known(1)->ttl_ms, 10);
    ck_assert_uint_eq(known(1)->stale_if_error_ms, 200);
    ck_assert_uint_eq(known(1)->negative_ttl_ms, 4);
    ck_assert_uint_eq(known(3)->negative_ttl_ms, 50);
    ck_assert_uint_eq(known(3)->ttl_ms, 100);
    ck_assert_uint_eq(known(3)->stale_if_error_ms, 20);
    ck_assert_uint_eq(known(7)->ttl_ms, 0);
    ck_assert_uint_eq(known(7)->stale_if_error_ms, 0);
    ck_assert_uint_eq(known(2)->ttl_ms, UINT32_MAX);
    ck_assert(!known(3)->traits.local); /* a rule does not change what it is */
    ck_assert(known(1)->traits.local);
}
END_TEST

START_TEST(general_settings)
{
    const struct fp_mount_rule rules[] = { { "/bind", FP_BY_INOTIFY, -1, -1, -1 },
                                           { "/tmp", FP_BY_INOTIFY, -1, -1, -1 },
                                           { "/bt", FP_BY_AUTO, 5, -1, -1 } };
    struct fp_mounts_settings s = { rules, 3, FP_BY_INOTIFY, 100, 200, 50 };

    load_with(some_types, &s);
    assert_ways("inotify inotify+ttl inotify+ttl inotify ttl inotify inotify inotify+ttl");
    s.by = FP_BY_TTL;
    ck_assert_int_eq(fp_mounts_set(mounts, &s), 0);
    assert_ways("ttl ttl ttl ttl ttl inotify inotify ttl");
    ck_assert_int_eq(fp_mounts_set(mounts, &general), 0);
    assert_ways("inotify inotify+ttl inotify+ttl inotify ttl inotify inotify inotify+ttl");
    ck_assert_uint_eq(known(4)->ttl_ms, GENERAL_TTL);
}
END_TEST

START_TEST(settings_are_copied)
{
    char point[] = "/tmp";
    struct fp_mount_rule rule = { point, FP_BY_TTL, 5, 6, -1 };
    const struct fp_mounts_settings s = { &rule, 1, FP_BY_AUTO, 100, 200, 50 };

    load_with(some_types, &s);
    strcpy(point, "/xxx");
    rule.by = FP_BY_INOTIFY;
    ck_assert_str_eq(by_of(7), "ttl");
    ck_assert_uint_eq(known(7)->ttl_ms, 5);
}
END_TEST

/* ---- the mount list ---- */

static void assert_view(uint32_t id, bool local, enum fp_verdict verdict)
{
    const struct fp_mount_traits traits = fp_mount_list_find(list, id);

    ck_assert_int_eq(traits.known, local);
    ck_assert_int_eq(traits.local, local);
    ck_assert_int_eq((int)traits.verdict, (int)verdict);
}

START_TEST(view_of_what_is_not_there)
{
    assert_view(0, false, FP_TTL_UNWATCHED);
    load(some_types);
    assert_view(99, false, FP_TTL_UNWATCHED);
    assert_view(7, true, FP_REPORTED);
    load("3 1 0:1 / / rw - tmpfs t rw\n");
    assert_view(7, false, FP_TTL_UNWATCHED);
    assert_view(3, true, FP_REPORTED);
}
END_TEST

/* In a process forked before the table existed. */
static void read_view(int go, int told)
{
    struct fp_mount_traits traits;
    char c;

    if (fp_mount_list_protect(list) == -1 || mprotect(list, 1, PROT_READ | PROT_WRITE) != -1
        || errno != EACCES || read(go, &c, 1) != 1)
        _exit(1);
    traits = fp_mount_list_find(list, 7);
    c = (char)traits.verdict;
    if (!traits.local || write(told, &c, 1) != 1)
        _exit(2);
    signal(SIGSEGV, SIG_DFL);
    *(volatile char *)list = 1; /* ends it */
    _exit(3);
}

START_TEST(view_in_another_process)
{
    int go[2], told[2], status;
    signed char verdict = -1;
    pid_t pid;

    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(pipe(told), 0);
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        read_view(go[0], told[1]);
    load(some_types);
    ck_assert_int_eq(write(go[1], "", 1), 1);
    ck_assert_int_eq(read(told[0], &verdict, 1), 1);
    ck_assert_int_eq(verdict, (int)FP_REPORTED);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(told[i]);
    }
}
END_TEST

/* ---- the kernel's own file ---- */

/* Mounts of our own, which nobody else sees.  False where we may not. */
static bool enter_namespace(void)
{
    if (!root_is_told() || unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) == -1)
        return false;
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    mounts = fp_mounts_create(NULL, &general, list);
    ck_assert_ptr_nonnull(mounts);
    ck_assert(!fp_mounts_changed(mounts));
    ck_assert(!unit_wait_readable(fp_mounts_fd(mounts), 0));
    return true;
}

static void mount_here(void)
{
    ck_assert_int_eq(mount("unit", dir, "tmpfs", 0, "size=64k"), 0);
}

/* Reported by both, once. */
static void assert_changed(void)
{
    ck_assert(unit_wait_readable(fp_mounts_fd(mounts), 1000));
    ck_assert(fp_mounts_changed(mounts));
    ck_assert(!fp_mounts_changed(mounts));
    ck_assert(!unit_wait_readable(fp_mounts_fd(mounts), 0));
}

START_TEST(mounting_is_noticed_once)
{
    size_t before;
    uint32_t below, id;
    struct statx st;

    if (!enter_namespace())
        return;
    before = fp_mounts_count(mounts);
    below = of_path(dir);
    mount_here();
    assert_changed();
    ck_assert_uint_eq(fp_mounts_count(mounts), before + 1);
    id = of_path(unit_join(dir, "x"));
    ck_assert_int_eq(statx(AT_FDCWD, dir, 0, STATX_BASIC_STATS | STATX_MNT_ID, &st), 0);
    ck_assert_uint_eq(id, st.stx_mnt_id);
    ck_assert_str_eq(known(id)->type, "tmpfs");
    assert_view(id, true, FP_REPORTED);
    ck_assert_int_eq(umount(dir), 0);
    assert_changed();
    ck_assert_uint_eq(of_path(dir), below);
    ck_assert_ptr_null(fp_mounts_find(mounts, id));
    assert_view(id, false, FP_TTL_UNWATCHED);
    for (int i = 0; i < 3; i++)
        mount_here();
    assert_changed();
    ck_assert_uint_eq(fp_mounts_count(mounts), before + 3);
    ck_assert_int_eq(statx(AT_FDCWD, dir, 0, STATX_BASIC_STATS | STATX_MNT_ID, &st), 0);
    ck_assert_uint_eq(of_path(dir), st.stx_mnt_id);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(umount(dir), 0);
    assert_changed();
}
END_TEST

/* The first descriptor that is opened is the table's; a pipe takes its place, which cannot be read
 * from its beginning. */
START_TEST(failed_reading)
{
    const int info = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int ends[2], saved;

    close(info);
    load(some_types);
    saved = dup(info);
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    ck_assert_int_eq(dup2(ends[1], info), info); /* POLLERR: a change is reported */
    ck_assert(fp_mounts_changed(mounts));
    ck_assert_uint_eq(fp_mounts_count(mounts), 0);
    ck_assert_ptr_null(fp_mounts_find(mounts, 1));
    ck_assert_uint_eq(of_path("/tmp"), 0);
    assert_view(1, false, FP_TTL_UNWATCHED);
    close(ends[1]);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], info), info); /* no change, and no table still */
    ck_assert(!fp_mounts_changed(mounts));
    ck_assert(!fp_mounts_changed(mounts));
    ck_assert_int_eq(dup2(saved, info), info);
    ck_assert(fp_mounts_changed(mounts));
    ck_assert(!fp_mounts_changed(mounts));
    assert_ways("inotify inotify+ttl inotify+ttl inotify ttl inotify inotify inotify+ttl");
    close(ends[0]);
    close(ends[1]);
    close(saved);
}
END_TEST

START_TEST(destroying_nothing)
{
    struct fp_mounts *none = NULL;

    fp_mounts_destroy(&none);
    ck_assert_ptr_null(none);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("mounts");
    TCase *t = unit_add_case(s, "table", setup, teardown, 0);

    tcase_add_test(t, fields_are_taken);
    tcase_add_test(t, listed_by_id);
    tcase_add_test(t, mounts_whose_links_are_not_followed);
    tcase_add_test(t, mounts_that_wait_to_be_mounted_over);
    tcase_add_test(t, mounts_where_each_process_finds_its_own_files);
    tcase_add_test(t, mounts_that_fold_case);
    tcase_add_test(t, escapes_are_undone);
    tcase_add_test(t, garbage_is_skipped);
    tcase_add_test(t, empty_table);
    tcase_add_test(t, the_later_of_a_repeated_id);
    tcase_add_test(t, large_file);
    tcase_add_test(t, files_that_cannot_be_read);
    tcase_add_test(t, failed_reading);
    tcase_add_test(t, this_system);
    tcase_add_test(t, destroying_nothing);
    t = unit_add_case(s, "watching", setup, teardown, 0);
    tcase_add_test(t, by_type);
    tcase_add_test(t, of_what_nothing_is_kept);
    tcase_add_test(t, rules_override);
    tcase_add_test(t, general_settings);
    tcase_add_test(t, settings_are_copied);
    t = unit_add_case(s, "mount list", setup, teardown, 0);
    tcase_add_test(t, view_of_what_is_not_there);
    tcase_add_test(t, view_in_another_process);
    t = unit_add_case(s, "kernel", setup, teardown, 0);
    tcase_add_test(t, mounting_is_noticed_once);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
