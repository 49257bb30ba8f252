// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// DC-15: who has joined nobody's processes is told why, and whose can be joined.
func TestDebugNote(t *testing.T) {
	add := func(p *corev1.Pod, target string) *corev1.Pod {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d"}, TargetContainerName: target}}
		return p
	}
	with := func(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod { change(p); return p }
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"it has a target": {add(live("main"), "main"), ""},
		"shared":          {with(add(live("a", "b"), ""), func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }), ""},
		"two":             {add(live("app", "helper"), ""), "to see the processes of one, use --target app, or --target helper"},
		"one of two":      {with(add(live("app", "helper"), ""), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = hasEnded }), "one, use --target helper"},
		"none of two": {with(add(live("app", "helper"), ""), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }),
			"no container of the pod is running"},
		"one that has no image": {with(add(live("app"), ""), func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = waits("ImagePullBackOff")
		}), "container app is not running (ImagePullBackOff: words)"},
		"one that has ended": {with(add(live("app"), ""), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = hasEnded }), "is not running (exit code 2, Error)"},
		"RS-13 a message with more in it": {with(add(live("app"), ""), func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "R", Message: "a\r\nSet-Cookie: b\x1b[2J"}}
		}), "(R: a Set-Cookie: b [2J)"},
		"nobody of that name": {live("main"), ""},
	} {
		if got := DebugNote(c.pod, "d"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
