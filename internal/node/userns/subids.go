// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"strconv"
	"strings"
	"syscall"
)

// errNotFolder: what lies among the pods' folders is a file.
const errNotFolder = syscall.ENOTDIR

// owner is whose share of IDs is the pods', as it is the kubelet's.
const owner = "kubelet"

// span is a share of IDs: from first up to, but without, end.
type span struct{ first, end uint64 }

// most is how many ranges there are at most: as many pods as any node has.
const most = 4096

// allowed lists where ranges may begin: in the owner's share of both, else in what neither gives anybody. The first
// Length IDs are the machine's own, and the last are no users. (Pure.)
func allowed(subuid, subgid []byte) (firsts []uint32) {
	uids, ownUIDs := shares(subuid)
	gids, ownGIDs := shares(subgid)
	for first := uint64(Length); first < 1<<32-Length && len(firsts) < most; first += Length {
		r := span{first, first + Length}
		ok := !r.meets(uids) && !r.meets(gids)
		if len(ownUIDs) > 0 || len(ownGIDs) > 0 {
			ok = r.within(ownUIDs) && r.within(ownGIDs)
		}
		if ok {
			firsts = append(firsts, uint32(first))
		}
	}
	return firsts
}

// shares reads a file of the form of /etc/subuid: what it gives others, and what it gives the owner. Lines that are
// none are skipped, as all programs do that read the file.
func shares(text []byte) (others, own []span) {
	for line := range strings.Lines(string(text)) {
		name, numbers, _ := strings.Cut(strings.TrimSpace(line), ":")
		from, count, _ := strings.Cut(numbers, ":")
		first, err1 := strconv.ParseUint(from, 10, 32)
		n, err2 := strconv.ParseUint(count, 10, 32)
		switch s := (span{first, first + n}); {
		case err1 != nil || err2 != nil || strings.HasPrefix(name, "#"):
		case name == owner:
			own = append(own, s)
		default:
			others = append(others, s)
		}
	}
	return others, own
}

func (s span) meets(list []span) bool {
	for _, o := range list {
		if s.first < o.end && o.first < s.end {
			return true
		}
	}
	return false
}

func (s span) within(list []span) bool {
	for _, o := range list {
		if o.first <= s.first && s.end <= o.end {
			return true
		}
	}
	return false
}
