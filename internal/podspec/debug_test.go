// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DC-08: a time limit counts from the start; one that does not start has a last moment to do so.
func TestDebugRunEnds(t *testing.T) {
	asked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var limited, stopped, endless DebugRun
	limited.Limit(time.Minute, asked)
	stopped.Limit(time.Minute, asked)
	stopped.Stop(asked.Add(time.Second), "jane")
	endless.Limit(math.MaxInt64, asked)
	for name, c := range map[string]struct {
		run   DebugRun
		began time.Duration // after it was asked for; 0: it has not
		want  time.Duration // the same; 0: never
	}{
		"no limit":                      {began: time.Hour},
		"not started":                   {run: limited, want: startWithin},
		"started late":                  {run: limited, began: 10 * time.Minute, want: 11 * time.Minute},
		"later than it may":             {run: limited, began: time.Hour, want: startWithin + time.Minute},
		"stopped":                       {run: stopped, began: time.Millisecond, want: time.Second},
		"stopped before it started":     {run: stopped, want: time.Second},
		"of an older server":            {run: DebugRun{StopAt: &metav1.Time{Time: asked.Add(time.Minute)}}, began: 30 * time.Second, want: time.Minute},
		"of an older server, not there": {run: DebugRun{StopAt: &metav1.Time{Time: asked.Add(time.Minute)}}, want: time.Minute},
		"for ever, not started":         {run: endless, want: startWithin},
		"for ever":                      {run: endless, began: time.Minute, want: math.MaxInt64 - startWithin + time.Minute},
	} {
		began, want := asked.Add(c.began), asked.Add(c.want)
		if c.began == 0 {
			began = time.Time{}
		}
		if c.want == 0 {
			want = time.Time{}
		}
		if got := c.run.Ends(began); !got.Equal(want) {
			t.Errorf("%s: ends %v after it was asked for, want %v", name, got.Sub(asked), c.want)
		}
	}
}

// DC-06, DC-08: what is wanted of debug containers comes back as it was written, and nothing is left of nothing.
func TestDebugRuns(t *testing.T) {
	pod := &corev1.Pod{}
	if runs := DebugRunsOf(pod); runs != nil {
		t.Errorf("of a pod without any: %v", runs)
	}
	at := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	if err := SetDebugRuns(pod, DebugRuns{"debug": {Run: 2, StopAt: &at}, "other": {}}); err != nil {
		t.Fatal(err)
	}
	runs := DebugRunsOf(pod)
	if len(runs) != 2 || runs["debug"].Run != 2 || !runs["debug"].StopAt.Equal(&at) || runs["other"] != (DebugRun{}) {
		t.Errorf("came back as %+v", runs)
	}
	if err := SetDebugRuns(pod, nil); err != nil || len(pod.Annotations) != 0 {
		t.Errorf("left of nothing: %v %v", pod.Annotations, err)
	}
}

func TestDebugAnnotationsRefused(t *testing.T) {
	for name, c := range map[string]struct{ key, value, want string }{
		"not JSON":     {DebugAnnotation, "{", "unexpected end"},
		"negative run": {DebugAnnotation, `{"d":{"run":-1}}`, "must be 0 or more"},
		"no duration":  {HoldAnnotation, "soon", "invalid duration"},
		"not positive": {HoldAnnotation, "0s", "more than 0"},
		"too long":     {HoldAnnotation, "25h", "at most 24h"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{c.key: c.value}}}
			errs := validateDebugAnnotations(pod, nil)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("errors %v, want one with %q", errs, c.want)
			}
			if HoldOnFailure(pod) != 0 || DebugRunsOf(pod) != nil {
				t.Error("it was taken for something")
			}
		})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{HoldAnnotation: "10m"}}}
	if errs := validateDebugAnnotations(pod, nil); len(errs) != 0 || HoldOnFailure(pod) != 10*time.Minute {
		t.Errorf("10m: %v, %s", errs, HoldOnFailure(pod))
	}
}
