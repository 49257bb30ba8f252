// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// starts notifies those who wait for a container's start as soon as the runtime has started it: before anybody has
// looked at the pod again, and long before its status is stored.
type starts struct {
	mu      sync.Mutex
	waiting map[start]map[chan<- string]bool
}

// start is the start of one attempt of a container.
type start struct {
	pod       types.UID
	container string
	attempt   uint32
}

// wait returns a channel that gets the id of the container when it is started from now on, and what to call when that
// is not waited for any more.
func (s *starts) wait(of start) (started <-chan string, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan string, 1)
	if s.waiting == nil {
		s.waiting = map[start]map[chan<- string]bool{}
	}
	if s.waiting[of] == nil {
		s.waiting[of] = map[chan<- string]bool{}
	}
	s.waiting[of][ch] = true
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting[of], ch)
		if len(s.waiting[of]) == 0 {
			delete(s.waiting, of)
		}
	}
}

// notify is called when a container was started. An attempt is started once, so nobody is notified twice.
func (s *starts) notify(pod *corev1.Pod, container string, attempt uint32, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.waiting[start{pod.UID, container, attempt}] {
		select {
		case ch <- id:
		default: // a call that was cut off and done again
		}
	}
}

// Started is part of [httpapi.Host].
func (h host) Started(ctx context.Context, uid types.UID, container string, run uint32) (string, error) {
	started, leave := h.a.starts.wait(start{uid, container, run})
	defer leave()
	for {
		changed := h.Changed() // asked for before the look, so that nothing gets lost between the two
		v, err := h.view(uid)
		if err != nil {
			return "", err
		}
		if id, err := startedIn(v.Pod, v.Seen, container, run); id != "" || err != nil {
			return id, err
		}
		select {
		case id := <-started:
			return id, nil
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// startedIn finds the container of a run that has started, whether it still runs or not. An error says that the run
// will not start any more. (Pure.)
func startedIn(pod *corev1.Pod, seen plan.Seen, container string, run uint32) (id string, err error) {
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if c.Name != container || c.Attempt != run || c.StartedAt.IsZero() {
			continue
		}
		// containerd's and CRI-O's word for one whose command could not be run
		if c.Reason == "StartError" || c.Reason == "ContainerCannotRun" {
			continue
		}
		return c.ID, nil
	}
	if now := podspec.DebugRunsOf(pod)[container].Run; now > int(run) {
		return "", fmt.Errorf("container %q in pod %q was replaced by another with the same name", container, pod.Name)
	}
	return "", nil
}
