/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All counters, in the order in which they are reported.  A row has the name, the place in
 * the daemon (main.c), counter (it only grows) or gauge (as it is now), and the meaning.
 * flashpachectl makes its own table of them, so it knows what it prints.
 */
#ifndef FP_STATS_TABLE_H
#define FP_STATS_TABLE_H

/* Histograms of latency: bucket i counts walks of at most 64 << i microseconds, which is up to
 * 67 s; the last bucket counts the rest. */
#define FP_LATENCY_BUCKETS  22
#define FP_LATENCY_FIRST_US 64u

#define FP_STATS_TABLE(ROW) \
    ROW(hits, dispatch.hits, counter, "Questions answered from the cache") \
    ROW(misses, dispatch.misses, counter, "Questions for which a walk began") \
    ROW(joined, dispatch.joined, counter, "Questions that joined a walk under way") \
    ROW(refreshed, dispatch.refreshed, counter, "Walks for entries in use that were about to expire") \
    ROW(hinted, dispatch.hinted, counter, "Walks for paths that children had looked at themselves") \
    ROW(hints_dropped, dispatch.hints_dropped, counter, "Hints of such paths that came while workers were busy") \
    ROW(stale, dispatch.stale, counter, "Questions answered by stale entries") \
    ROW(unanswered, dispatch.unanswered, counter, "Questions that got no answer") \
    ROW(trips, dispatch.opened, counter, "How often a file system stopped answering") \
    ROW(out_of_service, dispatch.out, gauge, "File systems that do not answer") \
    ROW(inflight, dispatch.inflight, gauge, "Walks under way or waiting") \
    ROW(files, cache.files, gauge, "Entries of files") \
    ROW(directories, cache.directories, gauge, "Entries of directories and links") \
    ROW(open_dirs, cache.open_dirs, gauge, "Directories kept open") \
    ROW(negative, cache.negatives, gauge, "Negative entries: names known to be absent") \
    ROW(bytes, cache.bytes, gauge, "Memory for entries, about") \
    ROW(content_files, cache.content_files, gauge, "Files kept by their content") \
    ROW(content_bytes, cache.content_bytes, gauge, "Bytes of these contents") \
    ROW(content_memory, contents.bytes, gauge, "Memory for contents, gaps and those of no entry included") \
    ROW(contents_overwritten, contents.overwritten, counter, "Contents that others overwrote") \
    ROW(answer_memory, answers.bytes, gauge, "Memory for the answers that all clients read") \
    ROW(answers_overwritten, answers.overwritten, counter, "Records that others overwrote") \
    ROW(watches, cache.watches, gauge, "Directories and files that are watched") \
    ROW(watches_refused, coherence.watches_refused, counter, \
        "Watches that the system's limit refused (FP0042)") \
    ROW(events, coherence.events, counter, "Changes that were reported") \
    ROW(changes, cache.changes, counter, "Entries invalidated, whatever the reason") \
    ROW(losses, coherence.losses, counter, "Events lost, and changes of the table of mounts") \
    ROW(left_out, coherence.left_out, counter, "Watches ended because they reported too many changes") \
    ROW(noisy, coherence.noisy, gauge, "Directories and files that change too often to be watched now") \
    ROW(evictions, cache.evictions, counter, "Entries evicted at a limit on entries or memory") \
    ROW(files_closed, cache.closed, counter, "Files closed for lack of descriptors, and still known") \
    ROW(walks, workers.walks, counter, "Walks that workers began") \
    ROW(timeouts, workers.timeouts, counter, "Walks that took too long") \
    ROW(deaths, workers.deaths, counter, "Workers that died") \
    ROW(workers, workers.alive, gauge, "Workers") \
    ROW(running, workers.running, gauge, "Workers at work") \
    ROW(queued, workers.queued, gauge, "Walks that wait for a worker") \
    ROW(connections, listener.open, gauge, "Connections") \
    ROW(accepted, listener.accepted, counter, "Connections accepted") \
    ROW(refused, listener.refused, counter, "Connections refused") \
    ROW(displaced, listener.displaced, counter, "Idle connections closed for new ones") \
    ROW(invalidated_purge, dispatch.purged, counter, "Entries that an operator purged") \
    ROW(invalidated_ttl, cache.expired, counter, "Questions whose entry had outlived its time to live") \
    ROW(found_changed, cache.differing, counter, "Entries that were found changed when looked at again") \
    ROW(fleet_member, fleet.member, gauge, "Whether the configuration has a fleet") \
    ROW(fleet_connected, fleet.connected, gauge, "Whether the fleet's stream is being read") \
    ROW(fleet_sending, fleet.sending, gauge, "Whether Redis accepts messages to the fleet") \
    ROW(fleet_published, fleet.published, counter, "Messages to the fleet") \
    ROW(fleet_received, fleet.received, counter, "Messages from the fleet") \
    ROW(fleet_obeyed, fleet.obeyed, counter, "Messages from the fleet that were obeyed") \
    ROW(fleet_dropped, fleet.dropped, counter, \
        "Entries of the fleet's stream that are not messages, or cannot be read") \
    ROW(fleet_lost, fleet.lost, counter, "How often messages may have been missed") \
    ROW(closing, closing, gauge, "Descriptors that wait to be closed") \
    ROW(wakeups, loop.wakeups, counter, "How often the daemon woke up") \
    ROW(ready, loop.ready, counter, "Events that were ready when it did") \
    ROW(resident_bytes, resident_bytes, gauge, "Memory of the daemon, without its workers") \
    ROW(out_of_memory, out_of_memory, counter, "How often the daemon had no memory for something") \
    ROW(purging, cache.purging, gauge, "Purges of which entries are still to be evicted") \
    ROW(visits, cache.visits, counter, "Entries that evictions and purges looked at") \
    ROW(long_pieces, long_pieces, counter, "Single pieces of work that took over 5 ms of processor time")

#endif
