/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded as PHP loads its extensions, and calls stat() itself. */
#include <sys/stat.h>

void *get_module(void);
int extension_stat(const char *path, struct stat *st);

/* Every extension has this. */
void *get_module(void)
{
    return 0;
}

int extension_stat(const char *path, struct stat *st)
{
    return stat(path, st);
}
