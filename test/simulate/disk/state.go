// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// state is a file system as programs see it, and what of it the disk has.
type state struct {
	cache   tree
	platter tree
	journal []change // made to cache and not yet to platter
	done    uint64   // changes that were ever committed
	next    uint64   // number of the next node
}

func newState() *state { return &state{cache: newTree(), platter: newTree(), next: rootNode + 1} }

// do makes a change that a loss of power can undo.
func (s *state) do(c change) {
	c(s.cache)
	s.journal = append(s.journal, c)
}

// number is that of the newest change.
func (s *state) number() uint64 { return s.done + uint64(len(s.journal)) }

func (s *state) commit() {
	for _, c := range s.journal {
		c(s.platter)
	}
	s.done += uint64(len(s.journal))
	s.journal = s.journal[:0]
}

// sync writes a file, and the journal, to the platter.
func (s *state) sync(ino uint64) {
	s.commit()
	s.flush(ino)
}

func (s *state) flush(ino uint64) {
	n, p := s.cache[ino], s.platter[ino]
	if n == nil || p == nil || n.pages == nil {
		return
	}
	for i, sectors := range n.dirty {
		p.take(n, i, sectors)
	}
	clear(n.dirty)
	p.size = n.size
}

// settle writes everything, as the kernel does after a while.
func (s *state) settle() {
	s.commit()
	for ino := range s.cache {
		s.flush(ino)
	}
}

// syncFails is a sync that fails: some of it is on the platter, and the rest nobody tries to write again. The kernel's
// page cache still has it; here is what the kernel reads when it has dropped the page. The journal is another matter.
func (s *state) syncFails(ino uint64, rng *rand.Rand) {
	s.commit()
	n, p := s.cache[ino], s.platter[ino]
	if n == nil || p == nil {
		return
	}
	for _, i := range slices.Sorted(maps.Keys(n.dirty)) {
		kept := n.dirty[i] & uint8(rng.Uint32())
		if (i+1)*pageSize > p.size {
			kept = 0
		}
		p.take(n, i, kept)
		if p.pages[i] == nil {
			*n.pages[i] = page{}
			continue
		}
		n.take(p, i, n.dirty[i]&^kept)
	}
	clear(n.dirty)
}

// killed is what the next process finds: everything that this one has written, synced or not.
func (s *state) killed() *state {
	return &state{cache: s.cache.copy(), platter: s.platter.copyAll(), journal: slices.Clone(s.journal), done: s.done,
		next: s.next}
}

// copyAll keeps what no name leads to yet: a change that is not committed may give it one.
func (t tree) copyAll() tree {
	out := t.copy()
	for ino, n := range t {
		if out[ino] == nil {
			alone := tree{rootNode: n}.copy()
			out[ino] = alone[rootNode]
		}
	}
	return out
}

// Loss is how much of what was not synced a loss of power takes.
type Loss string

// Losses.
const (
	LoseAll  Loss = "all"  // nothing that was not synced is there
	LoseSome Loss = "some" // each sector by itself, and the end of the journal
	LoseTail Loss = "tail" // all of the journal is there, and sectors by themselves
)

// powerless is what the machine finds when the power is back.
func (s *state) powerless(loss Loss, rng *rand.Rand) *state {
	kept := 0
	switch loss {
	case LoseSome:
		kept = rng.IntN(len(s.journal) + 1)
	case LoseTail:
		kept = len(s.journal)
	}
	t := s.platter.copyAll()
	for _, c := range s.journal[:kept] {
		c(t)
	}
	if loss != LoseAll {
		for _, ino := range slices.Sorted(maps.Keys(s.cache)) {
			n, p := s.cache[ino], t[ino]
			if p != nil && len(n.dirty) > 0 && n.since <= s.done+uint64(kept) {
				p.survive(n, rng)
			}
		}
	}
	t = t.copy()
	return &state{cache: t, platter: t.copy(), done: s.done, next: s.next}
}

// survive lets sectors reach the platter, by chance: each by itself where the file has its size already, and those that
// made it grow in order.
func (n *node) survive(from *node, rng *rand.Rand) {
	size := n.size
	if from.size > size {
		grown := (from.size - size + sectorSize - 1) / sectorSize
		size = min(from.size, size+rng.Int64N(grown+1)*sectorSize)
	}
	for _, i := range slices.Sorted(maps.Keys(from.dirty)) {
		sectors := from.dirty[i]
		for s := range int64(pageSize / sectorSize) {
			at := i*pageSize + s*sectorSize
			if at >= size || at < n.size && rng.IntN(2) == 0 {
				sectors &^= 1 << s
			}
		}
		n.take(from, i, sectors)
	}
	n.size = size
	n.cut(size)
}
