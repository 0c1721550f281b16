/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket: its owner, its path, and files already there. */
#include "config.h"
#include "wire/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "unit.h"
#include "wire/packet.h"

static char path[FP_MAX_SOCKET_PATH + 1], dir[PATH_MAX];
static int sock, lock, fds_at_rest;

static void setup(void)
{
    unit_fresh_dir(dir);
    ck_assert_int_lt(snprintf(path, sizeof(path), "%s", unit_join(dir, "s")), (int)sizeof(path));
    sock = lock = -1;
    fds_at_rest = unit_open_fds();
}

static void teardown(void)
{
    fp_close(&sock);
    fp_close(&lock);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static gid_t group(void)
{
    return geteuid() == 0 ? UNIT_NOBODY : getegid();
}

START_TEST(made_by_this_user_for_that_group)
{
    struct stat st;

    umask(0);
    ck_assert(fp_socket_path_take(path, group(), &sock, &lock));
    ck_assert(fp_socket_path_is(sock, path));
    ck_assert(!fp_socket_path_is(sock, unit_join(dir, "other")));
    ck_assert(!fp_socket_path_is(lock, path));
    ck_assert(!fp_socket_path_is(-1, path));
    ck_assert_uint_eq(fp_socket_path_maker(sock), geteuid());
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, geteuid());
    ck_assert_uint_eq(st.st_mode & 07777, geteuid() == 0 ? 0660 : 0600);
    if (geteuid() == 0)
        ck_assert_uint_eq(st.st_gid, UNIT_NOBODY);
    ck_assert_uint_eq(umask(0), 0);
    ck_assert_uint_eq(getegid(), getgid());
    ck_assert_int_eq(fcntl(sock, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fcntl(sock, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}
END_TEST

static int connected(void)
{
    int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un addr;

    ck_assert(fp_unix_address(&addr, path));
    if (connect(client, (struct sockaddr *)&addr, sizeof(addr)) == -1)
        fp_close(&client);
    return client;
}

/* Where the kernel can enforce it, also for one that another process made. */
START_TEST(peers_pass_no_descriptors)
{
    const int option = 83; /* SO_PASSRIGHTS */
    int client, value;
    socklen_t len = sizeof(value);

    ck_assert(fp_socket_path_take(path, group(), &sock, &lock));
    if (getsockopt(sock, SOL_SOCKET, option, &value, &len) == -1)
        return;
    for (int adopted = 0; adopted < 2; adopted++) {
        if (adopted) {
            value = 1;
            ck_assert_int_eq(setsockopt(sock, SOL_SOCKET, option, &value, sizeof(value)), 0);
            ck_assert_int_eq(fcntl(sock, F_SETFL, 0), 0);
            ck_assert(fp_socket_path_adopt(sock));
            ck_assert_int_eq(fcntl(sock, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        }
        client = connected();
        ck_assert_int_ne(client, -1);
        ck_assert_int_eq((int)fp_send_packet(client, "x", 1, lock), FP_SYSTEM);
        ck_assert_int_eq(errno, EPERM);
        ck_assert_int_eq((int)fp_send_packet(client, "x", 1, -1), FP_OK);
        fp_close(&client);
    }
}
END_TEST

START_TEST(one_that_was_left_behind_goes)
{
    ck_assert(fp_socket_path_take(path, group(), &sock, &lock));
    fp_close(&sock);
    fp_close(&lock);
    ck_assert(fp_socket_path_take(path, group(), &sock, &lock));
}
END_TEST

/* A service manager's has no lock; nor has one whose lock was removed. */
START_TEST(one_at_which_somebody_listens_stays)
{
    struct stat before, now;
    int other, client[4], n;

    ck_assert(fp_socket_path_take(path, group(), &sock, &lock));
    ck_assert_int_eq(lstat(path, &before), 0);
    ck_assert_int_eq(unlink(unit_join(dir, "s.lock")), 0);
    ck_assert(!fp_socket_path_take(path, group(), &other, &client[0]));
    fp_close(&client[0]);
    /* Its queue is full. */
    ck_assert_int_eq(listen(sock, 0), 0);
    for (n = 0; n < 4 && (client[n] = connected()) != -1; n++)
        ;
    ck_assert_int_lt(n, 4);
    ck_assert(!fp_socket_path_clear(path));
    ck_assert_int_eq(lstat(path, &now), 0);
    ck_assert(fp_socket_path_same(&now, &before));
    while (n > 0)
        fp_close(&client[--n]);
}
END_TEST

/* Another program's may be of another kind. */
START_TEST(a_socket_of_another_kind_stays)
{
    struct sockaddr_un addr;

    sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(fp_unix_address(&addr, path));
    ck_assert_int_eq(bind(sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
    ck_assert_int_eq(listen(sock, 1), 0);
    ck_assert(!fp_socket_path_clear(path));
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_file_stays)
{
    unit_write_file(path, "no socket");
    ck_assert(!fp_socket_path_clear(path));
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(another_one_in_its_place)
{
    struct stat then, now;

    ck_assert(fp_socket_path_take(path, group(), &sock, &lock));
    ck_assert_int_eq(lstat(path, &then), 0);
    ck_assert(fp_socket_path_same(&then, &then));
    ck_assert_int_eq(unlink(path), 0);
    /* Perhaps with the same inode's number. */
    now = then;
    now.st_mtim.tv_nsec ^= 1;
    ck_assert(!fp_socket_path_same(&now, &then));
    now = (struct stat){ 0 };
    ck_assert(!fp_socket_path_same(&now, &then));
}
END_TEST

START_TEST(whose_directory)
{
    static const struct {
        uid_t owner;
        mode_t mode;
        bool good;
    } cases[] = { { 0, 0710, true },
                  { 0, 0755, true },
                  { 0, 0775, false },
                  { 0, 0757, false },
                  { UNIT_NOBODY, 0700, false } };

    if (geteuid() != 0)
        return;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(chown(dir, cases[i].owner, UNIT_NOBODY), 0);
        ck_assert_int_eq(chmod(dir, cases[i].mode), 0);
        ck_assert_int_eq(fp_socket_path_check(path, UNIT_NOBODY, UNIT_NOBODY), cases[i].good);
    }
    /* A user's daemon: root's directory, or its own. */
    ck_assert_int_eq(chmod(dir, 0700), 0);
    ck_assert_int_eq(seteuid(UNIT_NOBODY), 0);
    ck_assert(fp_socket_path_check(path, UNIT_NOBODY, UNIT_NOBODY));
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chown(dir, 1, 1), 0);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(seteuid(UNIT_NOBODY), 0);
    ck_assert(!fp_socket_path_check(path, UNIT_NOBODY, UNIT_NOBODY));
    ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("socket_path");
    TCase *t = unit_add_case(s, "socket", setup, teardown, 0);

    tcase_add_test(t, made_by_this_user_for_that_group);
    tcase_add_test(t, peers_pass_no_descriptors);
    tcase_add_test(t, one_that_was_left_behind_goes);
    tcase_add_test(t, one_at_which_somebody_listens_stays);
    tcase_add_test(t, a_socket_of_another_kind_stays);
    tcase_add_test(t, a_file_stays);
    tcase_add_test(t, another_one_in_its_place);
    tcase_add_test(t, whose_directory);
    return unit_run(s);
}
