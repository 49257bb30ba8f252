// SPDX-License-Identifier: Apache-2.0

package features

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"

	"github.com/wherryproject/wherry/internal/podspec"
)

// part is what a gate governs in a pod.
type part struct {
	gate featuregate.Feature
	// used lists the paths of the fields that are set.
	used func(*corev1.Pod) []*field.Path
	drop func(*corev1.Pod)
}

func parts() []part {
	spec := field.NewPath("spec")
	return []part{
		{SidecarContainers,
			func(p *corev1.Pod) (out []*field.Path) {
				for i := range p.Spec.InitContainers {
					if podspec.IsSidecar(&p.Spec.InitContainers[i]) {
						out = append(out, spec.Child("initContainers").Index(i).Child("restartPolicy"))
					}
				}
				return out
			},
			func(p *corev1.Pod) {
				for i := range p.Spec.InitContainers {
					if c := &p.Spec.InitContainers[i]; podspec.IsSidecar(c) {
						c.RestartPolicy, c.RestartPolicyRules = nil, nil
					}
				}
			}},
		{PodShareProcessNamespace,
			func(p *corev1.Pod) []*field.Path {
				return onlyIf(p.Spec.ShareProcessNamespace != nil, spec.Child("shareProcessNamespace"))
			},
			func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = nil }},
		{EphemeralContainers,
			func(p *corev1.Pod) []*field.Path {
				return onlyIf(len(p.Spec.EphemeralContainers) > 0, spec.Child("ephemeralContainers"))
			},
			func(p *corev1.Pod) { p.Spec.EphemeralContainers = nil }},
		{HoldOnFailure,
			func(p *corev1.Pod) []*field.Path {
				_, set := p.Annotations[podspec.HoldAnnotation]
				return onlyIf(set, field.NewPath("metadata", "annotations").Key(podspec.HoldAnnotation))
			},
			func(p *corev1.Pod) { delete(p.Annotations, podspec.HoldAnnotation) }},
	}
}

func onlyIf(set bool, path *field.Path) []*field.Path {
	if set {
		return []*field.Path{path}
	}
	return nil
}

// Drop takes from a pod that is about to be stored the fields of features that are off, unless the stored pod, old, has
// them already; old is nil for a new pod. It returns a sentence for the user about each field that it dropped.
func (g *Gates) Drop(pod, old *corev1.Pod) (warnings []string) {
	for _, p := range parts() {
		if g.Enabled(p.gate) || old != nil && len(p.used(old)) > 0 {
			continue
		}
		for _, path := range p.used(pod) {
			warnings = append(warnings, fmt.Sprintf("%s: dropped, because the feature gate %s is off", path, p.gate))
		}
		p.drop(pod)
	}
	return warnings
}

// Missing says which features a pod needs that are off: "" if it needs none. Whether a field asks for something counts,
// not whether it is there: shareProcessNamespace: false asks for nothing.
func (g *Gates) Missing(pod *corev1.Pod) string {
	var missing []string
	for _, p := range parts() {
		if g.Enabled(p.gate) || !asks(&pod.Spec, p.gate) {
			continue
		}
		missing = append(missing, fmt.Sprintf("%s needs the feature gate %s, which is off", p.used(pod)[0], p.gate))
	}
	return strings.Join(missing, "; ")
}

// asks reports whether a pod asks for what a gate governs. Ephemeral containers are no part of what a pod needs in
// order to run: with the gate off they are left alone (EC-24). Nor is being held when it has failed: with the gate off
// it is not.
func asks(s *corev1.PodSpec, gate featuregate.Feature) bool {
	switch gate {
	case SidecarContainers:
		for i := range s.InitContainers {
			if podspec.IsSidecar(&s.InitContainers[i]) {
				return true
			}
		}
	case PodShareProcessNamespace:
		return s.ShareProcessNamespace != nil && *s.ShareProcessNamespace
	}
	return false
}
