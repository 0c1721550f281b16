/* SPDX-License-Identifier: Apache-2.0 */
/* File systems that lie on this machine alone: no server has a say in them. */
#ifndef FP_LOCAL_TYPES_H
#define FP_LOCAL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* By the name of the type in /proc/self/mountinfo: true if the type reports every change to inotify.  Overlay
 * does not, since other mounts may change the layers below it. */
bool fp_type_reports_all(const char *name);

/* By the same name: true if a server or a process may have
 * to answer each read, as on types that nobody knows. */
bool fp_type_is_remote(const char *name);

/* By the number of the type (statfs.f_type): true if its files may be mapped, since no server cuts them or
 * leaves a page unanswered. */
bool fp_type_may_be_mapped(uint32_t number);

#endif
