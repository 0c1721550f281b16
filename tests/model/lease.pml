/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a client sees what the daemon writes (backend/common/lease_table.h),
 * on a machine that may pass stores and loads by each other: for spin.
 *
 * The daemon reports a change (a new generation, whose time it sets after that) and
 * says "up to date" after it.  A client holds a lease under generation 0.  Two
 * claims:
 *
 *  - a client that sees the table up to date since a change does not see the lease hold;
 *  - no lease holds with the time of a later generation.
 *
 * Stores: the daemon's go to a buffer and from there to memory in any order; those
 * to one place stay in order, and a release waits until all before it are there.
 * Loads: without acquire the word may be read before "up to date" is.
 *
 * RELAXED_STORE, RELAXED_LOAD, TWO_WORDS: what must not be done; each fails.
 */
#define ROUNDS 3

#define FRESH      0     /* the last round of which "up to date" was said */
#define GENERATION 1
#define UNTIL      2     /* a time is the number of its generation */
#define PLACES     3

byte memory[PLACES];

/* The daemon's buffer: the oldest is the first. */
byte n_buffered;
byte place[4], value[4], other[4];   /* other: the time, where both are one word */

/* Something that may reach memory now, any but those that wait for the same place. */
inline to_memory(i)
{
    if
    :: place[i] == GENERATION ->
        memory[GENERATION] = value[i];
#ifndef TWO_WORDS
        memory[UNTIL] = other[i];
#endif
    :: else -> memory[place[i]] = value[i]
    fi
}

inline take_out(i)
{
    byte k = i;

    do
    :: k + 1 < n_buffered ->
        place[k] = place[k + 1];
        value[k] = value[k + 1];
        other[k] = other[k + 1];
        k++
    :: else -> break
    od;
    n_buffered--;
    place[n_buffered] = 0; value[n_buffered] = 0; other[n_buffered] = 0;
    k = 0
}

/* Memory takes them whenever it likes. */
active proctype memory_system()
{
end:
    do
    :: atomic { n_buffered > 0 -> to_memory(0); take_out(0) }
    :: atomic { n_buffered > 1 && place[1] != place[0] -> to_memory(1); take_out(1) }
    :: atomic { n_buffered > 2 && place[2] != place[0] && place[2] != place[1] ->
                to_memory(2); take_out(2) }
    od
}

/* A plain store. */
inline store(where, what, with)
{
    atomic {
        n_buffered < 4 ->
        place[n_buffered] = where;
        value[n_buffered] = what;
        other[n_buffered] = with;
        n_buffered++
    }
}

/* All that was stored before is seen before what comes now. */
inline release()
{
#ifdef RELAXED_STORE
    skip
#else
    n_buffered == 0
#endif
}

active proctype daemon()
{
    byte round = 1;

    do
    :: round <= ROUNDS ->
        /* fp_lease_table_invalidate(), then fp_lease_table_set_expiry() */
        release();
        store(GENERATION, round, round - 1);
        release();
#ifdef TWO_WORDS
        store(UNTIL, round, 0);
#else
        store(GENERATION, round, round);
#endif
        /* fp_lease_table_heartbeat() */
        release();
        store(FRESH, round, 0);
        round++
    :: else -> break
    od
}

/* fp_lease_view_is_valid(): the word in one piece, or its parts one after the other. */
inline read_word()
{
#ifdef TWO_WORDS
    generation = memory[GENERATION];
    until = memory[UNTIL]
#else
    atomic { generation = memory[GENERATION]; until = memory[UNTIL] }
#endif
}

/* Any generation that an answer may have named; it is asked once. */
active [2] proctype client()
{
    byte fresh, generation, until, mine;

    select(mine : 0 .. ROUNDS);
#ifdef RELAXED_LOAD
    if
    :: read_word(); fresh = memory[FRESH]
    :: fresh = memory[FRESH]; read_word()
    fi;
#else
    fresh = memory[FRESH];
    read_word();
#endif
    if
    :: generation == mine ->
        assert(mine >= fresh);
        assert(until <= mine)
    :: else
    fi
}
