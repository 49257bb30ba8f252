// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Device is one device as its plug-in reports it.
type Device struct {
	ID      string
	Healthy bool
	NUMA    []int64 // nodes that it is near to; none: not known
}

// Request is a container's request for devices of one resource, and what is known of them.
type Request struct {
	Resource string
	Need     int
	Devices  []Device
	Taken    map[string]bool // by other pods
	Pod      Held            // what the containers of its pod have
	// Before are the init containers that run before the container and have ended when it starts: not sidecars.
	Before    []string
	Container string
	// Near are the NUMA nodes that it had better have some of, as far as there are enough; none: it does not matter.
	Near []int64
}

// Held are the devices of one resource that a pod's containers have, by container.
type Held map[string][]string

// Unavailable says that there are not enough devices.
type Unavailable struct {
	Resource        string
	Need, Available int
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("requested number of devices unavailable for %s. Requested: %d, Available: %d", u.Resource,
		u.Need, u.Available)
}

// Offer is what a container may get.
type Offer struct {
	Need int
	Have []string // what it has already; not empty: there is nothing to choose
	Free []string // sorted: what can be had, Must included
	Must []string // sorted: what it gets in any case, at most Need
	// First is what it had better have of Free, where that is too little.
	First []string
}

// Look says what there is for a container, or why there is too little: an [*Unavailable].
func Look(w Request) (Offer, error) {
	if have := w.Pod[w.Container]; len(have) > 0 {
		return Offer{Need: w.Need, Have: have}, nil
	}
	passed, kept := w.passed()
	o := Offer{Need: w.Need}
	for _, d := range w.Devices {
		if !d.Healthy || w.Taken[d.ID] || kept[d.ID] && !passed[d.ID] {
			continue
		}
		o.Free = append(o.Free, d.ID)
		if passed[d.ID] {
			o.Must = append(o.Must, d.ID)
		}
	}
	slices.Sort(o.Free)
	slices.Sort(o.Must)
	o.Must = o.Must[:min(len(o.Must), o.Need)]
	if near := w.nearTo(o); len(near) >= o.Need {
		o.Free = near
	} else { // all of those, and of the others what is missing
		o.First = near
	}
	if len(o.Free) < o.Need {
		return Offer{}, &Unavailable{w.Resource, w.Need, len(o.Free)}
	}
	return o, nil
}

// nearTo are those of what can be had that are near, and what it gets in any case.
func (w Request) nearTo(o Offer) (out []string) {
	for _, id := range o.Free {
		near := len(w.Near) == 0 || slices.Contains(o.Must, id)
		for _, n := range Nodes(w.Devices, []string{id}) {
			near = near || slices.Contains(w.Near, n)
		}
		if near {
			out = append(out, id)
		}
	}
	return out
}

// passed returns the devices that the container takes over from ended init containers, and all that its pod has.
func (w Request) passed() (passed, kept map[string]bool) {
	passed, kept = map[string]bool{}, map[string]bool{}
	for _, name := range w.Before {
		for _, id := range w.Pod[name] {
			passed[id] = true
		}
	}
	for name, ids := range w.Pod {
		ended := slices.Contains(w.Before, name)
		for _, id := range ids {
			kept[id] = true
			if !ended {
				delete(passed, id) // somebody else has taken it over
			}
		}
	}
	return passed, kept
}

// Choose chooses. preferred is the plug-in's answer, nil for none; one that does not fit the offer counts as none.
func (o Offer) Choose(preferred []string) []string {
	if len(o.Have) > 0 {
		return o.Have
	}
	if o.fits(preferred) {
		return slices.Sorted(slices.Values(preferred))
	}
	out := slices.Clone(o.Must)
	for _, id := range slices.Concat(o.First, o.Free) {
		if len(out) < o.Need && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Musts are what it gets in any case, and what it had better have.
func (o Offer) Musts() []string {
	if len(o.First) > 0 {
		return o.First
	}
	return o.Must
}

// Choice reports whether there is something to choose.
func (o Offer) Choice() bool {
	return len(o.Have) == 0 && len(o.Free) > o.Need && len(o.Musts()) < o.Need
}

func (o Offer) fits(ids []string) bool {
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] || !slices.Contains(o.Free, id) {
			return false
		}
		seen[id] = true
	}
	for _, id := range o.Must {
		if !seen[id] {
			return false
		}
	}
	for _, id := range o.First {
		if !seen[id] {
			return false
		}
	}
	return len(ids) == o.Need && o.Need > 0
}

// Nodes are the NUMA nodes of some of the devices, sorted.
func Nodes(devices []Device, ids []string) []int64 {
	nodes := map[int64]bool{}
	for _, d := range devices {
		if slices.Contains(ids, d.ID) {
			for _, n := range d.NUMA {
				nodes[n] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(nodes), cmp.Compare[int64])
}
