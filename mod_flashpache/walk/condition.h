/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a RewriteCond that tests a file, translated into a look-up in an internal map.
 * Flashpache answers the look-up. This file uses no httpd.
 *
 *     %{REQUEST_FILENAME} !-f [OR]
 *     "${flashpache-file:-f:%{REQUEST_FILENAME}}" !-eq-f [OR]
 *
 * "-eq" compares two numbers. "-f" is no number, so it counts as 0, and the map gives 0 for true.
 * An equation leaves back-references as they are, as a test of a file does. mod_rewrite's traces
 * and warnings still show the test and the name.
 */
#ifndef FP_CONDITION_H
#define FP_CONDITION_H

#include <stdbool.h>
#include <stddef.h>

#define FP_CONDITION_MAP  "flashpache-file"
#define FP_CONDITION_MORE 64 /* bytes that a translation may be longer than its source, its end included */

/*
 * Translates a directive's arguments into buf, which has strlen(args) + FP_CONDITION_MORE bytes.
 * False: they test no file, or their meaning may change within a map's key.
 */
bool fp_condition_translate(const char *args, char *buf);

#endif
