// SPDX-License-Identifier: Apache-2.0

package plan

// debugOnce starts ephemeral container m if it was never started: also while inits still run or fail (EC-10), and never
// again, whatever became of it (EC-11). One that was made for a sandbox that has died does not come back (EC-13).
func (v *view) debugOnce(m *member) {
	name := m.spec.Name
	switch {
	case m.start || v.isOut(Key{StopContainer, name, m.attempt(), NoProbe}):
	case m.live() && m.newest.Lost:
		v.do(Op{Verb: StopContainer, Container: name, Attempt: m.newest.Attempt, Until: v.Now})
	case m.live() || m.exit != nil || m.newest != nil && !m.here:
	default:
		v.revive(m)
	}
}
