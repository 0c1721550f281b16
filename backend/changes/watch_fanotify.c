/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/watch_fanotify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/packet.h"
#include "common/refused.h"
#include "common/watch_by.h"

#ifndef FAN_REPORT_DFID_NAME
#define FAN_REPORT_DFID_NAME 0x00000c00
#endif
#ifndef FAN_REPORT_FID
#define FAN_REPORT_FID 0x00000200
#endif
#ifndef FAN_REPORT_TARGET_FID
#define FAN_REPORT_TARGET_FID 0x00001000
#endif

#ifndef FAN_REPORT_MNT
#define FAN_REPORT_MNT 0x00004000
#define FAN_MARK_MNTNS 0x00000110
#define FAN_MNT_ATTACH 0x01000000
#define FAN_MNT_DETACH 0x02000000
#endif

#define OF_BOTH      (FAN_ATTRIB | FAN_MODIFY | FAN_CLOSE_WRITE)
#define OF_NAMES     (FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO)
#define HANDLE_BYTES (FP_MAX_WATCH_KEY - 1 - 8 - 4) /* that fit into a key */
#define BUFFER_BYTES 65536

/* Events name the directory and the name in it, and beside it the file itself,
 * which may have been changed by another of its names.  Linux 5.17. */
int fp_fanotify_open(void)
{
    int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID | FAN_REPORT_DFID_NAME
                               | FAN_REPORT_TARGET_FID,
                           O_RDONLY);

    /* Without handles no event tells of a file. */
    if (fd != -1 && fp_call_is_refused(SYS_name_to_handle_at))
        fp_close(&fd);
    return fd;
}

bool fp_fanotify_mark(int fanotify, const char *mount_point)
{
    return fanotify_mark(fanotify, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, OF_BOTH | OF_NAMES | FAN_ONDIR,
                         AT_FDCWD, mount_point)
           == 0;
}

int fp_fanotify_open_remounts(void)
{
    int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_MNT, O_RDONLY);
    int ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

    if (fd != -1
        && (ns == -1
            || fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MNTNS, FAN_MNT_ATTACH | FAN_MNT_DETACH, ns, NULL)
                   == -1))
        fp_close(&fd);
    fp_close(&ns);
    return fd;
}

/* "fanotify sdev:fe00000 ...": the device in the kernel's own form, minor in 20 bits. */
static bool get_device(const char *line, dev_t *dev_r)
{
    static const char prefix[] = "fanotify sdev:";
    unsigned long dev;
    char *end;

    if (strncmp(line, prefix, sizeof(prefix) - 1) != 0)
        return false;
    dev = strtoul(line + sizeof(prefix) - 1, &end, 16);
    *dev_r = makedev((unsigned)(dev >> 20), (unsigned)(dev & 0xfffff));
    return *end == ' ';
}

FILE *fp_fanotify_open_marks(int fanotify)
{
    char name[48];

    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fanotify);
    return fopen(name, "re");
}

size_t fp_fanotify_marked(FILE *marks, dev_t *devs, size_t max)
{
    char line[256];
    size_t n = 0;

    rewind(marks);
    while (n < max && fgets(line, sizeof(line), marks) != NULL) {
        if (get_device(line, &devs[n]))
            n++;
    }
    return n;
}

static bool make_key(struct fp_watch_key *key, const void *fsid, int type, const void *handle, size_t len)
{
    key->len = 0;
    if (len > HANDLE_BYTES)
        return false;
    key->bytes[0] = FP_BY_FANOTIFY;
    memcpy(key->bytes + 1, fsid, 8);
    memcpy(key->bytes + 9, &type, 4);
    memcpy(key->bytes + 13, handle, len);
    key->len = (uint8_t)(13 + len);
    return true;
}

