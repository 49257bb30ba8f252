// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
)

// RS-01: one user, whatever he opens, leaves room for others, and sessions leave room for looks; what is given back can be
// taken again.
func TestSlots(t *testing.T) {
	s := newSlots()
	take := func(by string, n int) (back []func()) {
		t.Helper()
		for range n {
			giveBack, err := s.session(by)
			if err != nil {
				t.Fatalf("%s: %v", by, err)
			}
			back = append(back, giveBack)
		}
		return back
	}
	ann := take("ann", mostOfOne)
	if _, err := s.session("ann"); err == nil || !strings.Contains(err.Error(), "12 debug sessions of ann run on this node") {
		t.Errorf("one more of ann: %v", err)
	}
	take("ben", mostOfOne)
	take("cat", mostSessions-2*mostOfOne)
	if _, err := s.session("cat"); err == nil || !strings.Contains(err.Error(), "32 debug sessions run on this node") {
		t.Errorf("one more than there are: %v", err)
	}
	ann[0]()
	take("cat", 1)
	for _, giveBack := range ann[1:] {
		giveBack()
	}
	if _, is := s.of["ann"]; is {
		t.Error("who has none is remembered")
	}
	take("ann", mostOfOne-1)
	for range mostLooks - 1 {
		if _, err := s.look(); err != nil {
			t.Fatal(err)
		}
	}
	giveBack, err := s.look()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.look(); err == nil || !strings.Contains(err.Error(), "8 others look") {
		t.Errorf("one more look: %v", err)
	}
	giveBack()
	if _, err := s.look(); err != nil {
		t.Error(err)
	}
}
