/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/content.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/answer.h"
#include "common/area.h"
#include "common/clock.h"
#include "common/packet.h"

#define NAME "flashpache-content"

bool fp_content_is_settled(const struct fp_meta *m, uint32_t max)
{
    return S_ISREG(m->mode) && m->size > 0 && m->size <= max && fp_meta_had_settled(m, fp_now_ms());
}

/* In one piece: a file system in user space may be asked for the file's metadata at each read.  Moves no file offset:
 * descriptors are shared. */
static bool copy(int from, int to, size_t size)
{
    char *buf = malloc(size);
    const bool done =
        buf != NULL && fp_area_read(from, 0, buf, size) && pwrite(to, buf, size, 0) == (ssize_t)size;

    free(buf);
    return done;
}

int fp_content_create(int file, uint64_t size)
{
    int fd = fp_memfd_create(NAME);

    if (fd != -1
        && (!copy(file, fd, (size_t)size)
            || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == -1))
        fp_close(&fd);
    return fd;
}
