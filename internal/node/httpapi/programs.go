// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxPrograms bounds how many commands run in a pod by exec, with or without a client: each costs the node a process in
// the shim, and the server who waits for it.
const maxPrograms = 256

// programs counts commands that run in pods by exec.
type programs struct {
	mu  sync.Mutex
	pod map[types.UID]int
}

// begin counts one more, and returns what ends it, which may be called more than once. A pod that has too many gets an
// error for the client.
func (p *programs) begin(uid types.UID, name string) (end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pod[uid] >= maxPrograms {
		return nil,
			fail(http.StatusTooManyRequests,
				"pod %q has %d commands running that exec started, and a pod may have no more; "+
					"end some of them (they go on when their clients are gone)", name, maxPrograms)
	}
	if p.pod == nil {
		p.pod = map[types.UID]int{}
	}
	p.pod[uid]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pod[uid]--; p.pod[uid] <= 0 {
			delete(p.pod, uid)
		}
	}), nil
}
