/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/content.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "changes/mount_list.h"
#include "shared/area.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/server_clock.h"

#define PIECE       65536 /* bytes of one read: before each, FUSE may ask for the file's metadata */
#define PATIENCE_MS 500u  /* of reading: after mount_timeout_ms without an answer a mount is out of service */
#define NAME        "flashpache-content"

bool fp_content_is_settled(const struct fp_meta *m, const struct fp_mount_traits *traits)
{
    return traits->local ? fp_meta_had_settled(m, fp_now_ms()) : fp_server_clock_has_settled(m->dev, &m->ctime);
}

bool fp_content_is_wanted(const struct fp_meta *m, uint32_t max, const struct fp_mount_traits *traits)
{
    return S_ISREG(m->mode) && m->size > 0 && m->size <= max && (traits->remote || fp_content_is_settled(m, traits));
}

/* Moves no file offset: descriptors are shared. */
static bool copy(int from, int to, uint64_t size)
{
    static char buf[PIECE];
    const uint64_t began_ms = fp_now_ms();
    uint64_t at = 0;

    do {
        size_t n = size - at < sizeof(buf) ? (size_t)(size - at) : sizeof(buf);

        if (!fp_area_read(from, (size_t)at, buf, n) || pwrite(to, buf, n, (off_t)at) != (ssize_t)n)
            return false;
        at += n;
    } while (at < size && fp_now_ms() - began_ms < PATIENCE_MS);
    return at == size;
}

int fp_content_create(int file, uint64_t size)
{
    int fd = fp_memfd_create(NAME);

    if (fd != -1
        && (!copy(file, fd, size)
            || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == -1))
        fp_close(&fd);
    return fd;
}
