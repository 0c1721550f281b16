/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata of a path: one step for each of its components, from "/"
 * down to the last that could be examined.
 */
#ifndef FP_ANSWER_H
#define FP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

struct stat;

#define FP_MAX_STEPS    64       /* components of a path, "/" included */
#define FP_CONTENT_MOST 1048576u /* bytes of a content: the most that content_file_max can be */

struct fp_time {
    int64_t sec;
    uint32_t nsec;
};

/* The result of stat(2), in its own units (blocks of 512 bytes). */
struct fp_meta {
    uint32_t mode, uid, gid;
    uint64_t dev, ino, nlink, size, blocks;
    struct fp_time atime, mtime, ctime;
    uint32_t blksize;
};

/*
 * An access file of a directory, by the fields that change when the file does.  For a
 * link they are its target's.
 */
struct fp_access {
    fp_status status; /* FP_OK: it is there; FP_ABSENT; or why unknown */
    uint32_t mode;
    uint64_t dev, ino, size;
    struct fp_time mtime, ctime;
};

/* One component of the path. */
struct fp_step {
    /* These fields are next to each other because each use reads them. */
    uint16_t end;                          /* length of the path up to and with it */
    fp_status status;                      /* FP_OK, or the file system's error */
    uint32_t slot;                         /* of the lease table (lease_table.h), */
    uint32_t generation;                   /* and the generation there until this step changes */
    struct fp_meta self;                   /* its lstat, when status is FP_OK */
    fp_status target_status;               /* when self is a link: of what it leads to */
    struct fp_meta target;                 /* that one's stat, when target_status is FP_OK */
    struct fp_access access[FP_MAX_NAMES]; /* of a directory: one for each name */
};

enum fp_source {
    FP_SOURCE_CACHE = 1,  /* an entry of the cache */
    FP_SOURCE_WORKER = 2, /* a worker's walk */
    FP_SOURCE_STALE = 3   /* a stale entry: the file system does not answer */
};

/*
 * status FP_OK: the steps are all there is.  The last one is the whole path, or the component
 * at which every walk ends: absent, unreadable, or not a directory.  Any other status is the
 * reason why there is no answer, and there are no steps.
 * fd: the last step's file opened O_RDONLY.  -1 where that is no regular file, may not be
 * read or is not the whole path.  The struct's holder owns it.
 * n_names: how many access files each directory has here: the daemon's, for a client those it chose, or none.
 * local: that file lies on a file system of this machine.
 * content: the file comes as its content; then it is local, too.  From a worker fd is a sealed
 * memfd with it (packet.h); a client finds it at content_at in the area of contents (contents.h).
 * readable: from the cache and the table of answers: there is a file to be had. Without content and descriptor
 * only a question brings it (fp_answer_is_unopened()).
 */
struct fp_answer {
    fp_status status;
    enum fp_source source;
    bool leasable;      /* the client may use it again without asking, while the
                                 slots of all its steps allow, */
    bool watched;       /* and this machine's changes of each step are reported, as long
                                 as they allow: also after a change of the client's own */
    bool above_watched; /* from the cache or the table only: the same of each step but the last */
    bool may_look;      /* the same two only: a client may look itself at what lies in that directory */
    int fd;
    bool local, content, readable;
    uint64_t content_at;
    bool unchanged; /* from a worker only: the file was not opened, as it is what the task said it was, or
                                 was only to be looked at; then it is readable as well */
    unsigned n_steps, n_names;
    struct fp_step steps[FP_MAX_STEPS]; /* few of them are used: all other fields stand in front */
};

/* Where a client's names of access files stand in the daemon's list; n is 0 where that lacks one. */
struct fp_chosen {
    unsigned n, at[FP_MAX_NAMES];
};
struct fp_chosen fp_choose(const struct fp_names *own, const struct fp_names *all);
/* How many access files a client has of answers with n_names: its own, or none. */
unsigned fp_chosen_of(const struct fp_chosen *chosen, unsigned n_names);
/* Leaves of the steps' access files those of a client, in its order. */
void fp_steps_choose(struct fp_step *steps, unsigned n, const struct fp_chosen *chosen);

