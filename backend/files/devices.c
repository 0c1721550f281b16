/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/local_types.h"

#define DEVICES 64 /* that are remembered, about */

static _Atomic uint64_t devices[DEVICES]; /* twice the device, and 1 if it is local; 0: none */
static __thread bool wants_device;        /* this thread has just met a device of which it is not known */

void fp_files_opened(int fd)
{
    const int before = errno;
    struct statfs fs;
    struct stat st;

    if (wants_device && fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && fstatfs(fd, &fs) == 0)
        atomic_store(&devices[st.st_dev % DEVICES],
                     (uint64_t)st.st_dev * 2 + fp_type_may_be_mapped((uint32_t)fs.f_type));
    wants_device = false;
    errno = before;
}

bool fp_files_is_remote(uint64_t dev)
{
    const uint64_t known = atomic_load_explicit(&devices[dev % DEVICES], memory_order_relaxed);

    wants_device = known / 2 != dev;
    return known == dev * 2;
}
