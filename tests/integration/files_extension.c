/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded as PHP loads its extensions, and calls stat() itself. */
#include <sys/stat.h>

int extension_stat(const char *path, struct stat *st);

int extension_stat(const char *path, struct stat *st)
{
    return stat(path, st);
}
