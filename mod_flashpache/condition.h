/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a RewriteCond that tests a file: translated into a look-up in an internal map, which
 * Flashpache answers.  Uses no httpd.
 *
 *     %{REQUEST_FILENAME} !-f [OR]
 *     "${flashpache-file:-f:%{REQUEST_FILENAME}}" !-eq-f [OR]
 *
 * "-eq" compares two numbers, and "-f" is none: so it is 0.  The map gives 0 for true.  An
 * equation leaves back-references as they are, as a test of a file does, and shows in mod_rewrite's
 * traces and warnings what was written.
 */
#ifndef FP_CONDITION_H
#define FP_CONDITION_H

#include <stdbool.h>
#include <stddef.h>

#define FP_CONDITION_MAP  "flashpache-file"
#define FP_CONDITION_MORE 64 /* bytes that a translation may be longer, its end included */

/*
 * Translates a directive's arguments into buf, of strlen(args) + FP_CONDITION_MORE bytes.  False: they
 * test no file, or are nothing whose meaning is certain to stay the same within a map's key.
 */
bool fp_condition_translate(const char *args, char *buf);

#endif
