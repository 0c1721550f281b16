/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon, as the module's client meets it.  The first byte says what is asked, and
 * whether the greeting is as it should be; then come packets.
 */
#include "config.h"
#include "shared/client.h"

#include <fcntl.h>

#include "fuzz.h"
#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/lease_table.h"
#include "wire/answer.h"

enum { GREETS = 1, CONTROLS = 2 };             /* bits of the first byte */
enum { COUNT = 3, KIND = 12, KIND_SHIFT = 2 }; /* of a packet's: how many, which */

static struct fp_lease_table *slots;
static struct fp_answer_table *answers;
static struct fp_contents *contents;
static int areas[2]; /* of these */
static int kinds[4]; /* the table's two, sealed content, a pipe's end */
static struct fp_reader script;
static bool greets;
static int peer = -1;

int __wrap_connect(int sock, const struct sockaddr *addr, socklen_t len);

static const struct fp_names names = { .n = 1, .list = { { ".htaccess", 9 } } };

static void greet(void)
{
    uint8_t room[128];
    struct fp_writer w;

    fp_writer_init(&w, room, sizeof(room));
    fp_welcome_encode(&w, &(struct fp_welcome){ .version = FP_WIRE_VERSION, .names = names });
    fuzz_send(peer, room, w.len, &kinds[0], 1);
    fp_writer_init(&w, room, sizeof(room));
    fp_empty_encode(&w, FP_FRAME_REFERENCED, 0);
    fuzz_send(peer, room, w.len, &kinds[1], 1);
    fp_writer_init(&w, room, sizeof(room));
    fp_empty_encode(&w, FP_FRAME_EVENTS, 0);
    fuzz_send(peer, room, w.len, &kinds[1], 1);
    fp_writer_init(&w, room, sizeof(room));
    fp_empty_encode(&w, FP_FRAME_ALIVE, 0);
    fuzz_send(peer, room, w.len, &kinds[1], 1);
    fp_writer_init(&w, room, sizeof(room));
    fp_empty_encode(&w, FP_FRAME_ANSWERS, 0);
    fuzz_send(peer, room, w.len, &areas[0], 1);
    fp_writer_init(&w, room, sizeof(room));
    fp_empty_encode(&w, FP_FRAME_CONTENTS, 0);
    fuzz_send(peer, room, w.len, &areas[1], 1);
}

/* All that the daemon will ever say is there, and behind it the end. */
int __wrap_connect(int sock, const struct sockaddr *addr, socklen_t len)
{
    struct fp_reader r = script;
    struct fuzz_piece p;
    int ends[2];

    (void)addr;
    (void)len;
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    FUZZ_MUST(dup2(ends[0], sock) == sock);
    fp_close(&ends[0]);
    fp_close(&peer);
    peer = ends[1];
    if (greets)
        greet();
    while (fuzz_next(&r, &p)) {
        const int fd = kinds[(p.how & KIND) >> KIND_SHIFT], fds[4] = { fd, fd, fd, fd };

        fuzz_send(peer, p.bytes, p.size, fds, p.how & COUNT);
    }
    shutdown(peer, SHUT_WR);
    return 0;
}

static void prepare(void)
{
    int pipe_ends[2];

    slots = fp_lease_table_create(8);
    answers = fp_answer_table_create(1, fp_lease_table_is_used, slots);
    contents = fp_contents_create(1);
    FUZZ_MUST(slots != NULL && answers != NULL && contents != NULL);
    areas[0] = fp_answer_table_fd(answers);
    areas[1] = fp_contents_fd(contents);
    kinds[0] = fp_lease_table_generations_fd(slots);
    kinds[1] = fp_lease_table_referenced_fd(slots);
    kinds[2] = fuzz_file("content", 7);
    FUZZ_MUST(fcntl(kinds[2], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
    FUZZ_MUST(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0);
    kinds[3] = pipe_ends[0];
}

static void look(struct fp_client *client)
{
    static struct fp_answer a;
    struct fp_lease_view *view = NULL;
    char c;

    if (fp_client_lookup(client, "/srv/file", 9, &a, &view) == FP_OK) {
        FUZZ_MUST(a.status == FP_OK || (a.n_steps == 0 && a.fd == -1));
        FUZZ_MUST(a.fd == -1 || pread(a.fd, &c, 1, 0) == 1);
        for (unsigned i = 0; i < a.n_steps && view != NULL; i++)
            fp_lease_view_is_valid(view, a.steps[i].slot, a.steps[i].generation, 1);
        if (a.content && view != NULL)
            fp_contents_view_read(fp_lease_view_contents(view), a.content_at, &c, 1);
        fp_close(&a.fd);
    } else {
        FUZZ_MUST(a.fd == -1 && view == NULL);
    }
    fp_lease_view_release(&view);
}

static void control(struct fp_client *client)
{
    static uint8_t room[FP_MAX_FRAME];
    const struct fp_control q = { .op = FP_CONTROL_REPORT, .what = FP_REPORT_STATS };
    struct fp_reply done;

    if (fp_client_control(client, &q, &done, room) == FP_OK)
        FUZZ_MUST(done.text_len == 0 || done.text[done.text_len - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp_client *client;
    int fds_at_rest;
    uint8_t how;

    if (slots == NULL)
        prepare();
    fds_at_rest = fuzz_free_fd();
    fp_reader_init(&script, data, size);
    how = fp_get_u8(&script);
    greets = (how & GREETS) != 0;
    client = fp_client_create(&(struct fp_client_settings){
        .path = "/fuzz", .timeout_ms = 1000, .max_idle = 1, .names = names, .tells_names = true });
    FUZZ_MUST(client != NULL);
    /* Twice: the second question may find a connection that was kept. */
    for (int i = 0; i < 2; i++)
        (how & CONTROLS ? control : look)(client);
    fp_client_destroy(&client);
    fp_close(&peer);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