fp_status fp_fanotify_place(int fd, struct fp_watch_key *key)
{
    union {
        struct file_handle head;
        char buf[sizeof(struct file_handle) + HANDLE_BYTES];
    } h;
    struct statfs fs;
    int mount;

    h.head.handle_bytes = HANDLE_BYTES;
    if (name_to_handle_at(fd, "", &h.head, &mount, AT_EMPTY_PATH) == -1 || fstatfs(fd, &fs) == -1)
        return fp_status_from_errno(errno);
    return make_key(key, &fs.f_fsid, h.head.handle_type, h.head.f_handle, h.head.handle_bytes) ? FP_OK
                                                                                               : FP_IOERROR;
}

/* Copies: the kernel aligns events to four bytes only. */
struct record {
    const char *at;
    struct fanotify_event_info_fid info;
    struct file_handle handle;
};

/* One record behind an event: a handle, and a name where it is a directory's. */
static void report_record(const struct record *r, bool replaced, const struct fp_watch_ops *ops, void *ctx)
{
    const char *handle = r->at + sizeof(r->info) + sizeof(r->handle);
    const char *name = handle + r->handle.handle_bytes, *end = r->at + r->info.hdr.len;
    struct fp_watch_key key;
    size_t len = 0;

    if (r->handle.handle_bytes > HANDLE_BYTES || name > end
        || !make_key(&key, &r->info.fsid, r->handle.handle_type, handle, r->handle.handle_bytes))
        return;
    if (r->info.hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME)
        len = strnlen(name, (size_t)(end - name));
    /* For a directory's own changes the name is ".". */
    if (len == 1 && name[0] == '.')
        len = 0;
    ops->changed(ctx, &key, name, len, replaced && len > 0);
}

/* The records from p to end. */
static void report_event(const char *p, const char *end, bool replaced, const struct fp_watch_ops *ops,
                         void *ctx)
{
    struct record r;

    while ((size_t)(end - p) >= sizeof(r.info) + sizeof(r.handle)) {
        r.at = p;
        memcpy(&r.info, p, sizeof(r.info));
        memcpy(&r.handle, p + sizeof(r.info), sizeof(r.handle));
        if (r.info.hdr.len == 0 || r.info.hdr.len > end - p)
            break;
        if (r.info.hdr.info_type == FAN_EVENT_INFO_TYPE_FID
            || r.info.hdr.info_type == FAN_EVENT_INFO_TYPE_DFID
            || r.info.hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME)
            report_record(&r, replaced, ops, ctx);
        p += r.info.hdr.len;
    }
}

/* Returns the number of events; -1: something between p and end is unknown here. */
static int report_events(const char *p, const char *end, const struct fp_watch_ops *ops, void *ctx)
{
    struct fanotify_event_metadata e;
    int n = 0;

    for (; (size_t)(end - p) >= sizeof(e); p += e.event_len, n++) {
        memcpy(&e, p, sizeof(e));
        if (e.vers != FANOTIFY_METADATA_VERSION || e.metadata_len < sizeof(e) || e.event_len < e.metadata_len
            || e.event_len > end - p)
            return -1;
        if (e.mask & FAN_Q_OVERFLOW)
            ops->lost(ctx);
        else
            report_event(p + e.metadata_len, p + e.event_len, (e.mask & OF_NAMES) != 0, ops, ctx);
    }
    return n;
}

void fp_fanotify_drain(int fanotify, const struct fp_watch_ops *ops, void *ctx)
{
    static char buf[BUFFER_BYTES];
    ssize_t n = 1;
    int found = 0;

    /* The kernel counts events without the records behind them. */
    for (int left = fp_watch_queued(fanotify) / (int)FAN_EVENT_METADATA_LEN; left > 0; left -= found) {
        n = read(fanotify, buf, sizeof(buf));
        found = n > 0 ? report_events(buf, buf + n, ops, ctx) : 0;
        if (found <= 0)
            break;
    }
    /* An end or an error: events may be missing, and none may come any more. */
    if (found == -1 || n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
        ops->lost(ctx);
}
