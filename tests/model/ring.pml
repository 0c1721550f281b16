/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which readers see the writes to a ring and its index (backend/shared/ring.h,
 * answer_table.h), on a machine that may reorder stores and loads: for spin.
 *
 * The ring has room for two records, of two cells each.  The record at position p lies at p % 2,
 * and each of its cells is p.  The writer moves the tail past the record that it is about to overwrite, writes the cells,
 * and then the word of the index.  A reader loads the word, copies the cells in any order, and looks at the
 * tail.  The claim: a copy that the tail lets pass is of the record that the word meant, whole.
 *
 * Stores: the writer's go to a buffer and from there to memory in any order; those to one place stay
 * in order, and a fence waits until all before it are there.  Loads: without acquire a later one may
 * come first.
 *
 * NO_FENCE (the cells may be written before the tail), NO_RELEASE (the word before the cells),
 * WORD_LATE (the cells are loaded before the word), TAIL_EARLY (the tail before the cells): faults;
 * each fails.
 */
#define RECORDS 5     /* positions from 2 on */

#define TAIL   0      /* records at lower positions are gone */
#define WORD   1      /* the position of the newest record */
#define CELLS  2      /* two of each place */
#define PLACES 6

byte memory[PLACES];

/* The writer's buffer: the oldest is the first. */
byte n_buffered;
byte place[4], value[4];

inline take_out(i)
{
    byte k = i;

    memory[place[i]] = value[i];
    do
    :: k + 1 < n_buffered ->
        place[k] = place[k + 1];
        value[k] = value[k + 1];
        k++
    :: else -> break
    od;
    n_buffered--;
    place[n_buffered] = 0; value[n_buffered] = 0;
    k = 0
}

/* Memory takes them at any time. */
active proctype memory_system()
{
end:
    do
    :: atomic { n_buffered > 0 -> take_out(0) }
    :: atomic { n_buffered > 1 && place[1] != place[0] -> take_out(1) }
    :: atomic { n_buffered > 2 && place[2] != place[0] && place[2] != place[1] -> take_out(2) }
    :: atomic { n_buffered > 3 && place[3] != place[0] && place[3] != place[1] && place[3] != place[2] ->
                take_out(3) }
    od
}

inline store(where, what)
{
    atomic {
        n_buffered < 4 ->
        place[n_buffered] = where;
        value[n_buffered] = what;
        n_buffered++
    }
}

/* All earlier stores are seen before any later one. */
inline fence()
{
    n_buffered == 0
}

active proctype writer()
{
    byte at = 2;

    do
    :: at < 2 + RECORDS ->
        /* fp_ring_append(): the record at at - 2 is the one in this place. */
        store(TAIL, at - 1);
#ifndef NO_FENCE
        fence();
#endif
        store(CELLS + (at % 2) * 2, at);
        store(CELLS + (at % 2) * 2 + 1, at);
        /* put_record() */
#ifndef NO_RELEASE
        fence();
#endif
        store(WORD, at);
        at++
    :: else -> break
    od
}

inline read_cells()
{
    if
    :: first = memory[CELLS + (at % 2) * 2]; second = memory[CELLS + (at % 2) * 2 + 1]
    :: second = memory[CELLS + (at % 2) * 2 + 1]; first = memory[CELLS + (at % 2) * 2]
    fi
}

active [2] proctype reader()
{
    byte at, tail, first, second;

#ifdef WORD_LATE
    /* As if the place were guessed. */
    select(at : 0 .. 1);
    read_cells();
    if
    :: memory[WORD] % 2 == at -> at = memory[WORD]
    :: else -> goto done
    fi;
    tail = memory[TAIL];
#else
    at = memory[WORD];
#ifdef TAIL_EARLY
    if
    :: tail = memory[TAIL]; read_cells()
    :: read_cells(); tail = memory[TAIL]
    fi;
#else
    read_cells();
    tail = memory[TAIL];
#endif
#endif
    if
    :: at != 0 && tail <= at -> assert(first == at && second == at)
    :: else
    fi;
done:
    skip
}
