/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/errors.h"

#include "unit.h"

/* The numbers of docs/protocol.md, "Status". */
START_TEST(wire_numbers_are_fixed)
{
    static const struct {
        fp_status status;
        int number;
    } rows[] = {
        { FP_OK, 0 },       { FP_ABSENT, 1 },      { FP_NOTDIR, 2 },       { FP_DENIED, 3 },
        { FP_LOOP, 4 },     { FP_NAMETOOLONG, 5 }, { FP_IOERROR, 6 },      { FP_TIMEOUT, 16 },
        { FP_BUSY, 17 },    { FP_REFUSED, 18 },    { FP_TOODEEP, 19 },     { FP_FAILED, 20 },
        { FP_VERSION, 21 }, { FP_PROTOCOL, 22 },   { FP_UNAVAILABLE, 23 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq((int)rows[i].status, rows[i].number);
}
END_TEST

START_TEST(every_status_has_a_text_of_its_own)
{
    static const fp_status all[] = {
        FP_OK,          FP_ABSENT, FP_NOTDIR,  FP_DENIED,  FP_LOOP,   FP_NAMETOOLONG, FP_IOERROR,
        FP_TIMEOUT,     FP_BUSY,   FP_REFUSED, FP_TOODEEP, FP_FAILED, FP_VERSION,     FP_PROTOCOL,
        FP_UNAVAILABLE, FP_AGAIN,  FP_CLOSED,  FP_NOMEM,   FP_SYSTEM, FP_LOSTFD,
    };
    const size_t n = sizeof(all) / sizeof(all[0]);

    for (size_t i = 0; i < n; i++) {
        const char *text = fp_status_text(all[i]);

        ck_assert_ptr_nonnull(text);
        ck_assert_str_ne(text, "");
        ck_assert_str_ne(text, fp_status_text((fp_status)200));
        ck_assert_ptr_null(strchr(text, '\n'));
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(text, fp_status_text(all[j]));
    }
}
END_TEST

START_TEST(unknown_status_has_a_text)
{
    for (int v = -300; v < 300; v++)
        ck_assert_ptr_nonnull(fp_status_text((fp_status)v));
}
END_TEST

START_TEST(errno_means)
{
    static const struct {
        int err;
        fp_status status;
    } rows[] = {
        { 0, FP_OK },
        { ENOENT, FP_ABSENT },
        { ENOTDIR, FP_NOTDIR },
        { EACCES, FP_DENIED },
        { EPERM, FP_REFUSED },
        { ENOSYS, FP_REFUSED },
        { ELOOP, FP_LOOP },
        { ENAMETOOLONG, FP_NAMETOOLONG },
        { EIO, FP_IOERROR },
        { ESTALE, FP_IOERROR },
        { EMFILE, FP_IOERROR },
        { EINTR, FP_IOERROR },
        { ENOMEM, FP_IOERROR },
        { 9999, FP_IOERROR },
        { -1, FP_IOERROR },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq((int)fp_status_from_errno(rows[i].err), (int)rows[i].status);
}
END_TEST

START_TEST(file_system_outcomes_survive_the_wire)
{
    static const int errs[] = { 0, ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG, EIO };

    for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++)
        ck_assert_int_eq(fp_status_to_errno(fp_status_from_errno(errs[i])), errs[i]);
}
END_TEST

START_TEST(other_outcomes_are_never_absent)
{
    for (int v = FP_IOERROR; v < 300; v++)
        ck_assert_int_eq(fp_status_to_errno((fp_status)v), EIO);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("errors");
    TCase *t = tcase_create("errors");

    tcase_add_test(t, wire_numbers_are_fixed);
    tcase_add_test(t, every_status_has_a_text_of_its_own);
    tcase_add_test(t, unknown_status_has_a_text);
    tcase_add_test(t, errno_means);
    tcase_add_test(t, file_system_outcomes_survive_the_wire);
    tcase_add_test(t, other_outcomes_are_never_absent);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
