/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that answer a program's calls, in the place of the C library's. In the library that
 * php-fpm is started with they have the C library's names (FP_PRELOADED), and php-fpm's own calls lead
 * to them by those. All other calls are led here by the import table of the object that makes them.
 */
#ifndef FP_FILES_CALLS_H
#define FP_FILES_CALLS_H

/*
 * Leads the calls of PHP, which has that address in it, of its extensions that are loaded, and of those that
 * it will load. Returns as fp_imports_lead(), for PHP itself. Not in the library, which needs no lead.
 */
int fp_files_lead_php(const void *php, const char **why_r);

#endif
