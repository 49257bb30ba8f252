// SPDX-License-Identifier: Apache-2.0

package work

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// mailbox holds the newest news for a worker. Posting never blocks: newer news of a kind replace older ones.
type mailbox struct {
	mu     sync.Mutex
	news   news
	signal chan struct{} // holds one token while there are news
}

// news is what came since a worker last looked.
type news struct {
	pod     *corev1.Pod // newest version, or nil
	evict   *plan.Eviction
	removed bool // the API server has no such pod any more
	nudge   bool // look at the node again
	retry   bool // what the pod refers to has changed: what failed for it may go now
}

func newMailbox() *mailbox { return &mailbox{signal: make(chan struct{}, 1)} }

func (m *mailbox) post(change func(*news)) {
	m.mu.Lock()
	change(&m.news)
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

func (m *mailbox) take() news {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.news
	m.news = news{}
	return n
}
