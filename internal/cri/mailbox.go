// SPDX-License-Identifier: Apache-2.0

package cri

import "sync"

// mailbox gathers nudges until somebody takes them. Putting never blocks and never grows beyond one entry for each pod:
// a runtime whose event stream is not drained stops publishing to everybody.
type mailbox struct {
	mu     sync.Mutex
	all    bool                // "": look at everything; swallows all else
	pods   map[string]struct{} // pod UIDs
	strays map[string]struct{} // ids of containers or sandboxes whose pod has to be looked up
	full   chan struct{}       // holds one token when there is something to take
}

func newMailbox() *mailbox {
	return &mailbox{pods: map[string]struct{}{}, strays: map[string]struct{}{}, full: make(chan struct{}, 1)}
}

func (m *mailbox) everything() { m.put(func() { m.all = true }) }

func (m *mailbox) pod(uid string) { m.put(func() { m.pods[uid] = struct{}{} }) }

func (m *mailbox) stray(id string) { m.put(func() { m.strays[id] = struct{}{} }) }

func (m *mailbox) put(change func()) {
	m.mu.Lock()
	change()
	m.mu.Unlock()
	select {
	case m.full <- struct{}{}:
	default:
	}
}

// take empties the mailbox.
func (m *mailbox) take() (everything bool, pods, strays map[string]struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	everything, pods, strays = m.all, m.pods, m.strays
	m.all, m.pods, m.strays = false, map[string]struct{}{}, map[string]struct{}{}
	return everything, pods, strays
}
