/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/errors.h"

#include <errno.h>
#include <stddef.h>

struct row {
    fp_status status;
    int err; /* 0: no errno of its own */
    const char *text;
};

static const struct row rows[] = {
    { FP_OK, 0, "success" },
    { FP_ABSENT, ENOENT, "no such file or directory" },
    { FP_NOTDIR, ENOTDIR, "a component is not a directory" },
    { FP_DENIED, EACCES, "permission denied" },
    { FP_LOOP, ELOOP, "too many levels of symbolic links" },
    { FP_NAMETOOLONG, ENAMETOOLONG, "name too long" },
    { FP_IOERROR, EIO, "file system error" },
    { FP_TIMEOUT, 0, "deadline passed" },
    { FP_BUSY, 0, "too many lookups waiting" },
    { FP_REFUSED, 0, "this path is not answered here" },
    { FP_TOODEEP, 0, "path has too many components" },
    { FP_FAILED, 0, "the daemon could not look" },
    { FP_VERSION, 0, "no common protocol version" },
    { FP_PROTOCOL, 0, "protocol error" },
    { FP_UNAVAILABLE, 0, "the file system is out of service" },
    { FP_AGAIN, 0, "would block" },
    { FP_CLOSED, 0, "peer closed the connection" },
    { FP_NOMEM, 0, "out of memory" },
    { FP_SYSTEM, 0, "system call failed" },
    { FP_LOSTFD, 0, "no descriptor free" },
    { FP_FOREIGN, 0, "the socket is another user's" },
    { FP_ELSEWHERE, 0, "the daemon sees other files" },
    { FP_UNKNOWN, 0, "unknown" },
    { FP_ASK, 0, "the daemon is to be asked" },
};

const char *fp_status_text(fp_status st)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == st)
            return rows[i].text;
    }
    return "unknown status";
}

fp_status fp_status_from_errno(int err)
{
    if (err == 0)
        return FP_OK;
    /* It is a filter's word or a scanner's, not the file system's.  No stale answer may stand for it. */
    if (err == EPERM || err == ENOSYS)
        return FP_REFUSED;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].err == err)
            return rows[i].status;
    }
    return FP_IOERROR;
}

int fp_status_to_errno(fp_status st)
{
    if (st == FP_OK)
        return 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == st && rows[i].err != 0)
            return rows[i].err;
    }
    return EIO;
}
