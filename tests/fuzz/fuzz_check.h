/* SPDX-License-Identifier: Apache-2.0 */
/* Before a kit of the unit tests: libcheck's assertions need its runner, these end the target. */
#ifndef FP_FUZZ_CHECK_H
#define FP_FUZZ_CHECK_H

#include <check.h>

#include "fuzz.h"

#undef ck_assert
#undef ck_assert_msg
#undef ck_assert_int_eq
#undef ck_assert_int_ne
#undef ck_assert_int_lt
#undef ck_assert_uint_eq
#undef ck_assert_uint_lt
#undef ck_assert_ptr_null
#undef ck_assert_ptr_nonnull
#define ck_assert(condition)          FUZZ_MUST(condition)
#define ck_assert_msg(condition, ...) FUZZ_MUST(condition)
#define ck_assert_int_eq(a, b)        FUZZ_MUST((a) == (b))
#define ck_assert_int_ne(a, b)        FUZZ_MUST((a) != (b))
#define ck_assert_int_lt(a, b)        FUZZ_MUST((a) < (b))
#define ck_assert_uint_eq(a, b)       FUZZ_MUST((a) == (b))
#define ck_assert_uint_lt(a, b)       FUZZ_MUST((a) < (b))
#define ck_assert_ptr_null(a)         FUZZ_MUST((a) == NULL)
#define ck_assert_ptr_nonnull(a)      FUZZ_MUST((a) != NULL)

#endif
