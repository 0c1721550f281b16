/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/packet.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "unit.h"

#define MOST_FDS 16

static int near, far;   /* two ends of a connection: near receives */
static int file;        /* something to pass along */
static int fds_at_rest; /* how many descriptors are open when nothing leaked */
static char data[20000];
static size_t len;

static void setup(void)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    near = ends[0];
    far = ends[1];
    file = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_ne(file, -1);
    fds_at_rest = unit_open_fds();
}

static void teardown(void)
{
    fp_close(&near);
    fp_close(&far);
    fp_close(&file);
}

/* Sends n copies of a descriptor, which fp_send_packet() never would. */
static void send_fds(size_t n, const char *text)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(MOST_FDS * sizeof(int))];
    } control;
    struct iovec iov = { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) };
    struct msghdr msg = { .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control.room,
                          .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
    struct cmsghdr *c;

    ck_assert_uint_le(n, MOST_FDS);
    memset(&control, 0, sizeof(control));
    c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof(int));
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(c) + i * sizeof(int), &file, sizeof(int));
    ck_assert_int_eq(sendmsg(far, &msg, 0), (ssize_t)strlen(text));
}

static void assert_same_file(int a, int b)
{
    struct stat sa, sb;

    ck_assert_int_eq(fstat(a, &sa), 0);
    ck_assert_int_eq(fstat(b, &sb), 0);
    ck_assert_uint_eq(sa.st_ino, sb.st_ino);
    ck_assert_uint_eq(sa.st_dev, sb.st_dev);
}

static fp_status receive(int *fd_r)
{
    len = 4242;
    return fp_recv_packet(near, data, sizeof(data), &len, fd_r);
}

/* With room for so many more descriptors in this process. */
static fp_status receive_with_room(unsigned fds, int *fd_r)
{
    const struct rlimit before = unit_leave_fds(fds);
    const fp_status st = receive(fd_r);

    unit_restore_fds(&before);
    return st;
}

/* ---- successes ---- */

START_TEST(packet_without_descriptor)
{
    int fd = 99;

    ck_assert_int_eq((int)fp_send_packet(far, "hello", 5, -1), FP_OK);
    ck_assert_int_eq((int)receive(&fd), FP_OK);
    ck_assert_uint_eq(len, 5);
    ck_assert_mem_eq(data, "hello", 5);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq((int)fp_send_packet(far, "again", 5, -1), FP_OK);
    ck_assert_int_eq((int)receive(NULL), FP_OK);
    ck_assert_uint_eq(len, 5);
}
END_TEST

START_TEST(packet_with_descriptor)
{
    int fd = -1;

    ck_assert_int_eq((int)fp_send_packet(far, "x", 1, file), FP_OK);
    ck_assert(unit_is_open(file));
    ck_assert_int_eq((int)receive(&fd), FP_OK);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_ne(fd, file);
    assert_same_file(fd, file);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
}
END_TEST

START_TEST(packets_keep_their_bounds_and_order)
{
    for (char c = 'a'; c <= 'e'; c++)
        ck_assert_int_eq((int)fp_send_packet(far, &c, 1, c % 2 == 0 ? file : -1), FP_OK);
    for (char c = 'a'; c <= 'e'; c++) {
        int fd;

        ck_assert_int_eq((int)receive(&fd), FP_OK);
        ck_assert_uint_eq(len, 1);
        ck_assert_int_eq(data[0], c);
        ck_assert_int_eq(fd != -1, c % 2 == 0);
        fp_close(&fd);
    }
}
END_TEST

START_TEST(largest_packet)
{
    static char big[16384];
    int fd;

    memset(big, 'q', sizeof(big));
    ck_assert_int_eq((int)fp_send_packet(far, big, sizeof(big), file), FP_OK);
    ck_assert_int_eq((int)fp_recv_packet(near, data, sizeof(big), &len, &fd), FP_OK);
    ck_assert_uint_eq(len, sizeof(big));
    ck_assert_mem_eq(data, big, sizeof(big));
    fp_close(&fd);
}
END_TEST

