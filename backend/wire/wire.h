/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded reading and writing of fields, and the frame header.  Integers are
 * big-endian; docs/protocol.md is normative.
 *
 * Both types remember the first failure ("bad"): a caller writes or reads all
 * its fields and asks once at the end.  After a failure nothing is written
 * and every read gives zero.
 */
#ifndef FP_WIRE_H
#define FP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/path.h"
#include "wire/sight.h"

#define FP_WIRE_MAGIC   0x46504348u /* "FPCH" */
#define FP_WIRE_VERSION 5
#define FP_MAX_FRAME    32768                                 /* bytes, header included */
#define FP_FRAME_HEADER 16                                    /* bytes */
#define FP_MAX_TEXT     255                                   /* bytes of an error's text */
#define FP_MAX_NAMES    4                                     /* of access files, of a client or a daemon */
#define FP_MAX_REPORT   (FP_MAX_FRAME - FP_FRAME_HEADER - 15) /* bytes of text in a REPLY */
#define FP_MAX_PARTS    64                                    /* of a report that a child reads */

enum fp_frame_type {
    FP_FRAME_HELLO = 1,      /* client -> daemon, first */
    FP_FRAME_WELCOME = 2,    /* daemon -> client */
    FP_FRAME_LOOKUP = 3,     /* client -> daemon */
    FP_FRAME_ANSWER = 4,     /* worker -> daemon -> client; may carry a descriptor */
    FP_FRAME_ERROR = 5,      /* daemon -> client, last on a connection */
    FP_FRAME_TASK = 6,       /* daemon -> worker; may carry a descriptor */
    FP_FRAME_CONTROL = 7,    /* client -> daemon */
    FP_FRAME_REPLY = 8,      /* daemon -> client */
    FP_FRAME_REFERENCED = 9, /* daemon -> client, after WELCOME; carries a descriptor */
    FP_FRAME_EVENTS = 10,    /* daemon -> client, after REFERENCED; carries a descriptor */
    FP_FRAME_ALIVE = 11,     /* daemon -> client, after EVENTS; carries a descriptor */
    FP_FRAME_CLOSED = 12,    /* worker -> daemon, after some ANSWERs (fp_result_is_closed_later()) */
    FP_FRAME_ANSWERS = 13,   /* daemon -> client, after ALIVE; carries a descriptor */
    FP_FRAME_CONTENTS = 14   /* daemon -> client, after ANSWERS; carries a descriptor */
};

/* A buffer being filled.  The memory is the caller's. */
struct fp_writer {
    uint8_t *data;
    size_t len, cap;
    bool bad;
};

/* Bytes being read.  The memory is the caller's. */
struct fp_reader {
    const uint8_t *pos, *end;
    bool bad;
};

struct fp_frame {
    uint8_t type; /* enum fp_frame_type */
    uint64_t id;  /* the client's number for this question */
    struct fp_reader body;
};

/* Begins a frame of at most cap bytes in the caller's memory. A value that does not fit sets bad, and is left
 * out. */
void fp_writer_init(struct fp_writer *w, void *memory, size_t cap);
void fp_put_u8(struct fp_writer *w, uint8_t v);
void fp_put_u16(struct fp_writer *w, uint16_t v);
void fp_put_u32(struct fp_writer *w, uint32_t v);
void fp_put_u64(struct fp_writer *w, uint64_t v);
void fp_put_bytes(struct fp_writer *w, const void *p, size_t n);

/* Begins to read n bytes of the caller's.  Reading behind them sets bad, and gives zeros. */
void fp_reader_init(struct fp_reader *r, const void *p, size_t n);
uint8_t fp_get_u8(struct fp_reader *r);
uint16_t fp_get_u16(struct fp_reader *r);
uint32_t fp_get_u32(struct fp_reader *r);
uint64_t fp_get_u64(struct fp_reader *r);
/* A view of n bytes inside the buffer; NULL (and bad) if fewer are left. */
const uint8_t *fp_get_bytes(struct fp_reader *r, size_t n);
/* True when everything was read, nothing is left over and nothing failed. */
bool fp_reader_done(const struct fp_reader *r);

/* Starts a frame in an empty writer; fp_frame_end() fills in its length. */
void fp_frame_begin(struct fp_writer *w, enum fp_frame_type type, uint64_t id);
/* FP_OK, or FP_PROTOCOL if the fields did not fit. */
fp_status fp_frame_end(struct fp_writer *w);
/* Checks the header of the one frame in [p, p+n); FP_OK or FP_PROTOCOL. */
fp_status fp_frame_parse(struct fp_frame *f, const void *p, size_t n);

/* Names of access files (AccessFileName), which are looked for in every directory of a path: single
 * components, in an order. */
struct fp_names {
    unsigned n;
    struct {
        const char *name; /* not terminated */
        size_t len;
    } list[FP_MAX_NAMES];
};

/* HELLO: the versions that a client speaks, and the names that it brings; they point into the reader's
 * buffer. */
struct fp_hello {
    uint16_t version_min, version_max;
    struct fp_names names;
};
fp_status fp_hello_encode(struct fp_writer *w, const struct fp_hello *h);
fp_status fp_hello_decode(struct fp_reader *r, struct fp_hello *h);

