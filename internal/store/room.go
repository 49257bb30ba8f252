// SPDX-License-Identifier: Apache-2.0

package store

import "time"

const (
	// defaultQuota is how much objects and their history may take. With the reserve above it etcd's own limit is then 8
	// GiB, the largest that etcd recommends.
	defaultQuota = 6 << 30
	// MinQuota is the smallest quota: an empty store and a few objects of the largest size.
	MinQuota = 24 << 20

	// minReserve is the smallest reserve above a quota. Etcd counts what is in use when it commits, ten times a second
	// or less often on a busy machine: what is written until then by who saw that there was room must not use up the
	// reserve, and with it the room that the file needs to be rewritten.
	minReserve = 64 << 20

	// keepHistory is how long earlier versions of objects are kept, so that a client that was away for a moment can go
	// on where it was instead of listing everything again; kube-apiserver keeps as much.
	keepHistory = 5 * time.Minute
	// keepWhenFilling is how much of it is kept once half of the quota is taken.
	keepWhenFilling = 30 * time.Second
	// spareOfHard is how far below its limit etcd's file must be for its alarm to be lifted: the next writes must fit.
	spareOfHard = 4 * maxRequestBytes
	// spareOfDisk is what must remain of the disk beside the new file while the old one is rewritten.
	spareOfDisk = 64 << 20
	// ahead is how much of the disk etcd's file holds beyond what is in it, so that nobody else can take it: with a
	// full disk there is room for what must be written until the disk has been cleared. Etcd lays out its log ahead
	// too, by 64 MiB.
	ahead = 32 << 20
	// leaveOthers is what taking it leaves of the disk: an attempt to take more than there is takes all of it, for a
	// moment or for good, and who wants to write meanwhile is told that the disk is full.
	leaveOthers = 16 << 20
	// lowDisk is the free space below which only what must be written is.
	lowDisk = 48 << 20
)

// hardQuota is the size of its file at which etcd itself refuses writes and raises its alarm. What lies between is a
// reserve for what must be written in a full store: deletions that take time, statuses, leases.
func hardQuota(quota int64) int64 { return quota + max(quota/3, minReserve) }

// mark is which revision was the newest at a time.
type mark struct {
	at  time.Time
	rev int64
}

// facts are what is known of a store when it is decided how to make room in it.
type facts struct {
	now       time.Time
	rev       int64 // the newest
	compacted int64 // history up to here is gone
	inUse     int64 // bytes that objects and history take
	size      int64 // bytes of the file, with what is free in it
	quota     int64
	hard      int64
	alarm     bool  // etcd refuses writes
	diskFree  int64 // bytes
}

// full reports whether ordinary writes have to wait, or be refused.
func (f facts) full() bool { return f.alarm || f.inUse >= f.quota }

// filling reports whether the store is half full: history is worth less then.
func (f facts) filling() bool { return f.inUse >= f.quota/2 }

// compactTo names the revision up to which history can go now, 0 for none: what is older than keepHistory, less when
// the store is filling, everything when it is full. A deleted object counts until its history has gone.
func (f facts) compactTo(marks []mark) int64 {
	if f.full() {
		if f.rev > f.compacted {
			return f.rev
		}
		return 0
	}
	keep := keepHistory
	if f.filling() {
		keep = keepWhenFilling
	}
	rev := int64(0)
	for _, m := range marks {
		if f.now.Sub(m.at) >= keep {
			rev = max(rev, m.rev)
		}
	}
	if rev <= f.compacted {
		return 0
	}
	return rev
}

// rewrite reports whether the file is to be written anew, which stops all reads and writes meanwhile: only when etcd
// has run into its limit or is about to, an eighth of the file at least can be had by it, and that is enough.
func (f facts) rewrite() bool {
	near := f.alarm || f.size >= f.quota+(f.hard-f.quota)/2
	return near && f.size-f.inUse >= f.size/8 && f.inUse+spareOfHard <= f.hard && f.diskFree >= f.inUse+spareOfDisk
}

// holdUpTo is the length for which the file, which holds as much of the disk now, is to hold it: 0 if there is nothing
// to be taken.
func (f facts) holdUpTo(holds int64) int64 {
	lack := f.size + ahead - holds
	if lack <= 0 {
		return f.size + ahead
	}
	more := min(lack, f.diskFree-leaveOthers)
	if more <= 0 {
		return 0
	}
	return holds + more
}

// disarm reports whether etcd's alarm can be lifted.
func (f facts) disarm() bool { return f.alarm && f.size+spareOfHard <= f.hard }

// remember adds the newest revision to the marks and drops what is of no use any more: of the marks that are older than
// keepHistory only the last, and those that were made less than five seconds after another.
func remember(marks []mark, f facts) []mark {
	if n := len(marks); n == 0 || f.rev > marks[n-1].rev && f.now.Sub(marks[n-1].at) >= 5*time.Second {
		marks = append(marks, mark{f.now, f.rev})
	}
	for len(marks) > 1 && f.now.Sub(marks[1].at) >= keepHistory {
		marks = marks[1:]
	}
	return marks
}

// pause is how long to wait before looking again. Nothing notifies of a store that fills up; looking costs two loads
// from memory.
func (f facts) pause() time.Duration {
	if f.filling() || f.quota < 1<<30 {
		return time.Second
	}
	return 10 * time.Second
}