START_TEST(close_keeps_errno_and_forgets)
{
    int fd = dup(file), none = -1;

    errno = ENOTTY;
    fp_close(&fd);
    fp_close(&none);
    ck_assert_int_eq(errno, ENOTTY);
    ck_assert_int_eq(fd, -1);
    fp_close(&fd);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}
END_TEST

/* ---- hostile peers ---- */

START_TEST(surplus_descriptors_are_closed)
{
    static const size_t counts[] = { 2, 3, 4, 10, MOST_FDS };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int fd = 99;

        send_fds(counts[i], "many");
        ck_assert_int_eq((int)receive(&fd), FP_PROTOCOL);
        ck_assert_int_eq(fd, -1);
        ck_assert_int_eq(unit_open_fds(), fds_at_rest);
        send_fds(counts[i], "many");
        ck_assert_int_eq((int)receive(NULL), FP_PROTOCOL);
        ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    }
}
END_TEST

START_TEST(descriptor_that_may_not_come_is_closed)
{
    ck_assert_int_eq((int)fp_send_packet(far, "x", 1, file), FP_OK);
    ck_assert_int_eq((int)receive(NULL), FP_PROTOCOL);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}
END_TEST

START_TEST(packet_longer_than_the_room)
{
    int fd = 99;

    ck_assert_int_eq((int)fp_send_packet(far, "123456789", 9, -1), FP_OK);
    ck_assert_int_eq((int)fp_recv_packet(near, data, 8, &len, &fd), FP_PROTOCOL);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq((int)fp_send_packet(far, "123456789", 9, file), FP_OK);
    ck_assert_int_eq((int)fp_recv_packet(near, data, 8, &len, &fd), FP_PROTOCOL);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    ck_assert_int_eq((int)fp_send_packet(far, "12345678", 8, -1), FP_OK);
    ck_assert_int_eq((int)fp_recv_packet(near, data, 8, &len, &fd), FP_OK);
}
END_TEST

START_TEST(empty_packet_is_the_end)
{
    int fd = 99;

    ck_assert_int_eq(send(far, "", 0, 0), 0);
    ck_assert_int_eq((int)receive(&fd), FP_CLOSED);
    ck_assert_int_eq(fd, -1);
    send_fds(1, "");
    ck_assert_int_eq((int)receive(&fd), FP_CLOSED);
    ck_assert_int_eq(fd, -1);
    send_fds(3, "");
    ck_assert_int_ne((int)receive(&fd), FP_OK);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}
END_TEST

START_TEST(peer_that_is_gone)
{
    int fd = 99;

    fp_close(&far);
    ck_assert_int_eq((int)receive(&fd), FP_CLOSED);
    ck_assert_int_eq(fd, -1);
    /* SIGPIPE would have ended this process. */
    ck_assert_int_eq((int)fp_send_packet(near, "x", 1, -1), FP_CLOSED);
    ck_assert_int_eq((int)fp_send_packet(near, "x", 1, file), FP_CLOSED);
}
END_TEST

START_TEST(last_words_of_a_peer_that_is_gone)
{
    int fd;

    ck_assert_int_eq((int)fp_send_packet(far, "bye", 3, file), FP_OK);
    fp_close(&far);
    ck_assert_int_eq((int)receive(&fd), FP_OK);
    ck_assert_int_ne(fd, -1);
    fp_close(&fd);
    ck_assert_int_eq((int)receive(&fd), FP_CLOSED);
}
END_TEST

START_TEST(peer_that_left_unread_data)
{
    int fd;

    ck_assert_int_eq((int)fp_send_packet(near, "unread", 6, -1), FP_OK);
    fp_close(&far);
    ck_assert_int_eq((int)receive(&fd), FP_CLOSED);
}
END_TEST

/* ---- our own limits ---- */

