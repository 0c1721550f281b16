/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table by which a shared object calls functions of others: it can lead to other functions.  Calls that
 * an object makes by other ways (a pointer that it has already, a call of its own) go where they went.
 */
#ifndef FP_IMPORTS_H
#define FP_IMPORTS_H

#include <stddef.h>

typedef void fp_function(void);

struct fp_import {
    const char *name;
    fp_function *from; /* where the calls must lead until now; NULL: anywhere */
    fp_function *to;
};

/*
 * Leads the calls of the object that has that address in it. Returns how many of the n functions it
 * calls, or -1, *why_r (a text) and errno (0: none): some may have been led. For an object that no
 * other thread calls meanwhile.
 */
int fp_imports_lead(const void *inside, const struct fp_import *imports, size_t n, const char **why_r);

#endif
