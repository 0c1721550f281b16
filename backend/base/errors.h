/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outcomes of Flashpache's own functions.  Numbers below 64 also travel
 * on the wire (docs/protocol.md, "Status"); errno never does.
 */
#ifndef FP_ERRORS_H
#define FP_ERRORS_H

typedef enum fp_status {
    FP_OK = 0,

    /* Outcomes of the file system for a path. */
    FP_ABSENT = 1,      /* ENOENT: no such name */
    FP_NOTDIR = 2,      /* ENOTDIR: a component is not a directory */
    FP_DENIED = 3,      /* EACCES: not permitted */
    FP_LOOP = 4,        /* ELOOP: too many symbolic links */
    FP_NAMETOOLONG = 5, /* ENAMETOOLONG */
    FP_IOERROR = 6,     /* anything else, EIO and ESTALE included */

    /* Why there is no answer: the client serves the request without one. */
    FP_TIMEOUT = 16,     /* the deadline passed */
    FP_BUSY = 17,        /* a queue or table is full */
    FP_REFUSED = 18,     /* this path is not answered here; also EPERM and ENOSYS */
    FP_TOODEEP = 19,     /* more components than an answer can hold */
    FP_FAILED = 20,      /* the daemon could not look: a worker died */
    FP_VERSION = 21,     /* no common protocol version */
    FP_PROTOCOL = 22,    /* the peer broke the protocol */
    FP_UNAVAILABLE = 23, /* the file system is out of service; a reason as 16 to 20 are */

    /* Local only. */
    FP_AGAIN = 64,  /* would block */
    FP_CLOSED = 65, /* the peer is gone */
    FP_NOMEM = 66,
    FP_SYSTEM = 67,   /* a system call failed: see errno */
    FP_LOSTFD = 68,   /* this process has no descriptor free, for one that was sent or for a socket */
    FP_FOREIGN = 69,  /* a socket that is not trusted: another user's */
    FP_ELSEWHERE = 70, /* the peer sees other files than this process */
    FP_UNKNOWN = 71,   /* nothing is known here: look, or ask the daemon */
    FP_ASK = 72        /* the daemon knows, and nobody else */
} fp_status;

/* One line of text, never NULL, static. */
const char *fp_status_text(fp_status st);

/* The status that stands for the errno of a path operation; 0 gives FP_OK. */
fp_status fp_status_from_errno(int err);

/*
 * The errno that stands for a file system outcome.  FP_OK gives 0; an outcome with
 * no errno of its own gives EIO.
 */
int fp_status_to_errno(fp_status st);

#endif