START_TEST(no_descriptor_free)
{
    int fd = 99;

    ck_assert_int_eq((int)fp_send_packet(far, "data", 4, file), FP_OK);
    ck_assert_int_eq((int)receive_with_room(0, &fd), FP_LOSTFD);
    ck_assert_int_eq(fd, -1);
    ck_assert_uint_eq(len, 4);
    ck_assert_mem_eq(data, "data", 4);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}
END_TEST

START_TEST(no_descriptor_free_for_one_that_may_not_come)
{
    ck_assert_int_eq((int)fp_send_packet(far, "data", 4, file), FP_OK);
    ck_assert_int_eq((int)receive_with_room(0, NULL), FP_PROTOCOL);
}
END_TEST

START_TEST(descriptor_free_for_the_first_of_two)
{
    int fd = 99;

    send_fds(2, "data");
    ck_assert_int_eq((int)receive_with_room(1, &fd), FP_PROTOCOL);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}
END_TEST

/* A process that closes any descriptor of a file loses its locks on it (fcntl(2)). So the locks
 * show whether this process ever had the sent descriptor. */
static bool is_locked(int by_another)
{
    struct flock l = { .l_type = F_WRLCK };

    ck_assert_int_eq(fcntl(by_another, F_OFD_GETLK, &l), 0);
    return l.l_type != F_UNLCK;
}

START_TEST(descriptors_that_nobody_expects_are_never_ours)
{
    struct flock l = { .l_type = F_WRLCK };
    char name[FP_FD_NAME];
    int another, fd;

    fp_fd_name(name, file);
    another = open(name, O_RDWR | O_CLOEXEC);
    ck_assert_int_ne(another, -1);
    ck_assert_int_eq(fcntl(file, F_SETLK, &l), 0);
    for (size_t n = 1; n <= MOST_FDS; n *= 2) {
        send_fds(n, "data");
        ck_assert_int_eq((int)receive(NULL), FP_PROTOCOL);
        ck_assert(is_locked(another));
    }
    ck_assert_int_eq((int)fp_send_packet(far, "data", 4, file), FP_OK);
    ck_assert_int_eq((int)receive(&fd), FP_OK);
    close(fd);
    ck_assert(!is_locked(another));
    close(another);
}
END_TEST

