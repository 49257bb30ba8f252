// SPDX-License-Identifier: Apache-2.0

package shed

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"
)

func at(second int) time.Time { return time.Unix(int64(second), 0) }

// many makes n connections, the first of them the quietest.
func many(n int, first uint64, from, user string) []Conn {
	out := make([]Conn, n)
	for i := range out {
		out[i] = Conn{ID: first + uint64(i), From: from, User: user, Last: at(i)}
	}
	return out
}

func join(all ...[]Conn) []Conn { return slices.Concat(all...) }

// ids of the first n from first on.
func ids(first uint64, n int) []uint64 {
	var out []uint64
	for i := range n {
		out = append(out, first+uint64(i))
	}
	return out
}

// TestExcess (RS-01): who has most loses first, the quietest of theirs; strangers never push out the known, nor an
// address the others.
func TestExcess(t *testing.T) {
	limits := Limits{Strangers: 32, PerAddress: 16, Known: 32}
	busy := func(c []Conn) []Conn {
		for i := range c {
			c[i].Running = 1
		}
		return c
	}
	for name, row := range map[string]struct {
		conns []Conn
		want  []uint64
	}{
		"nobody": {nil, nil},
		"as many as may be": {join(many(16, 1, "a", ""), many(16, 100, "b", ""),
			many(32, 200, "c", "u")), nil},
		"one address has too many": {many(20, 1, "a", ""), ids(1, 4)},
		"a stranger comes to a full house": {join(many(16, 1, "a", ""), many(16, 100, "b", ""),
			many(1, 200, "c", "")), []uint64{1, 2, 100}},
		"the known are not asked to go": {join(many(40, 1, "a", ""), many(32, 200, "a", "u")), ids(1, 24)},
		"a user has too many":           {join(many(1, 1, "a", "v"), many(32, 100, "a", "u")), ids(100, 3)},
		"idle before busy, then the newest": {join(busy(many(31, 1, "a", "u")), many(2, 100, "a", "u")),
			[]uint64{100, 101, 31}},
		"each from an address of its own": {spread(33), ids(1, 3)},
		"the quiet one, not the first to come": {append(many(15, 1, "a", ""), Conn{ID: 50, From: "a", Last: at(100)},
			Conn{ID: 51, From: "a", Last: at(-1)}), []uint64{51}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Excess(row.conns, limits)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(row.want))
			if !slices.Equal(got, want) {
				t.Errorf("closes %v, want %v", got, want)
			}
		})
	}
}

// spread is n connections, each from an address of its own.
func spread(n int) []Conn {
	out := many(n, 1, "", "")
	for i := range out {
		out[i].From = fmt.Sprint(i)
	}
	return out
}

// TestExcessHolds (RS-01): whatever there is, the limits hold afterwards, neither kind is made much smaller than it may
// be, and the newest connection of a stranger stays, unless all the others of the house are as few.
func TestExcessHolds(t *testing.T) {
	for seed := range int64(2000) {
		r := rand.New(rand.NewSource(seed))
		l := Limits{Strangers: 1 + r.Intn(40), Known: 1 + r.Intn(40)}
		l.PerAddress = 1 + r.Intn(l.Strangers)
		conns := make([]Conn, r.Intn(150))
		for i := range conns {
			conns[i] = Conn{ID: uint64(i), From: fmt.Sprint(r.Intn(5)), Running: r.Intn(2), Last: at(r.Intn(1000))}
			if r.Intn(2) == 0 {
				conns[i].User = fmt.Sprint("u", r.Intn(5))
			}
		}
		gone := Excess(conns, l)
		if slices.Sort(gone); len(slices.Compact(slices.Clone(gone))) != len(gone) {
			t.Fatalf("seed %d: one is closed twice: %v", seed, gone)
		}
		strangers, known, from := 0, 0, map[string]int{}
		for _, c := range conns {
			switch {
			case slices.Contains(gone, c.ID):
			case c.User != "":
				known++
			default:
				strangers++
				from[c.From]++
			}
		}
		if strangers > l.Strangers || known > l.Known {
			t.Fatalf("seed %d: %d strangers and %d known are left of %d; limits %+v", seed, strangers, known,
				len(conns), l)
		}
		for a, n := range from {
			if n > l.PerAddress {
				t.Fatalf("seed %d: %d strangers of %s are left; limits %+v", seed, n, a, l)
			}
		}
		if all := len(conns) - len(gone); len(gone) > 0 && all == 0 {
			t.Fatalf("seed %d: nobody is left", seed)
		}
	}
}

// TestRelief (RS-01): when descriptors run short, the quiet are closed, never one at work with a name.
func TestRelief(t *testing.T) {
	work := many(4, 1, "a", "u")
	for i := range work {
		work[i].Running = 1
	}
	got := Relief(join(work, many(2, 100, "b", ""), many(9, 200, "c", "v")))
	if slices.Sort(got); !slices.Equal(got, []uint64{100, 200, 201}) {
		t.Errorf("closes %v", got)
	}
	if got := Relief(work); len(got) > 0 {
		t.Errorf("closes %v, which are at work", got)
	}
}

func TestLimitsFor(t *testing.T) {
	for n, want := range map[int]Limits{
		0:      {16, 8, 32},
		384:    {128, 64, 256},
		7500:   {2500, 1250, 5000},
		200000: {4096, 2048, 16384},
	} {
		if got := LimitsFor(n, 4096); got != want {
			t.Errorf("%d descriptors: %+v, want %+v", n, got, want)
		}
	}
}
