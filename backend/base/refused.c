/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/refused.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROW(call) { SYS_##call, #call }

/* Without these no walk, or no answer about one, can be right.  Where others fail the start says so, or the
 * daemon does without. */
static const struct {
    long number;
    const char *name;
} needed[] = {
    /* clang-format off */
    ROW(statx), ROW(openat), ROW(fcntl), ROW(pread64),                          /* looks */
    ROW(recvmsg), ROW(sendmsg), ROW(accept4), ROW(connect), ROW(getsockopt),    /* questions */
    ROW(epoll_create1), ROW(epoll_ctl), ROW(ioctl), ROW(read),                  /* events */
#ifdef SYS_epoll_wait
    ROW(epoll_wait),
#else
    ROW(epoll_pwait),
#endif
    ROW(memfd_create), ROW(ftruncate), ROW(mremap), ROW(futex),                 /* shared memory */
    ROW(prctl), ROW(capset),                                                    /* rights given up */
    /* clang-format on */
};

bool fp_call_is_refused(long call)
{
    return syscall(call, -1L, 0L, 0L, 0L, 0L, 0L) == -1 && errno != EBADF && errno != EFAULT
           && errno != EINVAL;
}

const char *fp_refused_call(void)
{
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (fp_call_is_refused(needed[i].number))
            return needed[i].name;
    }
    return NULL;
}
