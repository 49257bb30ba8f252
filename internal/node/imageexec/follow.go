// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/podspec"
)

// following is what a session knows of the pod while its command runs.
type following struct {
	uid  types.UID // of the pod
	user int       // of the command

	ids   map[string]bool // containers that are shown, by id
	names map[string]bool // folders below /c

	cancel context.CancelFunc // nil: nothing is followed
	done   chan struct{}
}

// maxLater bounds how many containers are shown that have started after the command: one that crashes again and again
// must not keep all its files on the disk.
const maxLater = 16

// hold keeps a container's files while the session lasts: what is shown does not go from under the command when the
// container is started anew.
func (s *Session) hold(container, as string) {
	if s.ids == nil {
		s.ids, s.names = map[string]bool{}, map[string]bool{}
	}
	s.ids[container], s.names[as] = true, true
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.held[container]++
}

// release lets go of all that was held.
func (s *Session) release() {
	s.e.mu.Lock()
	for id := range s.ids {
		if s.e.held[id]--; s.e.held[id] <= 0 {
			delete(s.e.held, id)
		}
		if s.e.writers[id] == s.id {
			delete(s.e.writers, id)
		}
	}
	s.e.mu.Unlock()
	if len(s.ids) > 0 && s.e.Released != nil {
		s.e.Released(s.uid)
	}
}

// follow shows containers that start while the command runs, until the session is closed. Each comes as /c/<name>, or,
// if that is there already, of the attempt before, as /c/<name>.<attempt>.
func (s *Session) follow() {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed || s.e.Changed == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	go func() {
		defer close(s.done)
		for later := 0; ; {
			changed := s.e.Changed()
			pod := s.e.Pod(s.uid)
			if s.visiting && (pod == nil || pod.DeletionTimestamp != nil) {
				go s.end(podGoes) // it waits for this
				return
			}
			if pod == nil {
				return
			}
			if later < maxLater && s.news(pod) {
				later += s.showLater(ctx, pod)
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
}

// unfollow ends that, and waits for its end. It is called with changing held.
func (s *Session) unfollow() {
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
}

// news reports whether a container runs that is not shown.
func (s *Session) news(pod *corev1.Pod) bool {
	for _, c := range podspec.Statuses(&pod.Status) {
		if c.State.Running != nil && !s.ids[bareID(c.ContainerID)] {
			return true
		}
	}
	return false
}

// showLater shows what runs and is not shown, and returns how many there were.
func (s *Session) showLater(ctx context.Context, pod *corev1.Pod) (n int) {
	seen, err := s.e.Ops.Observe(ctx, pod)
	if err != nil {
		s.e.Logger.Debug("cannot see which containers started during an image exec", "session", s.id, "err", err)
		return 0
	}
	show, _ := choose(pod, seen)
	for _, c := range show {
		if s.ids[c.ID] || !c.Running() {
			continue
		}
		as := c.Name
		if s.names[as] {
			as = fmt.Sprintf("%s.%d", c.Name, c.Attempt)
		}
		if err := s.show(ctx, pod, c, as); err != nil {
			s.note("%v", err)
		}
		n++
	}
	if n > 0 {
		if err := s.writeNotes(s.user); err != nil {
			s.e.Logger.Debug("notes of an image exec cannot be written", "session", s.id, "err", err)
		}
	}
	return n
}

// bareID is a container's id without the scheme that statuses write it with.
func bareID(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}
