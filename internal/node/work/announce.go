// SPDX-License-Identifier: Apache-2.0

package work

import "github.com/wherryproject/wherry/internal/node/plan"

// topic is what an event is about. What is told of one topic in decisions in a row is one event.
type topic struct{ container, reason string }

// announce passes on the events that have come up with these reasons.
func (w *Worker) announce(why []plan.Reason) {
	told := w.told
	w.told = nil
	for i := range why {
		e := why[i].Event
		if e == nil {
			continue
		}
		t := topic{why[i].Container, e.Reason}
		if !told[t] && !w.told[t] {
			w.node.Announce(w.pod, t.container, *e)
		}
		if w.told == nil {
			w.told = map[topic]bool{}
		}
		w.told[t] = true
	}
}
