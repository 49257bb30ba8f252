// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Ref is an object that a pod needs, and who needs it.
type Ref struct {
	Kind string
	Name string
	Key  string // that it must have; empty: any
	By   string // env DATABASE_URL of container web, volume tls
}

// References are the objects that a pod cannot do without. Those that are optional are not among them.
func References(pod *corev1.Pod) (all []Ref) {
	add := func(optional *bool, r Ref) {
		if r.Name != "" && (optional == nil || !*optional) {
			all = append(all, r)
		}
	}
	for ref := range podspec.OwnContainers(&pod.Spec) {
		c := ref.Container
		for _, from := range c.EnvFrom {
			by := "envFrom of " + label(ref)
			if m := from.ConfigMapRef; m != nil {
				add(m.Optional, Ref{Kind: "ConfigMap", Name: m.Name, By: by})
			}
			if s := from.SecretRef; s != nil {
				add(s.Optional, Ref{Kind: "Secret", Name: s.Name, By: by})
			}
		}
		for _, e := range c.Env {
			by := "env " + e.Name + " of " + label(ref)
			if e.ValueFrom == nil {
				continue
			}
			if m := e.ValueFrom.ConfigMapKeyRef; m != nil {
				add(m.Optional, Ref{Kind: "ConfigMap", Name: m.Name, Key: m.Key, By: by})
			}
			if s := e.ValueFrom.SecretKeyRef; s != nil {
				add(s.Optional, Ref{Kind: "Secret", Name: s.Name, Key: s.Key, By: by})
			}
		}
	}
	for i := range pod.Spec.Volumes {
		volumeReferences(pod, &pod.Spec.Volumes[i], add)
	}
	return all
}

func volumeReferences(pod *corev1.Pod, v *corev1.Volume, add func(*bool, Ref)) {
	by := "volume " + v.Name
	keyed := func(kind, name string, items []corev1.KeyToPath, optional *bool) {
		if len(items) == 0 {
			add(optional, Ref{Kind: kind, Name: name, By: by})
		}
		for _, item := range items {
			add(optional, Ref{Kind: kind, Name: name, Key: item.Key, By: by})
		}
	}
	if m := v.ConfigMap; m != nil {
		keyed("ConfigMap", m.Name, m.Items, m.Optional)
	}
	if s := v.Secret; s != nil {
		keyed("Secret", s.SecretName, s.Items, s.Optional)
	}
	if name := podspec.ClaimName(pod, v); name != "" {
		add(nil, Ref{Kind: "PersistentVolumeClaim", Name: name, By: by})
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if m := source.ConfigMap; m != nil {
			keyed("ConfigMap", m.Name, m.Items, m.Optional)
		}
		if s := source.Secret; s != nil {
			keyed("Secret", s.Name, s.Items, s.Optional)
		}
	}
}

// PullSecrets are the Secrets with logins for registries that the pod names.
func PullSecrets(pod *corev1.Pod) (names []string) {
	for _, s := range pod.Spec.ImagePullSecrets {
		if s.Name != "" && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// WantedLog is a log of which the end is to be fetched.
type WantedLog struct {
	Container string
	Previous  bool
}

// Logs are the logs that may show what is wrong: of a container that has crashed that of the run which did, of one that
// runs and is not ready the present one.
func Logs(pod *corev1.Pod) (all []WantedLog) {
	for kind, s := range podspec.OwnStatuses(&pod.Status) {
		last := s.LastTerminationState.Terminated
		switch {
		case s.State.Terminated != nil:
			if s.State.Terminated.ExitCode != 0 || kind == podspec.Main && pod.Status.Phase == corev1.PodRunning {
				all = append(all, WantedLog{s.Name, false})
			}
		case s.State.Waiting != nil && last != nil && last.Reason != "StartError":
			all = append(all, WantedLog{s.Name, true})
		case s.State.Running != nil && last != nil && s.RestartCount > 0:
			all = append(all, WantedLog{s.Name, true})
		case s.State.Running != nil && (!s.Ready || s.Started != nil && !*s.Started) && kind != podspec.Init:
			all = append(all, WantedLog{s.Name, false})
		}
	}
	return all
}

// Nodes returns which nodes matter: all for a pod that has none, else its own.
func Nodes(pod *corev1.Pod) (all bool, own string) {
	if pod.Spec.NodeName == "" {
		return !ended(pod), ""
	}
	return false, pod.Spec.NodeName
}

// Servants reports whether it matters which Services there are: whether the pod says that it could not reach somebody.
func Servants(f Facts) bool {
	if len(vain(f)) > 0 {
		return true
	}
	return slices.ContainsFunc(f.Logs, func(l Log) bool {
		said := ReadLog(l.Lines)
		return saidOf(said, Refused) || saidOf(said, NoName) || saidOf(said, TimedOut)
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// label is a container as people call it: init container fetch.
func label(ref podspec.ContainerRef) string { return labelOf(ref.Kind, ref.Container.Name) }

func labelOf(kind podspec.Kind, name string) string {
	switch kind {
	case podspec.Init:
		return "init container " + name
	case podspec.Sidecar:
		return "sidecar " + name
	}
	return "container " + name
}

// containerOf is the container that an event is about: spec.containers{web}.
func containerOf(e *corev1.Event) string {
	_, name, ok := strings.Cut(e.InvolvedObject.FieldPath, "{")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, "}")
}

// Reached reports whether a log says that a Service was not reached.
func Reached(f Facts, s Service) bool {
	for _, l := range f.Logs {
		for _, said := range ReadLog(l.Lines) {
			if said.Topic != Refused && said.Topic != TimedOut {
				continue
			}
			if slices.Contains(s.IPs, said.Object) || said.Object == "" && mentions(said.Line, s.Name) {
				return true
			}
		}
	}
	return false
}

// Worst is the one of some pods that is worst off: failed or not ready, with the most restarts, and of equal ones the
// newest; -1 if there are none.
func Worst(pods []corev1.Pod) int {
	worst := -1
	score := func(p *corev1.Pod) (int, int32) {
		n, restarts := 0, int32(0)
		for _, s := range podspec.OwnStatuses(&p.Status) {
			restarts += s.RestartCount
		}
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded:
		case podspec.IsTrue(&p.Status, corev1.PodReady):
			n = 1
		default:
			n = 2
		}
		return n, restarts
	}
	for i := range pods {
		if worst < 0 {
			worst = i
			continue
		}
		n, restarts := score(&pods[i])
		m, most := score(&pods[worst])
		if n > m || n == m && (restarts > most || restarts == most &&
			pods[worst].CreationTimestamp.Before(&pods[i].CreationTimestamp)) {
			worst = i
		}
	}
	return worst
}