/* True if the step leads to a directory: only that leads further down. */
bool fp_step_is_dir(const struct fp_step *s);

/* How many bytes of the struct are in use: a copy needs no more. */
size_t fp_answer_size(const struct fp_answer *a);

/* True if access files were asked about, and no directory above the last step has any. */
bool fp_answer_lacks_access_files(const struct fp_answer *a);

/* The end of the step: its own metadata, or a link's target's; NULL if unknown. */
const struct fp_meta *fp_step_target(const struct fp_step *s);

/* Writes one step, as it stands in an answer with n_names access files a directory. */
void fp_put_step(struct fp_writer *w, const struct fp_step *s, unsigned n_names);
void fp_get_step(struct fp_reader *r, struct fp_step *s, unsigned n_names);

/* Writes metadata alone, as it stands in steps. */
void fp_put_meta(struct fp_writer *w, const struct fp_meta *m);
void fp_get_meta(struct fp_reader *r, struct fp_meta *m);

bool fp_time_equal(const struct fp_time *a, const struct fp_time *b);

/* The part of a stat that answers have. */
struct fp_meta fp_meta_from_stat(const struct stat *st);

/* True for the same kind, size and times: an open file still has its content. */
bool fp_meta_equal(const struct fp_meta *a, const struct fp_meta *b);

#define FP_SETTLED_MS 2000 /* the coarsest clock of a file system is FAT's */

/* True if the file had not changed for FP_SETTLED_MS at that moment (fp_now_ms()).  Later changes show in its
 * times then, however coarse the file system's clock is.  Compares that clock with this machine's. */
bool fp_meta_had_settled(const struct fp_meta *m, uint64_t at_ms);

/* The access file that has this metadata. */
struct fp_access fp_access_of(const struct fp_meta *m);

/* True for the same outcome, and if it is there the same file, unchanged. */
bool fp_access_equal(const struct fp_access *a, const struct fp_access *b);

/* Makes an answer without steps. */
void fp_answer_init(struct fp_answer *a, fp_status status);
/* True for an error of the file system, of the path or of a directory above it, which may be gone the next
 * moment.  True for no answer at all (NULL). */
bool fp_answer_is_failure(const struct fp_answer *a);
/* True if there is a file to be had that nobody has opened for this answer. */
bool fp_answer_is_unopened(const struct fp_answer *a);

/* Writes a whole frame; it says that a descriptor goes along, but does not send it. */
fp_status fp_answer_encode(struct fp_writer *w, uint64_t id, const struct fp_answer *a);
/*
 * Reads the body of an ANSWER frame about a path of path_len bytes.  fd
 * came with the packet (-1: none): on FP_OK it is the answer's, else it
 * stays the caller's.  Checks everything that can be checked: FP_OK or
 * FP_PROTOCOL.
 */
fp_status fp_answer_decode(struct fp_reader *r, size_t path_len, int fd, struct fp_answer *a);

/* True unless the file's content is here and can change, or its length is not the one in the answer. */
bool fp_answer_is_sealed(const struct fp_answer *a);

/* True if the steps, at least one, can be the answer about a path of path_len bytes.  A content, or a file to
 * be had, must be possible for the last step. */
bool fp_answer_fits(const struct fp_answer *a, size_t path_len);

/* Writes the body alone. */
void fp_put_answer(struct fp_writer *w, const struct fp_answer *a);
/*
 * As fp_answer_decode(), for an answer from a worker (task.h), where more follows.  The steps begin
 * below a base of base_len bytes (0: at "/").  A directory that is the whole path
 * comes with a descriptor, opened O_PATH, to begin other walks at.
 */
fp_status fp_get_answer(struct fp_reader *r, size_t path_len, size_t base_len, int fd, struct fp_answer *a);

#endif
