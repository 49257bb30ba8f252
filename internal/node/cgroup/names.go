// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// name is a cgroup as the list of its components from the root, before any naming scheme.
type name []string

// layout turns names into paths, by one of the two schemes.
type layout struct {
	root    name // above kubepods; empty for the server of the default data folder
	systemd bool
}

const (
	kubepods   = "kubepods"
	burstable  = "burstable"
	bestEffort = "besteffort"
	podPrefix  = "pod"
	slice      = ".slice"
)

// top is the cgroup of all pods.
func (l layout) top() name { return append(append(name{}, l.root...), kubepods) }

// class is the cgroup of a QoS class; guaranteed pods have none of their own.
func (l layout) class(qos corev1.PodQOSClass) name {
	switch qos {
	case corev1.PodQOSBurstable:
		return append(l.top(), burstable)
	case corev1.PodQOSBestEffort:
		return append(l.top(), bestEffort)
	default:
		return l.top()
	}
}

func (l layout) classes() []name {
	return []name{l.top(), l.class(corev1.PodQOSBurstable), l.class(corev1.PodQOSBestEffort)}
}

func (l layout) pod(qos corev1.PodQOSClass, uid types.UID) name {
	return append(l.class(qos), podPrefix+string(uid))
}

// unit is the systemd unit of n. A dash means a level to systemd, hence underscores within a component.
func unit(n name) string {
	parts := make([]string, len(n))
	for i, c := range n {
		parts[i] = strings.ReplaceAll(c, "-", "_")
	}
	return strings.Join(parts, "-") + slice
}

// path is where n lies below the mount of a hierarchy; it begins with a slash.
func (l layout) path(n name) string {
	if !l.systemd {
		return "/" + path.Join(n...)
	}
	out := "/"
	for i := range n {
		out = path.Join(out, unit(n[:i+1]))
	}
	return out
}

// uid reads a pod's UID from the folder name of its cgroup below class.
func (l layout) uid(class name, folder string) (types.UID, bool) {
	if l.systemd {
		rest, ok := strings.CutPrefix(folder, strings.TrimSuffix(unit(class), slice)+"-"+podPrefix)
		rest, isSlice := strings.CutSuffix(rest, slice)
		return types.UID(strings.ReplaceAll(rest, "_", "-")),
			ok && isSlice && rest != "" && !strings.Contains(rest, "-")
	}
	rest, ok := strings.CutPrefix(folder, podPrefix)
	return types.UID(rest), ok && rest != ""
}

// parseRoot reads Config.Root, e.g. "wherry-1a2b3c4d".
func parseRoot(s string) (name, error) {
	var out name
	for _, c := range strings.Split(strings.Trim(s, "/"), "/") {
		switch {
		case c == "":
		case c == "." || c == ".." || strings.ContainsAny(c, " \t\n:"):
			return nil, fmt.Errorf("cgroup root %q: %q cannot be the name of a cgroup", s, c)
		default:
			out = append(out, c)
		}
	}
	return out, nil
}

// checkUID refuses what would lead out of the pods' cgroups.
func checkUID(uid types.UID) error {
	if uid == "" || strings.ContainsAny(string(uid), "/\x00") || len(uid) > 200 {
		return fmt.Errorf("pod UID %q cannot be part of a cgroup's name", uid)
	}
	return nil
}
