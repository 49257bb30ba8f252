// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"time"

	"github.com/wherryproject/wherry/test/e2e"
)

// spareDescriptors is how many more a server may have than a fresh one: of clients that have just come. The connections
// of its own parts, two descriptors each, are given back after 15 s of idling, which is why flat waits at all: a storm
// leaves some thirty of them.
const spareDescriptors = 12

// patience is how long a server may take to give all back.
const patience = 60 * time.Second

// spareHeap is how many times a fresh server's live memory it may have: caches of images and objects are filled by
// then.
const spareHeap = 3

// measure looks at the server.
func (s *storm) measure() e2e.Usage {
	s.t.Helper()
	u, err := s.Usage(s.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// flat holds the server's descriptors and memory against those of a fresh one (RS-01).
func (s *storm) flat() {
	now := s.measure()
	s.t.Logf("at first: %v", now)
	for until := time.Now().Add(patience); time.Now().Before(until); { // nothing tells
		if now.Count() <= s.fresh.Count()+spareDescriptors && now.Heap <= spareHeap*s.fresh.Heap {
			break
		}
		time.Sleep(time.Second)
		now = s.measure()
	}
	s.t.Logf("fresh: %v", s.fresh)
	s.t.Logf("after: %v", now)
	if now.Count() > s.fresh.Count()+spareDescriptors || now.Heap > spareHeap*s.fresh.Heap {
		s.t.Error("RS-01 the server holds more without any pod than a fresh one")
	}
}
