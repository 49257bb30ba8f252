// SPDX-License-Identifier: Apache-2.0

package work

import "time"

// Meter takes measurements of workers. Its methods are called from several goroutines at once and must not block.
type Meter interface {
	// Decided is called after each decision of the planner.
	Decided(took time.Duration)
	// Passed is called when a worker has looked at its pod and done all that it can do without waiting. kind is
	// "create" the first time, "kill" for a pod that is being deleted, "update" if the pod was changed, else "sync".
	Passed(kind string, took time.Duration)
}

// meter measures one worker.
type meter struct {
	to      Meter // or nil
	first   bool  // a pass was measured
	changed bool  // a newer version of the pod came
	began   time.Time
}

func (m *meter) begin() { m.began = time.Now() }

func (m *meter) decided(began time.Time) {
	if m.to != nil {
		m.to.Decided(time.Since(began))
	}
}

func (m *meter) end(leaving bool) {
	if m.to == nil {
		return
	}
	kind := "sync"
	switch {
	case leaving:
		kind = "kill"
	case !m.first:
		kind = "create"
	case m.changed:
		kind = "update"
	}
	m.first, m.changed = true, false
	m.to.Passed(kind, time.Since(m.began))
}
