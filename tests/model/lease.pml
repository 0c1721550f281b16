/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a client sees what the daemon and the kernel do (backend/shared/lease_table.h),
 * on a machine that may reorder stores and loads: for spin.
 *
 * A writer changes a file: the kernel queues an event, then the call returns.  The daemon sets busy,
 * takes all events out of the queue, invalidates a slot (a new generation), clears busy, and writes
 * its heartbeat; after another walk it sets the slot's expiry.  A client holds a lease under some generation: it
 * looks at the queue, at busy, at the heartbeat, and at the slot.  Three claims:
 *
 *  - a client that began after the return of a change does not use a lease of before it;
 *  - a client that sees a heartbeat since a change does not see the lease valid, even if its look
 *    at the queue is spoilt;
 *  - no lease is valid with the expiry of a later generation.
 *
 * Stores: the daemon's go to a buffer and from there to memory in any order; those
 * to one place stay in order, and a release waits until all before it are there.
 * Loads: without acquire a place may be read before those that stand in front of it.
 * System calls (the look at the queue, the daemon's read, the change) are in order with all else that
 * their process does, but for the daemon's stores: these wait in the buffer.
 *
 * Faults, of which each fails: RELAXED_STORE, RELAXED_LOAD, TWO_WORDS (the slot); EVENT_LATE (the
 * kernel queues after the return), NO_QUEUE (the client does not look at it), NO_BUSY, BUSY_LATE
 * (set behind the read), NO_FENCE (set in front of it, but not seen), RELAXED_CLEAR (cleared, perhaps
 * before the slot is changed), BUSY_FIRST (the client looks at busy, then at the queue), CLEAR_EARLY.
 */
#define ROUNDS 3

#define HEARTBEAT  0     /* the last round before a heartbeat */
#define GENERATION 1
#define EXPIRY     2     /* an expiry is the number of its generation */
#define BUSY       3
#define PLACES     4

byte memory[PLACES];

byte queue;        /* events that wait */
byte returned;     /* changes whose call has returned */

/* The daemon's buffer: the oldest is the first. */
byte n_buffered;
byte place[4], value[4], other[4];   /* other: the expiry, where both are one word */

/* A store that may reach memory now: any but those that wait for the same place. */
inline to_memory(i)
{
    if
    :: place[i] == GENERATION ->
        memory[GENERATION] = value[i];
#ifndef TWO_WORDS
        memory[EXPIRY] = other[i];
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

/* Memory takes them at any time. */
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

/* All earlier stores are seen before any later one. */
inline release()
{
#ifdef RELAXED_STORE
    skip
#else
    n_buffered == 0
#endif
}

/* Makes a change, and tells. */
active proctype writer()
{
    byte made = 0;

    do
    :: made < ROUNDS ->
        made++;
#ifdef EVENT_LATE
        returned = made;
        queue++
#else
        queue++;
        returned = made
#endif
    :: else -> break
    od;
    made = 0
}

/* fp_lease_table_set_busy() */
inline set_busy()
{
#ifdef NO_BUSY
    skip
#else
    store(BUSY, 1, 0);
#ifndef NO_FENCE
    n_buffered == 0
#endif
#endif
}

/* fp_lease_table_clear_busy() */
inline clear_busy()
{
#ifdef NO_BUSY
    skip
#else
#ifndef RELAXED_CLEAR
    release();
#endif
    store(BUSY, 0, 0)
#endif
}

active proctype daemon()
{
    byte round = 0, before = 0;

end:
    do
    :: queue > 0 ->
#ifndef BUSY_LATE
        set_busy();
#endif
        /* One read takes all. */
        atomic { before = round; round = round + queue; queue = 0 };
#ifdef BUSY_LATE
        set_busy();
#endif
#ifdef CLEAR_EARLY
        clear_busy();
#endif
        /* fp_lease_table_invalidate() */
        release();
        store(GENERATION, round, before);
#ifndef CLEAR_EARLY
        clear_busy();
#endif
        /* fp_lease_table_heartbeat() */
        release();
        store(HEARTBEAT, round, 0);
        /* fp_lease_table_set_expiry(), after the next walk */
        release();
#ifdef TWO_WORDS
        store(EXPIRY, round, 0)
#else
        store(GENERATION, round, round)
#endif
    od
}

/* fp_lease_view_is_valid(): the word in one piece, or its parts one after the other. */
inline read_word()
{
#ifdef TWO_WORDS
    generation = memory[GENERATION];
    expiry = memory[EXPIRY]
#else
    atomic { generation = memory[GENERATION]; expiry = memory[EXPIRY] }
#endif
}

/* epoll_wait() with timeout 0. */
inline look_at_queue()
{
#ifdef NO_QUEUE
    nothing = 1
#else
    nothing = (queue == 0)
#endif
}

/* One is enough, since clients write nothing.  mine: any generation that an answer may have named.  due: the changes that had returned before. */
active proctype client()
{
    byte heartbeat, generation, expiry, mine, due;
    bit nothing, busy;

    select(mine : 0 .. ROUNDS);
    due = returned;
#ifdef BUSY_FIRST
    busy = memory[BUSY];
    look_at_queue();
#else
    look_at_queue();
#ifndef RELAXED_LOAD
    busy = memory[BUSY];
#endif
#endif
#ifdef RELAXED_LOAD
    if
    :: read_word(); busy = memory[BUSY]; heartbeat = memory[HEARTBEAT]
    :: busy = memory[BUSY]; read_word(); heartbeat = memory[HEARTBEAT]
    :: busy = memory[BUSY]; heartbeat = memory[HEARTBEAT]; read_word()
    fi;
#else
    heartbeat = memory[HEARTBEAT];
    read_word();
#endif
    if
    :: generation == mine ->
        assert(mine >= heartbeat);
        assert(expiry <= mine);
        assert(!nothing || busy || mine >= due)
    :: else
    fi
}