START_TEST(nothing_there_yet)
{
    int fd = 99;

    ck_assert_int_eq(fcntl(near, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq((int)receive(&fd), FP_AGAIN);
    ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(full_socket_takes_whole_packets_or_none)
{
    static char packet[5000];
    size_t sent = 0, came = 0;
    fp_status st;

    ck_assert_int_eq(fcntl(far, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(fcntl(near, F_SETFL, O_NONBLOCK), 0);
    while ((st = fp_send_packet(far, packet, sizeof(packet), file)) == FP_OK)
        sent++;
    ck_assert_int_eq((int)st, FP_AGAIN);
    ck_assert_uint_ge(sent, 1);
    for (int fd; (st = receive(&fd)) == FP_OK; fp_close(&fd)) {
        ck_assert_uint_eq(len, sizeof(packet));
        ck_assert_int_ne(fd, -1);
        came++;
    }
    ck_assert_int_eq((int)st, FP_AGAIN);
    ck_assert_uint_eq(came, sent);
}
END_TEST

START_TEST(time_that_runs_out)
{
    const struct timeval tv = { 0, 20000 };
    int fd;

    ck_assert_int_eq(setsockopt(near, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
    ck_assert_int_eq((int)receive(&fd), FP_AGAIN);
}
END_TEST

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
    (void)sig;
    /* Only after a second interruption is there something to receive. */
    if (++signals == 2)
        ck_assert_int_eq(send(far, "late", 4, 0), 4);
}

START_TEST(signals_do_not_interrupt)
{
    const struct sigaction action = { .sa_handler = count_signal };
    const struct itimerval every = { { 0, 10000 }, { 0, 10000 } };
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    int fd;
    fp_status st;

    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
    st = receive(&fd);
    setitimer(ITIMER_REAL, &never, NULL);
    ck_assert_int_eq((int)st, FP_OK);
    ck_assert_mem_eq(data, "late", 4);
}
END_TEST

/* Each signal would begin the socket's time anew. */
START_TEST(signals_do_not_lengthen_the_time)
{
    const struct sigaction action = { .sa_handler = count_signal };
    const struct itimerval every = { { 0, 10000 }, { 0, 10000 } };
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    const struct timeval tv = { 0, 50000 };
    int fd;
    fp_status st;

    signals = 2;
    ck_assert_int_eq(setsockopt(near, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
    st = receive(&fd);
    setitimer(ITIMER_REAL, &never, NULL);
    ck_assert_int_eq((int)st, FP_AGAIN);
    ck_assert_int_gt(signals, 2);
}
END_TEST

/* ---- seals ---- */

START_TEST(what_is_sealed)
{
    const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

    for (int missing = 0; missing < 4; missing++) {
        static const int seals[] = { 0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE };
        int fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        ck_assert_int_eq(write(fd, "abc", 3), 3);
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, all & ~seals[missing]), 0);
        ck_assert_int_eq(fp_is_sealed(fd, 3), missing == 0);
        ck_assert(!fp_is_sealed(fd, 2));
        ck_assert(!fp_is_sealed(fd, 4));
        close(fd);
    }
    ck_assert(!fp_is_sealed(file, 0));
    ck_assert(!fp_is_sealed(-1, 0));
}
END_TEST

START_TEST(what_can_be_read)
{
    static const struct {
        const char *name;
        int flags;
        bool can;
    } files[] = {
        { "/proc/self/exe", O_RDONLY, true },   { "/proc/self/exe", O_PATH, false },
        { "/proc/self/comm", O_WRONLY, false }, { "/", O_RDONLY, false },
        { "/dev/null", O_RDONLY, false },
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = open(files[i].name, files[i].flags | O_CLOEXEC);

        ck_assert_int_ne(fd, -1);
        ck_assert_int_eq(fp_is_readable_file(fd), files[i].can);
        close(fd);
    }
    ck_assert(fp_is_readable_file(file));
    ck_assert(!fp_is_readable_file(near));
    ck_assert(!fp_is_readable_file(-1));
}
END_TEST

START_TEST(no_socket_at_all)
{
    int fd = 99;

    ck_assert_int_eq((int)fp_send_packet(file, "x", 1, -1), FP_SYSTEM);
    ck_assert_int_eq((int)fp_recv_packet(file, data, 10, &len, &fd), FP_SYSTEM);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq((int)fp_send_packet(-1, "x", 1, -1), FP_SYSTEM);
}
END_TEST

/* ---- /dev/null ---- */

static bool leads_to_null(int fd)
{
    struct stat null, st;

    ck_assert_int_eq(stat("/dev/null", &null), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    return S_ISCHR(st.st_mode) && st.st_rdev == null.st_rdev;
}

/* Readable and writable, and it stays so over an exec. */
static void assert_led_to_null(int fd)
{
    ck_assert(fp_lead_to_null(fd));
    ck_assert(leads_to_null(fd));
    ck_assert_int_eq(fcntl(fd, F_GETFD), 0);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
}

/* Open before, closed with the lowest number that is free, and with another one. */
START_TEST(what_leads_to_null)
{
    int lowest = fcntl(file, F_DUPFD_CLOEXEC, 0), higher;

    ck_assert_int_ne(lowest, -1);
    assert_led_to_null(lowest);
    ck_assert(!leads_to_null(file));
    higher = lowest + 5;
    close(lowest);
    assert_led_to_null(lowest);
    ck_assert(!unit_is_open(higher));
    assert_led_to_null(higher);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 2);
    close(lowest);
    close(higher);
}
END_TEST

START_TEST(what_cannot_be_led_to_null)
{
    struct rlimit before = unit_leave_fds(0);
    bool done = fp_lead_to_null(file);

    unit_restore_fds(&before);
    ck_assert(!done);
    ck_assert(!leads_to_null(file));
    ck_assert(!fp_lead_to_null(-1));
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}
END_TEST

/* ---- an address ---- */

START_TEST(longest_path_of_a_socket)
{
    char path[FP_MAX_SOCKET_PATH + 2];
    struct sockaddr_un addr;

    memset(path, 'a', sizeof(path));
    path[FP_MAX_SOCKET_PATH + 1] = '\0';
    ck_assert(!fp_unix_address(&addr, path));
    path[FP_MAX_SOCKET_PATH] = '\0';
    ck_assert(fp_unix_address(&addr, path));
    ck_assert_int_eq(addr.sun_family, AF_UNIX);
    ck_assert_str_eq(addr.sun_path, path);
    ck_assert_uint_eq(FP_MAX_SOCKET_PATH, 107);
}
END_TEST

/* ---- an end ---- */

/* Frames sent meanwhile reach nobody. */
START_TEST(hanging_up_waits_for_the_other_end)
{
    const pid_t pid = fork();
    int status;
    char c;

    if (pid == 0) {
        close(near);
        send(far, "x", 1, 0);
        _exit(recv(far, &c, 1, 0) == 0 ? 0 : 1);
    }
    fp_close(&far);
    fp_hang_up(&near);
    ck_assert_int_eq(near, -1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    fp_hang_up(&near);
}
END_TEST

/* Somebody may have stopped the process there. */
START_TEST(nobody_hangs_up_for_ever)
{
    fp_hang_up(&near);
    ck_assert_int_eq(near, -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fdio");
    TCase *t = unit_add_case(s, "packets", setup, teardown, 0);

    tcase_add_test(t, packet_without_descriptor);
    tcase_add_test(t, packet_with_descriptor);
    tcase_add_test(t, packets_keep_their_bounds_and_order);
    tcase_add_test(t, largest_packet);
    tcase_add_test(t, close_keeps_errno_and_forgets);
    t = unit_add_case(s, "hostile", setup, teardown, 0);
    tcase_add_test(t, surplus_descriptors_are_closed);
    tcase_add_test(t, descriptors_that_nobody_expects_are_never_ours);
    tcase_add_test(t, descriptor_that_may_not_come_is_closed);
    tcase_add_test(t, packet_longer_than_the_room);
    tcase_add_test(t, empty_packet_is_the_end);
    tcase_add_test(t, peer_that_is_gone);
    tcase_add_test(t, last_words_of_a_peer_that_is_gone);
    tcase_add_test(t, peer_that_left_unread_data);
    t = unit_add_case(s, "limits", setup, teardown, 0);
    tcase_add_test(t, no_descriptor_free);
    tcase_add_test(t, no_descriptor_free_for_one_that_may_not_come);
    tcase_add_test(t, descriptor_free_for_the_first_of_two);
    tcase_add_test(t, nothing_there_yet);
    tcase_add_test(t, full_socket_takes_whole_packets_or_none);
    tcase_add_test(t, time_that_runs_out);
    tcase_add_test(t, signals_do_not_interrupt);
    tcase_add_test(t, signals_do_not_lengthen_the_time);
    tcase_add_test(t, no_socket_at_all);
    t = unit_add_case(s, "seals", setup, teardown, 0);
    tcase_add_test(t, what_is_sealed);
    tcase_add_test(t, longest_path_of_a_socket);
    tcase_add_test(t, hanging_up_waits_for_the_other_end);
    tcase_add_test(t, nobody_hangs_up_for_ever);
    tcase_add_test(t, what_can_be_read);
    t = unit_add_case(s, "null", setup, teardown, 0);
    tcase_add_test(t, what_leads_to_null);
    tcase_add_test(t, what_cannot_be_led_to_null);
    return unit_run(s);
}
