// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// reasonHeld is the reason that statuses and events show for a container that failed and is left as it is.
const reasonHeld = "HeldOnFailure"

// held returns until when container m, which has failed, is left as it is so that somebody can look, and asks to look
// again then; zero when it is not. The hold is the pod's annotation: it ends when that is taken away or shortened, with
// the pod's deletion, when a new image was set, and with the sandbox in which the container failed: there is nothing
// left to look at.
func (v *view) held(m *member) time.Time {
	e := m.exit
	switch {
	case v.hold == 0 || v.left.because != "" || m.kind == podspec.Ephemeral:
		return time.Time{}
	case e == nil || !e.failed() || !e.here || m.start || m.outdated(e.specImage) || v.setBack(e.finished):
		return time.Time{}
	}
	until := e.finished.Add(v.hold)
	if !v.Now.Before(until) {
		return time.Time{}
	}
	v.wake(until)
	return until
}

// endStands is since when the end of m stands: since it ended, or since its hold is over.
func (v *view) endStands(m *member) time.Time {
	if !m.exit.failed() {
		return m.exit.finished
	}
	return m.exit.finished.Add(v.hold)
}

// heldUntil says in words that a container is held.
func heldUntil(until time.Time) string {
	return fmt.Sprintf("held for debugging until %s by annotation %s", clock(until), podspec.HoldAnnotation)
}

// tellHeld tells of m that it is held.
func (v *view) tellHeld(m *member, until time.Time) {
	v.why(m.spec.Name, "is %s", heldUntil(until))
	how := fmt.Sprintf("failed with exit code %d", m.exit.code)
	if m.exit.code == 0 {
		how = "was killed as failed"
	}
	v.tell(Event{Reason: reasonHeld, Message: fmt.Sprintf("Container %s %s and is %s", m.spec.Name, how,
		heldUntil(until))})
}

// holdReason gives the pod's status a reason when the end of a container that is not started again is held: the
// container's own status says that it has ended, which may not be taken back.
func (v *view) holdReason(s *corev1.PodStatus) bool {
	var names []string
	last := time.Time{}
	v.all(func(m *member) {
		if until := v.held(m); !until.IsZero() && !v.again(m) {
			names, last = append(names, m.spec.Name), maxTime(last, until)
		}
	})
	if len(names) == 0 {
		return false
	}
	s.Reason, s.Message = reasonHeld, fmt.Sprintf("containers that failed are %s: [%s]", heldUntil(last),
		strings.Join(names, " "))
	return true
}
