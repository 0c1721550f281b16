/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/watch_remounts.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include "wire/packet.h"

#ifndef FAN_REPORT_MNT
#define FAN_REPORT_MNT 0x00004000
#define FAN_MARK_MNTNS 0x00000110
#define FAN_MNT_ATTACH 0x01000000
#define FAN_MNT_DETACH 0x02000000
#endif

int fp_remounts_open(void)
{
    int fd, ns;

    if (geteuid() != 0)
        return -1;
    fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_MNT, O_RDONLY);
    ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (fd != -1
        && (ns == -1
            || fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MNTNS, FAN_MNT_ATTACH | FAN_MNT_DETACH, ns, NULL)
                   == -1))
        fp_close(&fd);
    fp_close(&ns);
    return fd;
}
