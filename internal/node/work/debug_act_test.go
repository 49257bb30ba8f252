// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// debug does what "debug NAME [run=1] [stop=5s] [target=main] [image=i] [script words]" says: the API server has the ephemeral
// container, for this run and until so long from now. One of that name is replaced, as exec++ does (DC-06).
func (s *sim) debug(name string, words []string) error {
	c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "debug"}}
	run := podspec.DebugRun{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "run":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			run.Run = n
		case "stop":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			run.StopAt = &metav1.Time{Time: time.Now().Add(d)}
		case "target":
			c.TargetContainerName = value
		case "image":
			c.Image = value
		default:
			c.Args = append(c.Args, w)
		}
	}
	var err error
	s.api.edit(func(p *corev1.Pod) {
		runs := podspec.DebugRunsOf(p)
		if runs == nil {
			runs = podspec.DebugRuns{}
		}
		runs[name] = run
		p.Spec.EphemeralContainers = slices.Clone(p.Spec.EphemeralContainers)
		at := slices.IndexFunc(p.Spec.EphemeralContainers, func(e corev1.EphemeralContainer) bool { return e.Name == name })
		if at < 0 {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, c)
		} else {
			p.Spec.EphemeralContainers[at] = c
		}
		podspec.SetDefaults(p)
		err = podspec.SetDebugRuns(p, runs)
	})
	return err
}

// stopDebug asks a debug container to end (DC-08).
func (s *sim) stopDebug(name string) error {
	var err error
	s.api.edit(func(p *corev1.Pod) {
		if _, ok := podspec.FindContainer(&p.Spec, name); !ok {
			return
		}
		runs := podspec.DebugRunsOf(p)
		if runs == nil {
			runs = podspec.DebugRuns{}
		}
		run := runs[name]
		run.StopAt = &metav1.Time{Time: time.Now()}
		runs[name] = run
		err = podspec.SetDebugRuns(p, runs)
	})
	return err
}

// hold sets or removes the annotation that keeps what failed.
func (s *sim) hold(d string) error {
	s.api.edit(func(p *corev1.Pod) {
		delete(p.Annotations, podspec.HoldAnnotation)
		if d != "off" {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, podspec.HoldAnnotation, d)
		}
	})
	return nil
}

// debugs has debug container d0, or its next run, added by the API server's own rules, which may refuse it.
func (h *history) debugs() {
	run := podspec.DebugRun{}
	if h.rng.IntN(3) == 0 {
		run.StopAt = &metav1.Time{Time: time.Now().Add(time.Duration(h.rng.IntN(30)) * time.Second)}
	}
	h.api.edit(func(p *corev1.Pod) {
		c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d0", Image: "img"}}
		p.Spec.EphemeralContainers = slices.Clone(p.Spec.EphemeralContainers)
		if _, err := podspec.AddDebugContainer(p, c, run); err == nil {
			podspec.SetDefaults(p)
		}
	})
}

// noteDebug holds that no run of a debug container begins twice (EC-11). p.mu is held.
func (p *spy) noteDebug(all []found) {
	for _, c := range all {
		if _, _, place := p.isInit(c.name()); place >= 0 || c.GetStartedAt() == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%d", c.name(), c.GetMetadata().GetAttempt())
		switch id, known := p.began[key]; {
		case !known && p.began == nil:
			p.began = map[string]string{key: c.GetId()}
		case !known:
			p.began[key] = c.GetId()
		case id != c.GetId():
			p.began[key] = c.GetId()
			p.faults = append(p.faults, fmt.Sprintf("at %.3f: debug container %s runs a second time", time.Since(p.sim.begin).Seconds(), key))
		}
	}
}

// checkDebugStatus holds that a run of a debug container that has ended stays so (EC-11, DC-11).
func (p *spy) checkDebugStatus(old, now []corev1.ContainerStatus) {
	if len(now) < len(old) {
		p.fault("there were %d debug containers in the status, and are %d", len(old), len(now))
		return
	}
	for i := range old {
		if a, b := &old[i], &now[i]; a.State.Terminated != nil && b.State.Terminated == nil && a.RestartCount == b.RestartCount {
			p.fault("run %d of debug container %s had ended and is now %s", a.RestartCount, a.Name, stateOf(b.State))
		}
	}
}

// checkDebug holds after a long calm that the wanted run of a debug container has begun (EC-10, DC-06).
func (h *history) checkDebug(p *corev1.Pod) {
	if p.Status.Phase != corev1.PodRunning {
		return
	}
	for i := range p.Spec.EphemeralContainers {
		name := p.Spec.EphemeralContainers[i].Name
		switch s := podspec.DebugStateOf(p, name); s.Phase {
		case podspec.DebugRunning, podspec.DebugEnded:
		default:
			h.spy.fault("after a long calm run %d of debug container %s has not begun: %s %s", s.Run, name, s.Reason, s.Message)
		}
	}
}
