// SPDX-License-Identifier: Apache-2.0

package scheduler

import "sync"

// mailbox carries messages to the goroutine that owns the state. Sending never blocks, so that event handlers, and
// the owner itself, may always send.
type mailbox struct {
	mu       sync.Mutex
	messages []func()
	ready    chan struct{}
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// send leaves something for the owner to do.
func (m *mailbox) send(message func()) {
	m.mu.Lock()
	m.messages = append(m.messages, message)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take empties the mailbox.
func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.messages
	m.messages = nil
	return out
}
