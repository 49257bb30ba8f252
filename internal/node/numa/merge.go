// SPDX-License-Identifier: Apache-2.0

package numa

import (
	"cmp"
)

// Policy is how much it matters that things are near one another.
type Policy string

// Policies, in the kubelet's words.
const (
	None           Policy = "none"
	BestEffort     Policy = "best-effort"
	Restricted     Policy = "restricted"
	SingleNUMANode Policy = "single-numa-node"
)

// Policies are all of them.
func Policies() []Policy { return []Policy{None, BestEffort, Restricted, SingleNUMANode} }

// Rule is what holds for all containers.
type Rule struct {
	Policy    Policy
	PodScope  bool // the containers of a pod are brought together, not each for itself
	Closest   bool // prefer-closest-numa-nodes: of sets as wide, the one whose nodes are nearest to one another
	Nodes     Mask // that the machine has
	Distances Distances
}

// On reports whether anything is brought together.
func (r Rule) On() bool { return r.Policy != None && r.Policy != "" }

// Admits reports whether what was merged will do.
func (r Rule) Admits(h Hint) bool {
	switch r.Policy {
	case Restricted, SingleNUMANode:
		return h.Preferred
	}
	return true
}

// merged is a set that takes one hint of each resource: it is what they have in common.
type merged struct {
	Hint
	same bool // all resources that mind have named just this set
}

// Merge decides where it all goes: on what one hint of each resource has in common, of all ways to choose those the
// best. Nodes are all where it does not matter or nothing is common; the latter is not preferred.
func (r Rule) Merge(offers []Offer) Hint {
	ways := map[merged]bool{{Hint{r.Nodes, true}, true}: true}
	minds := false
	for _, o := range offers {
		if o.Any {
			continue
		}
		next := map[merged]bool{}
		for w := range ways {
			if len(o.Hints) == 0 { // it can be had nowhere: that counts as anywhere, but is not preferred
				w.Preferred = false
				next[w] = true
			}
			for _, h := range r.usable(o) {
				if nodes := w.Nodes & h.Nodes; nodes != 0 {
					next[merged{Hint{nodes, w.Preferred && h.Preferred}, !minds || w.same && h.Nodes == w.Nodes}] = true
				}
			}
		}
		ways, minds = next, minds || len(o.Hints) > 0
	}
	best := merged{Hint: Hint{Nodes: r.Nodes}}
	found := false
	for w := range ways {
		if !found || r.better(w, best) {
			best, found = w, true
		}
	}
	return best.Hint
}

// usable are the hints that the policy lets count.
func (r Rule) usable(o Offer) []Hint {
	if r.Policy != SingleNUMANode {
		return o.Hints
	}
	var out []Hint
	for _, h := range o.Hints {
		if h.Preferred && h.Nodes.Count() == 1 {
			out = append(out, h)
		}
	}
	return out
}

// better compares two ways: first comes what all prefer; then, of that, what all have named; then the narrower; then,
// if that is asked for, what is nearer together; then the lower nodes.
func (r Rule) better(a, b merged) bool {
	if a.Preferred != b.Preferred {
		return a.Preferred
	}
	if a.Preferred && a.same != b.same {
		return a.same
	}
	if d := cmp.Compare(a.Nodes.Count(), b.Nodes.Count()); d != 0 {
		return d < 0
	}
	return r.Nearer(a.Nodes, b.Nodes)
}

// Nearer compares two sets that are as wide.
func (r Rule) Nearer(a, b Mask) bool {
	if r.Closest {
		if d := cmp.Compare(r.Distances.average(a), r.Distances.average(b)); d != 0 {
			return d < 0
		}
	}
	return a < b
}