/* WELCOME: the version that the daemon chose, what it sees of the file system, and the names that it looks
 * for. Decoding leaves these pointing into the reader's buffer. */
struct fp_welcome {
    uint16_t version;
    struct fp_sight sight;
    struct fp_names names;
};
fp_status fp_welcome_encode(struct fp_writer *w, const struct fp_welcome *h);
fp_status fp_welcome_decode(struct fp_reader *r, struct fp_welcome *h);

/* A frame without a body.  REFERENCED, EVENTS, ALIVE, ANSWERS, CONTENTS: nothing but the descriptor that goes with
 * it; id is 0.  CLOSED: nothing but the task's number. */
fp_status fp_empty_encode(struct fp_writer *w, enum fp_frame_type type, uint64_t id);

/* How many names, then each with its length.  Reading leaves them pointing into the reader's buffer. */
void fp_put_names(struct fp_writer *w, const struct fp_names *n);
void fp_get_names(struct fp_reader *r, struct fp_names *n);

/*
 * LOOKUP.  path is absolute, in normal form (fp_path_is_normal) and not
 * terminated; decoding leaves it pointing into the reader's buffer.
 */
struct fp_lookup {
    uint32_t deadline_ms; /* how long the client waits */
    const char *path;
    size_t path_len;
    bool fresh;       /* answered only by what is watched, or by a walk that begins after the question */
    bool no_stale_fd; /* a stale answer brings no descriptor: the client's close of it might hang */
    bool hint;        /* no answer comes; the daemon looks the path up if it has time for it */
};
fp_status fp_lookup_encode(struct fp_writer *w, uint64_t id, const struct fp_lookup *l);
fp_status fp_lookup_decode(struct fp_reader *r, struct fp_lookup *l);
/* Writes the lookup's fields alone, as they also stand at the end of a TASK. */
void fp_put_lookup(struct fp_writer *w, const struct fp_lookup *l);

enum fp_control_op {
    FP_CONTROL_PURGE = 1,  /* forget entries */
    FP_CONTROL_REPORT = 2, /* report counters and state */
    FP_CONTROL_EXPLAIN = 3 /* report the entries of a path, without a walk */
};

enum fp_scope {
    FP_SCOPE_PATH = 1, /* the path itself */
    FP_SCOPE_TREE = 2, /* the path and everything below */
    FP_SCOPE_ALL = 3   /* everything; no path */
};

enum fp_report {
    FP_REPORT_MOUNTS = 1,
    FP_REPORT_STATS = 2,
    FP_REPORT_LATENCY = 3,
    FP_REPORT_ABOUT = 4
};
#define FP_REPORTS 4 /* how many there are */
#define FP_START_S 5 /* seconds of uptime for which workers that do not live yet are no fault */

/*
 * CONTROL: an operator's request.  The fields of other operations are
 * zero.  path is as in a LOOKUP, and decoded likewise.
 */
struct fp_control {
    enum fp_control_op op;
    enum fp_scope scope; /* PURGE */
    const char *path;    /* PURGE, EXPLAIN; NULL for FP_SCOPE_ALL */
    size_t path_len;
    enum fp_report what; /* REPORT */
    uint32_t from;       /* REPORT: 0, or the last answer's next */
};
fp_status fp_control_encode(struct fp_writer *w, uint64_t id, const struct fp_control *c);
fp_status fp_control_decode(struct fp_reader *r, struct fp_control *c);

/*
 * REPLY, to a CONTROL.  status: FP_OK, or the reason why it was not done; then
 * the other fields are empty.  text: whole lines, each with its line end, at
 * most FP_MAX_REPORT bytes, not terminated; decoding leaves it pointing into the
 * reader's buffer.
 */
struct fp_reply {
    fp_status status;
    uint64_t count; /* PURGE: forgotten entries */
    uint32_t next;  /* REPORT: where it goes on, 0: that was all */
    const char *text;
    size_t text_len;
};
fp_status fp_reply_encode(struct fp_writer *w, uint64_t id, const struct fp_reply *d);
fp_status fp_reply_decode(struct fp_reader *r, struct fp_reply *d);

/* True for a status that may be the reason why there is no answer. */
bool fp_status_is_reason(fp_status st);

/* The index of that name; -1: there is none. */
int fp_names_find(const struct fp_names *names, const char *name, size_t len);

/* True for the same names in the same order. */
bool fp_names_equal(const struct fp_names *a, const struct fp_names *b);

/* Appends the names that the list lacks; they stay the caller's.  False: it has no room for all of them, and
 * is as it was. */
bool fp_names_join(struct fp_names *all, const struct fp_names *more);

#define FP_NAMES_TEXT (FP_MAX_NAMES * FP_MAX_NAME) /* bytes: room for the names of any list */
/* Copies the list and its names; *to then points into text. */
void fp_names_copy(struct fp_names *to, char text[FP_NAMES_TEXT], const struct fp_names *names);

/* ERROR: text is for a log, at most FP_MAX_TEXT bytes are sent. */
fp_status fp_error_encode(struct fp_writer *w, uint64_t id, fp_status st, const char *text);
fp_status fp_error_decode(struct fp_reader *r, fp_status *st_r);

#endif
