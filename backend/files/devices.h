/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a device is a remote mount, as this process learns from the files that it opens there.
 */
#ifndef FP_FILES_DEVICES_H
#define FP_FILES_DEVICES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* False also where that is not known yet: then the next file that this thread opens tells. */
bool fp_files_is_remote(uint64_t dev);

/* The C library has opened that descriptor. errno stays as it was. */
void fp_files_opened(int fd);

#endif
