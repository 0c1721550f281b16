/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEPENDENCY_CHECK_H
#define DEPENDENCY_CHECK_H

#include "cache/dependency.h"

/*
 * The invariants.  Each object in the table has a dependency, and each name in it has one.  A
 * dependency stands in its object's list, and in its name's if it has one.  Once a watch has
 * ended its object is in no table; its dependencies stay until their owners drop them.
 * NULL, or a text: what is wrong.  n: how many dependencies are left whose watch goes on.
 */
const char *fp_dependencies_check(const struct fp_dependencies *w, size_t n);
/* Checks the same for one owner's dependencies; own, unless NULL, is one of them, on an object itself. */
const char *fp_dependency_list_check(const struct fp_dependencies *w,
                                     const struct fp_dependency *dependencies, const void *owner,
                                     const struct fp_dependency *own);
/* How many of them have a watch that goes on. */
size_t fp_dependency_list_live(const struct fp_dependency *dependencies);

#endif
