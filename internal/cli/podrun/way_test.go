// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/timeline"
)

// A run tells once, when its pod is ready, where the time went, and on a terminal draws its rows in the end. A node that keeps
// no timelines takes nothing away.
func TestTimelineOfARun(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	past := timeline.History{Pod: timeline.Pod{Namespace: "default", Name: "web"}, Now: begin.Add(time.Second), Moments: []timeline.Moment{
		{Seq: 1, At: begin, What: timeline.Seen},
		{Seq: 2, At: begin, What: timeline.Sandbox, Edge: timeline.Begin},
		{Seq: 3, At: begin.Add(100 * time.Millisecond), What: timeline.Sandbox, Edge: timeline.End},
		{Seq: 4, At: begin.Add(310 * time.Millisecond), What: timeline.Ready}}}
	ready := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	for name, c := range map[string]struct {
		width int
		quiet bool
		err   error
		told  int
		drawn int
	}{
		"terminal":             {100, false, nil, 2, 1}, // the rows end with the same line
		"pipe":                 {0, false, nil, 1, 0},
		"quiet":                {100, true, nil, 0, 0},
		"a node that does not": {100, false, errors.New("404"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asked := func(_ context.Context, pod *corev1.Pod) (timeline.History, error) {
				if pod.Spec.NodeName != "node-1" {
					t.Error("asked before the pod had a node")
				}
				return past, c.err
			}
			screen := &Screen{Out: &w.out, Err: &w.err, Start: time.Now(), Quiet: c.quiet, Rows: timeline.Options{Width: c.width}}
			f := newFollower(&Runner{Client: w.client, Screen: screen, Timeline: asked, Options: Options{Quiet: c.quiet, Detach: true}}, &corev1.Pod{})
			for range 2 {
				if _, err := f.see(t.Context(), ready); err != nil {
					t.Fatal(err)
				}
			}
			f.draw(t.Context())
			said := w.err.String()
			if n := strings.Count(said, "Ready after 0.31s: sandbox 0.10s"); n != c.told {
				t.Errorf("told %d times, want %d:\n%s", n, c.told, said)
			}
			if n := strings.Count(said, "bbbb"); (n > 0) != (c.drawn > 0) {
				t.Errorf("drawn: %v:\n%s", n, said)
			}
		})
	}
}
