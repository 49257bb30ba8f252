// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// IX-08: the same thing done again within a minute is not written again; anything else is.
func TestTaintIsFresh(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var s corev1.PodStatus
	is := execTaint("jane", "main")
	is.put(&s, 3, now)
	c := &s.Conditions[0]
	if c.Message != "exec by jane into main at 2026-11-20T12:00:00Z" || c.ObservedGeneration != 3 {
		t.Errorf("%+v", c)
	}
	for name, test := range map[string]struct {
		t    taint
		at   time.Time
		want bool
	}{
		"again":              {is, now.Add(30 * time.Second), true},
		"a minute later":     {is, now.Add(time.Minute), false},
		"another container":  {execTaint("jane", "side"), now, false},
		"another user":       {execTaint("joe", "main"), now, false},
		"another way":        {imageTaint("jane", "main"), now, false},
		"a trick in the end": {execTaint("jane", "main at 2026-11-20T12:00:00Z"), now, false},
	} {
		if got := test.t.fresh(c, test.at); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	long := shown([]string{strings.Repeat("ä", 1000)})
	if len(long) > maxCommand+len("…") || !strings.HasSuffix(long, "…") || strings.ContainsRune(long, '�') {
		t.Errorf("a long command is shown as %q", long)
	}
}
