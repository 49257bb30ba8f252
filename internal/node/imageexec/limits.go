// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits bound how many image execs there are at the same time (RS-05). Each holds memory for what it shows, a
// container, and in a pod that has ended a sandbox. Zero is no limit.
type Limits struct{ Pod, Namespace, Node int }

// owner is whose a session is.
type owner struct {
	namespace string
	pod       types.UID
}

// admit decides whether a pod may have one more session, beside those that are live. The error says which limit there
// is. (Pure.)
func (l Limits) admit(live map[string]owner, of owner) error {
	var pod, namespace int
	for _, o := range live {
		if o.namespace == of.namespace {
			namespace++
		}
		if o.pod == of.pod {
			pod++
		}
	}
	for _, c := range []struct {
		most, have int
		whose      string
	}{{l.Pod, pod, "of this pod"}, {l.Namespace, namespace, fmt.Sprintf("in namespace %q", of.namespace)},
		{l.Node, len(live), "on this node"}} {
		if c.most > 0 && c.have >= c.most {
			return fmt.Errorf("there are %d image execs %s already, which is the limit; try again when one of them has ended", c.have, c.whose)
		}
	}
	return nil
}

// begin counts a session, if there may be one more.
func (e *Execs) begin(id string, pod *corev1.Pod) error {
	of := owner{pod.Namespace, pod.UID}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.Limits.admit(e.live, of); err != nil {
		return refuse(http.StatusTooManyRequests, "image exec: %v", err)
	}
	e.live[id] = of
	return nil
}

// errWritten is why a session does not get an ended container's files to write to: another has them.
var errWritten = errors.New("it has ended, and another image exec or wherry cp is writing to its files")

// alone lets one session at a time have an ended container's layers mounted to write to: the kernel does not say what
// becomes of them otherwise.
func (s *Session) alone(container string, f Files) Files {
	mountRoot := f.MountRoot
	f.MountRoot = func(at string, writable bool) error {
		if writable && !s.e.claim(container, s.id) {
			return errWritten
		}
		return mountRoot(at, writable)
	}
	return f
}

// claim makes a session the writer of an ended container's files, until it is closed.
func (e *Execs) claim(container, session string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if by, taken := e.writers[container]; taken && by != session {
		return false
	}
	e.writers[container] = session
	return true
}

// sessionLogs is how much memory the ends of logs that one session shows may take, in bytes.
const sessionLogs = 4 << 20

// nodeLogs is how much memory those of all sessions may take together, in bytes: no cgroup is charged for them.
const nodeLogs = 64 << 20

// takeLogs reserves memory for the end of a log, as much as there is of what is wanted; giveLogs gives back what is not
// needed.
func (e *Execs) takeLogs(want int64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := min(want, nodeLogs-e.logs)
	e.logs += got
	return got
}

func (e *Execs) giveLogs(n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logs -= n
}

// logShare decides how much of a container's log a session with that many containers shows, when so much is shown
// already. (Pure.)
func logShare(containers int, shownAlready int64) int64 {
	share := min(int64(logMost), sessionLogs/int64(max(containers, 1)))
	return max(min(share, sessionLogs-shownAlready), 0)
}
