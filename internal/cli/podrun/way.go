// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/cli/progress"
	"github.com/wherryproject/wherry/internal/timeline"
)

// timelinePatience is how long a run waits for a timeline; without one nothing is missing but the picture.
const timelinePatience = 3 * time.Second

// history fetches what the pod's node noted. Nodes of another make note nothing.
func (f *follower) history(ctx context.Context, pod *corev1.Pod) (timeline.History, bool) {
	if f.owner.Timeline == nil || f.owner.Options.Quiet || f.owner.Screen.Brief || pod.Spec.NodeName == "" {
		return timeline.History{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, timelinePatience)
	defer cancel()
	h, err := f.owner.Timeline(ctx, pod)
	return h, err == nil && len(h.Moments) > 0
}

// showWay says where the time until readiness went.
func (f *follower) showWay(ctx context.Context, pod *corev1.Pod) {
	if h, ok := f.history(ctx, pod); ok {
		f.owner.Screen.Show(f.self.Name, progress.Line{Text: timeline.Summary(h)})
	}
}

// draw shows the pod's rows, as wherry timeline does, when there is nothing more to follow. Files and pipes get no
// picture.
func (f *follower) draw(ctx context.Context) {
	if f.owner.Screen.Rows.Width == 0 || f.ofCrew { // a workload may have many
		return
	}
	if h, ok := f.history(context.WithoutCancel(ctx), f.pod); ok {
		f.owner.Screen.Draw(h)
	}
}
