/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that the configuration names as warm_file: the paths in use, over a restart.
 *
 * It says which paths are worth a look, and nothing about them: each path is looked up again, within
 * roots and with the daemon's rights.  So a user who could write to it could make the daemon look in vain,
 * and nothing else.
 */
#ifndef FP_WARM_H
#define FP_WARM_H

struct flashpached;

/* At the start, before the filters: looks up the file's paths in the background.  A file that is another
 * user's, may be written by others, is too large or malformed is left alone, and the log says so. */
void fp_warm_read(struct flashpached *d);
/* To be called at the end. */
void fp_warm_write(struct flashpached *d);

#endif
