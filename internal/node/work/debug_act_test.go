// SPDX-License-Identifier: Apache-2.0

package work_test

import (
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
		p.Spec.EphemeralContainers = append(slices.DeleteFunc(slices.Clone(p.Spec.EphemeralContainers),
			func(e corev1.EphemeralContainer) bool { return e.Name == name }), c)
		podspec.SetDefaults(p)
		err = podspec.SetDebugRuns(p, runs)
	})
	return err
}

// stopDebug asks a debug container to end (DC-08).
func (s *sim) stopDebug(name string) error {
	var err error
	s.api.edit(func(p *corev1.Pod) {
		runs := podspec.DebugRunsOf(p)
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
