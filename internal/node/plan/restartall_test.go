// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestRestartAllCalled proves PL-28: which ends have all containers start again, and which come too late for that.
func TestRestartAllCalled(t *testing.T) {
	always, none := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	rules := []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
	now := epoch.Add(time.Hour)
	ended := func(name string, code int32, seconds time.Duration, round int) Container {
		return Container{ID: name, Name: name, SandboxID: "b", CreatedAt: now.Add(-time.Minute), StartedAt: now.Add(-time.Minute),
			FinishedAt: now.Add(-seconds * time.Second), ExitCode: code, SpecImage: "img", Round: round}
	}
	runs := func(name string, round int) Container {
		c := ended(name, 0, 0, round)
		c.FinishedAt = time.Time{}
		return c
	}
	for name, c := range map[string]struct {
		seen  []Container
		heard func(*Input)
		stops []string // containers that are stopped
		round int      // of what starts
		over  bool
	}{
		"a sidecar's end":                      {seen: []Container{runs("main", 0), ended("side", 42, 1, 0)}, stops: []string{"main"}},
		"and the main has ended because of it": {seen: []Container{ended("main", 0, 1, 0), ended("side", 42, 2, 0)}, round: 1},
		"another code":                         {seen: []Container{runs("main", 0), ended("side", 1, 1, 0)}, round: 0},
		"the main had ended before":            {seen: []Container{ended("main", 0, 2, 0), ended("side", 42, 1, 0)}, over: true},
		"a main's end":                         {seen: []Container{ended("main", 42, 1, 0), runs("side", 0)}, stops: []string{"side"}},
		"answered already":                     {seen: []Container{ended("main", 42, 1, 0), runs("side", 1)}, round: 1},
		"the pod is being deleted": {seen: []Container{ended("main", 42, 1, 0), ended("side", 0, 1, 0)}, over: true,
			heard: func(in *Input) { in.Pod.DeletionTimestamp = &in.Pod.CreationTimestamp }},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: never,
			InitContainers: []corev1.Container{{Name: "side", Image: "img", RestartPolicy: &always, RestartPolicyRules: rules}},
			Containers:     []corev1.Container{{Name: "main", Image: "img", RestartPolicy: &none, RestartPolicyRules: rules}}}}
		in := Input{Pod: pod, Now: now, Seen: Seen{Sandboxes: []Sandbox{{ID: "b", Ready: true, CreatedAt: now.Add(-time.Hour)}}, Containers: c.seen},
			Heard: Heard{Prepared: true, Pulled: map[string]Pulled{"main": {1, "img"}, "side": {1, "img"}}}}
		if c.heard != nil {
			c.heard(&in)
		}
		d := Next(in)
		var stops []string
		for _, o := range d.Ops {
			switch {
			case o.Verb == StopContainer:
				stops = append(stops, o.Container)
			case o.Verb == StartContainer && (o.Round != c.round || c.over || len(c.stops) > 0):
				t.Errorf("PL-28 %s: %s starts in round %d", name, o.Container, o.Round)
			}
		}
		if len(stops) != len(c.stops) || len(stops) > 0 && stops[0] != c.stops[0] {
			t.Errorf("PL-28 %s: %v are stopped, want %v", name, stops, c.stops)
		}
	}
}
