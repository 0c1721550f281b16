/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls this process has.  A container's or a service's filter may refuse some, and an older
 * kernel knows fewer.  A refused call fails for every path, so its errno says nothing about one.
 */
#ifndef FP_REFUSED_H
#define FP_REFUSED_H

#include <stdbool.h>

/* True, with errno, if the call is refused, or unknown here.  It is tried with a descriptor and a pointer
 * that no kernel takes, so it must be one that fails then before it does anything. */
bool fp_call_is_refused(long call);

/* The name of a refused call that the daemon cannot do without, with errno. NULL: it has them all. */
const char *fp_refused_call(void);

#endif
