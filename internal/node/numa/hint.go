// SPDX-License-Identifier: Apache-2.0

package numa

// Hint is a set of nodes on which a resource can be had now. It is preferred if no narrower set could ever do.
type Hint struct {
	Nodes     Mask
	Preferred bool
}

// Offer is what one resource says of where it can be had.
type Offer struct {
	Any   bool   // it does not matter where
	Hints []Hint // else; none: it can be had nowhere now
}

// Stock is how much of a resource there is on a set of nodes.
type Stock struct {
	Need  int64
	Nodes Mask // that the machine has
	// Total is what could be given at all, and Free what is not another's. Kept, of the free, is what is taken over
	// from containers that have ended, and taken first; nil: nothing.
	Total, Free, Kept func(Mask) int64
	// Width is how wide a set is, where that is not the number of its nodes.
	Width func(Mask) int
	// May says whether a set may be used at all; nil: any may.
	May func(Mask) bool
}

// Offer says on which sets of nodes there is enough.
func (s Stock) Offer() Offer {
	if s.Need <= 0 {
		return Offer{Any: true}
	}
	width := s.Width
	if width == nil {
		width = Mask.Count
	}
	least := -1
	for _, m := range s.Nodes.Parts() {
		if w := width(m); s.Total(m) >= s.Need && (least < 0 || w < least) {
			least = w
		}
	}
	var out Offer
	for _, m := range s.Nodes.Parts() {
		if s.Free(m) < s.Need || s.May != nil && !s.May(m) {
			continue
		}
		if s.Kept != nil && s.Kept(m) < min(s.Need, s.Kept(s.Nodes)) {
			continue
		}
		out.Hints = append(out.Hints, Hint{m, width(m) == least})
	}
	return out
}
