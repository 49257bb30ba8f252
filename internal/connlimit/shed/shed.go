// SPDX-License-Identifier: Apache-2.0

package shed

import (
	"cmp"
	"slices"
	"time"
)

// Conn is what is known of one open connection.
type Conn struct {
	ID uint64
	// who shares it shares the limits of strangers: an IPv4 address, or the /64 network of an IPv6 one
	From    string
	User    string    // whose credentials were accepted on it last; empty: nobody's
	Running int       // requests that are being answered
	Last    time.Time // when something happened on it last
}

// Limits say how many connections there may be, of each kind.
type Limits struct {
	Strangers  int // on which nobody has shown credentials
	PerAddress int // of these from one address
	Known      int // on which somebody has
}

// lowest limits: below them the server could not do its own work.
const (
	leastStrangers = 16
	leastKnown     = 32
)

// LimitsFor shares out descriptors for the connections of one port: a third to strangers, the rest to the known. An
// address may have half of what there is for strangers. However many descriptors there are, no more than mostStrangers
// are for strangers, since each takes memory.
func LimitsFor(descriptors, mostStrangers int) Limits {
	strangers := max(min(descriptors/3, mostStrangers), leastStrangers)
	return Limits{Strangers: strangers, PerAddress: strangers / 2,
		Known: max(min(descriptors-strangers, 4*mostStrangers), leastKnown)}
}

// Excess names the connections to close so that the limits hold. Of a kind of which there are too many a sixteenth more
// is named, so that the next to come need no new decision.
func Excess(conns []Conn, l Limits) []uint64 {
	var strangers, known []Conn
	for _, c := range conns {
		if c.User == "" {
			strangers = append(strangers, c)
		} else {
			known = append(known, c)
		}
	}
	out := shrink(strangers, roomy(len(strangers), l.Strangers), l.PerAddress, func(c Conn) string { return c.From })
	return append(out, shrink(known, roomy(len(known), l.Known), l.Known, func(c Conn) string { return c.User })...)
}

// Relief names connections to close when descriptors run short: an eighth of the strangers and of the known who are
// idle, at least one of either if it has any.
func Relief(conns []Conn) []uint64 {
	var strangers, idle []Conn
	for _, c := range conns {
		switch {
		case c.User == "":
			strangers = append(strangers, c)
		case c.Running == 0:
			idle = append(idle, c)
		}
	}
	some := func(n int) int { return n - (n+7)/8 }
	out := shrink(strangers, some(len(strangers)), len(strangers), func(c Conn) string { return c.From })
	return append(out, shrink(idle, some(len(idle)), len(idle), func(c Conn) string { return c.User })...)
}

func roomy(n, limit int) int {
	if n <= limit {
		return n
	}
	return limit - limit/16
}

// shrink names those to close so that at most room are left, and at most most of any group.
func shrink(conns []Conn, room, most int, group func(Conn) string) []uint64 {
	groups := map[string][]Conn{}
	for _, c := range conns {
		groups[group(c)] = append(groups[group(c)], c)
	}
	level := min(levelFor(groups, room), most)
	var out []uint64
	var left []Conn // the next to go of each group that has its full share
	for _, g := range groups {
		if len(g) < level {
			continue
		}
		slices.SortFunc(g, byUse)
		over := len(g) - level
		for _, c := range g[:over] {
			out = append(out, c.ID)
		}
		if level > 0 {
			left = append(left, g[over])
		}
	}
	slices.SortFunc(left, byUse)
	for _, c := range left[:max(0, min(len(left), len(conns)-len(out)-room))] {
		out = append(out, c.ID)
	}
	return out
}

// levelFor is the smallest share for all groups with which room is used up: what is above room then is less than one of
// each group.
func levelFor(groups map[string][]Conn, room int) int {
	sizes := make([]int, 0, len(groups))
	for _, g := range groups {
		sizes = append(sizes, len(g))
	}
	slices.Sort(sizes)
	for i, size := range sizes { // groups up to this size get all they have
		rest := len(sizes) - i
		if size*rest >= room {
			return (room + rest - 1) / rest
		}
		room -= size
	}
	if len(sizes) == 0 {
		return 0
	}
	return sizes[len(sizes)-1]
}

// byUse puts first whom it hurts least to lose: idle ones, those longest idle first; then those at work, the newest
// work first, since what has run for long is what would be missed.
func byUse(a, b Conn) int {
	if ia, ib := a.Running == 0, b.Running == 0; ia != ib {
		if ia {
			return -1
		}
		return 1
	}
	if a.Running > 0 {
		a, b = b, a
	}
	if c := a.Last.Compare(b.Last); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}
