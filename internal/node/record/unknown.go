// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// Store is what a store says of itself.
type Store struct {
	ID       string // "": there is none yet
	Revision int64  // of its newest change
	Fresh    bool   // nothing was ever written to it
}

// Suspects are the pods of a node that a store may have forgotten, by the store's own word: what came from another
// store, or from a state of this one that it has not reached. A pod that came from it and that it no longer has was
// deleted in order, and is none. (Pure.)
func Suspects(all []Record, s Store) []Record {
	var out []Record
	for _, r := range all {
		switch {
		case s.Fresh:
			out = append(out, r)
		case r.Pod == nil: // begun and not yet recorded, or kept by a version that had no records
		case r.Store != s.ID || version(r) > s.Revision:
			out = append(out, r)
		}
	}
	return out
}

// Unknown are those suspects that the store does not have. (Pure.)
func Unknown(suspects []Record, has map[types.UID]bool) []Record {
	var out []Record
	for _, r := range suspects {
		if !has[r.UID] {
			out = append(out, r)
		}
	}
	return out
}

// Newest is the newest revision that records know of; 0: none does. (Pure.)
func Newest(all []Record) (newest int64) {
	for _, r := range all {
		if r.Pod != nil {
			newest = max(newest, version(r))
		}
	}
	return newest
}

// version is the revision that a record's pod had; 0: it is not known.
func version(r Record) int64 {
	v, err := strconv.ParseInt(r.Pod.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
