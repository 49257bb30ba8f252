// SPDX-License-Identifier: Apache-2.0

package agree

import "slices"

// shrink leaves of an attempt what is needed to show a finding.
func (s *subject) shrink(a attempt, f finding) attempt {
	shows := func(a attempt) bool {
		_, _, findings := s.try(a)
		return slices.ContainsFunc(findings, func(g finding) bool { return g.String() == f.String() })
	}
	if less := a; a.old != nil {
		less.old = nil
		if shows(less) {
			a = less
		}
	}
	for i := len(a.changes) - 1; i >= 0; i-- {
		less := a
		less.changes = slices.Delete(slices.Clone(a.changes), i, i+1)
		if shows(less) {
			a = less
		}
	}
	for i := range a.changes {
		a.changes = slices.Clone(a.changes)
		smaller(a.changes[i].value, func(value any) bool {
			less := a
			less.changes = slices.Clone(a.changes)
			less.changes[i].value = value
			if !shows(less) {
				return false
			}
			a = less
			return true
		})
	}
	return a
}

// smaller offers a value with one part taken away after the other; what is taken stays away.
func smaller(value any, take func(any) bool) any {
	switch v := value.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			less := clone(v).(map[string]any)
			delete(less, k)
			if take(less) {
				v = less
			}
		}
		for _, k := range sortedKeys(v) {
			part := smaller(v[k], func(p any) bool { return take(with(v, k, p)) })
			v = with(v, k, part).(map[string]any)
		}
		return v
	case []any:
		for i := len(v) - 1; i >= 0; i-- {
			if less := slices.Delete(slices.Clone(v), i, i+1); take(less) {
				v = less
			}
		}
		for i := range v {
			part := smaller(v[i], func(p any) bool {
				all := slices.Clone(v)
				all[i] = p
				return take(all)
			})
			v = slices.Clone(v)
			v[i] = part
		}
		return v
	}
	return value
}

func with(m map[string]any, key string, value any) any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	out[key] = value
	return out
}
