/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "turns.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

struct turns *turns_create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    void *map = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (ftruncate(fd, sizeof(struct turns)) == 0)
        map = mmap(NULL, sizeof(struct turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return map == MAP_FAILED ? NULL : map;
}

void turns_count(struct turns *turns, int ready)
{
    if (turns != NULL && ready > 0 && ready <= TURNS_EVENTS_MOST)
        (void)atomic_fetch_add_explicit(&turns->of_ready[ready], 1, memory_order_relaxed);
}
