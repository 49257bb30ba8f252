// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/podspec"
)

// TemplateDiff says in what a template of pods differs from the one before, as far as it matters for whether they run.
// Values of variables are left out: they may be secret.
func TemplateDiff(before, after *corev1.PodSpec) (all []string) {
	old := map[string]*corev1.Container{}
	for ref := range podspec.OwnContainers(before) {
		old[label(ref)] = ref.Container
	}
	for ref := range podspec.OwnContainers(after) {
		c, was := ref.Container, old[label(ref)]
		if was == nil {
			all = append(all, label(ref)+" is new")
			continue
		}
		delete(old, label(ref))
		for _, d := range containerDiff(was, c) {
			all = append(all, d+" of "+label(ref))
		}
	}
	var gone []string
	for name := range old {
		gone = append(gone, name+" is gone")
	}
	slices.Sort(gone)
	return append(all, gone...)
}

func containerDiff(was, is *corev1.Container) (all []string) {
	changed := func(what, a, b string) {
		if a == "" {
			a = "none"
		}
		if b == "" {
			b = "none"
		}
		if a != b {
			all = append(all, fmt.Sprintf("%s %s → %s", what, oneline.Cut(a, 80), oneline.Cut(b, 80)))
		}
	}
	changed("image", was.Image, is.Image)
	changed("command", strings.Join(was.Command, " "), strings.Join(is.Command, " "))
	changed("args", strings.Join(was.Args, " "), strings.Join(is.Args, " "))
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		changed("request of "+string(name), amountOf(was.Resources.Requests, name),
			amountOf(is.Resources.Requests, name))
		changed("limit of "+string(name), amountOf(was.Resources.Limits, name), amountOf(is.Resources.Limits, name))
	}
	if names := variables(was.Env, is.Env); len(names) > 0 {
		all = append(all, "env "+strings.Join(names, ", "))
	}
	return all
}

func amountOf(list corev1.ResourceList, name corev1.ResourceName) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return ""
}

// variables are the names of those that are in one list only, or otherwise in the other.
func variables(was, is []corev1.EnvVar) (names []string) {
	text := func(e corev1.EnvVar) string {
		if e.ValueFrom != nil {
			return e.ValueFrom.String()
		}
		return "=" + e.Value
	}
	old := map[string]string{}
	for _, e := range was {
		old[e.Name] = text(e)
	}
	for _, e := range is {
		if v, ok := old[e.Name]; !ok || v != text(e) {
			names = append(names, e.Name)
		}
		delete(old, e.Name)
	}
	for name := range old {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
