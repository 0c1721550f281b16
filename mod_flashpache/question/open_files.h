/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open files that a child keeps: larger ones of this machine, whose bytes no shared memory has.
 *
 * A file is found by the tables, the slot and the generation of an answer's last step. An entry that changes gets
 * another generation, so an answer that holds finds only its own file. Its device and inode number are in the key,
 * too. Knows no httpd and no APR.
 */
#ifndef FP_OPEN_FILES_H
#define FP_OPEN_FILES_H

struct fp_file;
struct fp_lease_view;
struct fp_step;

/* Call it once in a child, after fp_child_cache_init(). most: files; 0: none is kept. Nor is one beyond a quarter of the
 * process's descriptors. wake: called when a file is kept, which is to be swept after so many milliseconds; or NULL. */
void fp_open_files_init(unsigned most, void (*wake)(unsigned ms));

/* The file of that step, with a reference for the caller; NULL: it is not kept. The step must hold now. */
struct fp_file *fp_open_files_find(const struct fp_lease_view *view, const struct fp_step *last);
/* Keeps the file of that step, which has a slot, with references of its own to file and view. */
void fp_open_files_keep(struct fp_lease_view *view, const struct fp_step *last, struct fp_file *file);

/* A connection of httpd's has that descriptor. If it is one of the process's last quarter, no file is kept any more until
 * descriptors are free again: without one httpd cannot accept a connection, and ends. */
void fp_open_files_yield(int descriptor);

/* Closes those that no answer finds any more. Returns after how many milliseconds to do it again; UINT_MAX: once
 * another file is kept. */
unsigned fp_open_files_sweep(void);

/* How many are kept. */
unsigned fp_open_files_count(void);

#endif
