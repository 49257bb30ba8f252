// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
