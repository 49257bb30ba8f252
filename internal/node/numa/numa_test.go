// SPDX-License-Identifier: Apache-2.0

package numa

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// amounts has so much on each node.
func amounts(per ...int64) func(Mask) int64 {
	return func(m Mask) (sum int64) {
		for n, has := range per {
			if m.Has(n) {
				sum += has
			}
		}
		return sum
	}
}

func first(n int) Mask { return 1<<n - 1 }

// PL-33: on which sets of nodes a resource can be had, and which of them are as narrow as could ever be.
func TestOffer(t *testing.T) {
	sockets := func(m Mask) int { // of two nodes each
		n := 0
		for _, socket := range []Mask{0b0011, 0b1100} {
			if m&socket != 0 {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		name string
		s    Stock
		want string
	}{
		{"nothing wanted", Stock{Nodes: first(2)}, "any"},
		{"either node", Stock{Need: 2, Nodes: first(2), Total: amounts(4, 4), Free: amounts(4, 4)}, "0! 1! 0-1"},
		{"one node", Stock{Need: 2, Nodes: first(2), Total: amounts(4, 4), Free: amounts(1, 4)}, "1! 0-1"},
		{"both by chance", Stock{Need: 2, Nodes: first(2), Total: amounts(4, 4), Free: amounts(1, 1)}, "0-1"},
		{"both by need", Stock{Need: 6, Nodes: first(2), Total: amounts(4, 4), Free: amounts(3, 4)}, "0-1!"},
		{"nowhere", Stock{Need: 6, Nodes: first(2), Total: amounts(4, 4), Free: amounts(1, 4)}, ""},
		{"more than there is", Stock{Need: 9, Nodes: first(2), Total: amounts(4, 4), Free: amounts(4, 4)}, ""},
		{"what is taken over is with it", Stock{Need: 3, Nodes: first(2), Total: amounts(4, 4), Free: amounts(4, 4),
			Kept: amounts(0, 2)}, "1! 0-1"},
		{"a part of what is taken over", Stock{Need: 1, Nodes: first(2), Total: amounts(4, 4), Free: amounts(4, 4),
			Kept: amounts(1, 2)}, "0! 1! 0-1"},
		{"a group that is in use", Stock{Need: 1, Nodes: first(2), Total: amounts(4, 4), Free: amounts(4, 4),
			May: func(m Mask) bool { return m == 0b11 }}, "0-1"},
		{"four nodes", Stock{Need: 6, Nodes: first(4), Total: amounts(4, 4, 4, 4), Free: amounts(4, 2, 0, 4)},
			"0-1! 0-2 0,3! 1,3! 0-1,3 0,2-3 1-3 0-3"},
		{"four nodes in two sockets", Stock{Need: 6, Nodes: first(4), Total: amounts(4, 4, 4, 4),
			Free: amounts(4, 2, 0, 4), Width: sockets}, "0-1! 0-2 0,3 1,3 0-1,3 0,2-3 1-3 0-3"},
		{"nodes 0 and 2", Stock{Need: 1, Nodes: 0b101, Total: amounts(1, 0, 1), Free: amounts(0, 0, 1)}, "2! 0,2"},
	} {
		if got := words(tt.s.Offer()); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func words(o Offer) (out string) {
	if o.Any {
		return "any"
	}
	for i, h := range o.Hints {
		if i > 0 {
			out += " "
		}
		out += word(h)
	}
	return out
}

func word(h Hint) string {
	if h.Preferred {
		return h.Nodes.String() + "!"
	}
	return h.Nodes.String()
}

func hints(list ...Hint) Offer { return Offer{Hints: list} }

// PL-33: where CPUs, memory and devices go together, by each policy, on machines with two and four nodes, and whether
// their pod is let in.
func TestMerge(t *testing.T) {
	either := hints(Hint{1, true}, Hint{2, true}, Hint{3, false})
	zero, one := hints(Hint{1, true}, Hint{3, false}), hints(Hint{2, true}, Hint{3, false})
	both, wide := hints(Hint{3, true}), hints(Hint{3, false})
	four := hints(Hint{0b0011, true}, Hint{0b1001, true}, Hint{0b1010, true}, Hint{0b1100, true}, Hint{0b1111, false})
	for _, tt := range []struct {
		name   string
		nodes  int
		offers []Offer
		// what best-effort and restricted choose; "!": it is preferred, and so restricted lets it in
		want string
		// what single-numa-node chooses; "": it refuses
		single string
	}{
		{"nothing minds", 2, []Offer{{Any: true}}, "0-1!", "0-1!"},
		{"nothing at all", 2, nil, "0-1!", "0-1!"},
		{"one that minds", 2, []Offer{{Any: true}, one}, "1!", "1!"},
		{"the lower of two", 2, []Offer{either}, "0!", "0!"},
		{"all together", 2, []Offer{either, one, {Any: true}}, "1!", "1!"},
		{"apart", 2, []Offer{zero, one}, "0", ""},
		{"wide by chance, and narrow", 2, []Offer{one, wide}, "1", ""},
		{"wide by need, and narrow", 2, []Offer{both, one}, "1!", ""},
		{"wide by need", 2, []Offer{both, both}, "0-1!", ""},
		{"nowhere", 2, []Offer{either, hints()}, "0", ""},
		{"nowhere at all", 2, []Offer{hints()}, "0-1", ""},
		{"four nodes", 4, []Offer{four, hints(Hint{0b1000, true}, Hint{0b1100, false})}, "3!", ""},
		{"two of four", 4, []Offer{four, hints(Hint{0b1110, true})}, "1!", ""},
		{"the same two of four", 4, []Offer{four, hints(Hint{0b0101, true}, Hint{0b1010, true})}, "1,3!", ""},
		{"nothing in common", 4, []Offer{hints(Hint{1, true}), hints(Hint{2, true})}, "0-3", ""},
	} {
		for policy, want := range map[Policy]string{BestEffort: tt.want, Restricted: tt.want,
			SingleNUMANode: tt.single} {
			r := Rule{Policy: policy, Nodes: first(tt.nodes)}
			got := r.Merge(tt.offers)
			lets := policy == BestEffort || want != "" && want[len(want)-1] == '!'
			if r.Admits(got) != lets || want != "" && word(got) != want {
				t.Errorf("%s: %s chooses %s and lets in: %v; want %s, %v", tt.name, policy, word(got), r.Admits(got),
					want, lets)
			}
		}
	}
	if (Rule{Policy: None}).On() || !(Rule{Policy: Restricted}).On() {
		t.Error("which policies bring things together")
	}
}

// PL-33: with prefer-closest-numa-nodes the nodes are near to one another.
func TestClosest(t *testing.T) {
	d := Distances{}
	for n, line := range []string{"10 40 20 40", "40 10 40 40", "20 40 10 40", "40 40 40 10"} {
		var err error
		if d[n], err = ParseDistances(line, first(4)); err != nil {
			t.Fatal(err)
		}
	}
	o := Stock{Need: 6, Nodes: first(4), Total: amounts(4, 4, 4, 4), Free: amounts(4, 4, 4, 4)}.Offer()
	for closest, want := range map[bool]Mask{false: 0b0011, true: 0b0101} {
		r := Rule{Policy: Restricted, Nodes: first(4), Distances: d, Closest: closest}
		if got := r.Merge([]Offer{o}); got.Nodes != want || !got.Preferred {
			t.Errorf("closest %v: %s", closest, word(got))
		}
	}
	for _, line := range []string{"10 20", "10 20 30 x", "10 20 30 -1"} {
		if _, err := ParseDistances(line, first(4)); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

// PL-33: merging one resource after another finds what trying all combinations finds.
func TestMergeIsExhaustive(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 14))
		r := Rule{Policy: Policies()[1+rng.IntN(3)], Nodes: first(1 + rng.IntN(4))}
		var offers []Offer
		for range 1 + rng.IntN(3) {
			var o Offer
			for _, m := range r.Nodes.Parts() {
				if rng.IntN(2) == 0 {
					o.Hints = append(o.Hints, Hint{m, rng.IntN(2) == 0})
				}
			}
			offers = append(offers, o)
		}
		preferred := false
		reached := map[Hint]bool{}
		var try func(i int, so Hint)
		try = func(i int, so Hint) {
			switch {
			case so.Nodes == 0:
			case i < len(offers) && len(offers[i].Hints) == 0:
				try(i+1, Hint{so.Nodes, false})
			case i < len(offers):
				for _, h := range r.usable(offers[i]) {
					try(i+1, Hint{so.Nodes & h.Nodes, so.Preferred && h.Preferred})
				}
			default:
				preferred = preferred || so.Preferred
				reached[so] = true
			}
		}
		try(0, Hint{r.Nodes, true})
		got := r.Merge(offers)
		if got.Preferred != preferred || len(reached) > 0 && !reached[got] {
			t.Fatalf("seed %d: %s of %v; preferred %v", seed, word(got), offers, preferred)
		}
		for h := range reached {
			if !preferred && h.Nodes.Count() < got.Nodes.Count() {
				t.Fatalf("seed %d: %s is narrower than %s", seed, word(h), word(got))
			}
		}
	}
}

// Sets of nodes as words, and their parts.
func TestMask(t *testing.T) {
	m, err := MaskOf(0, 1, 3)
	if err != nil || m.String() != "0-1,3" || m.Count() != 3 || !m.Has(3) || m.Has(2) || m.Has(-1) || m.Has(Most) {
		t.Errorf("%v, %v", m, err)
	}
	if got := m.Parts(); len(got) != 7 || !slices.IsSorted(got) || got[6] != m {
		t.Errorf("parts %v", got)
	}
	if Mask(0).Parts() != nil || !Mask(2).Within(m) || Mask(4).Within(m) {
		t.Error("parts of nothing, or what is within")
	}
	for _, n := range []int{-1, Most} {
		if _, err := MaskOf(n); err == nil {
			t.Error(fmt.Sprint(n, " is a node"))
		}
	}
}
