// SPDX-License-Identifier: Apache-2.0

package features

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
)

// The gates. The names and meanings of the first three are Kubernetes'; the others are of what Kubernetes has not. All
// can be switched off, though Kubernetes has locked some of them: a pod with a field that its node does not honour is
// worse than one that is turned away.
const (
	// SidecarContainers is restartPolicy on init containers (SC-18).
	SidecarContainers featuregate.Feature = "SidecarContainers"
	// PodShareProcessNamespace is spec.shareProcessNamespace (PID-12).
	PodShareProcessNamespace featuregate.Feature = "PodShareProcessNamespace"
	// EphemeralContainers is spec.ephemeralContainers and its subresource (EC-24).
	EphemeralContainers featuregate.Feature = "EphemeralContainers"
	// DebugSessions are debug containers made by exec (DC-03): wherry debug.
	DebugSessions featuregate.Feature = "DebugSessions"
	// HoldOnFailure is the annotation wherry.dev/hold-on-failure (IX-09).
	HoldOnFailure featuregate.Feature = "HoldOnFailure"
	// ImageExec is exec with an image (IX-01): wherry exec -m.
	ImageExec featuregate.Feature = "ImageExec"
)

// gate is one row of the table of gates.
type gate struct {
	name featuregate.Feature
	spec featuregate.FeatureSpec
	what string // for --help
}

func table() []gate {
	on := featuregate.FeatureSpec{Default: true, PreRelease: featuregate.GA}
	return []gate{
		{DebugSessions, on, "debug containers made by exec (wherry debug)"},
		{EphemeralContainers, on, "ephemeral containers (kubectl debug)"},
		{HoldOnFailure, on, "the annotation wherry.dev/hold-on-failure"},
		{ImageExec, on, "exec with an image (wherry exec -m)"},
		{PodShareProcessNamespace, on, "shareProcessNamespace of pods"},
		{SidecarContainers, on, "init containers with restartPolicy: Always"},
	}
}

// Gates says what is on. It does not change once made, and is safe for concurrent use.
type Gates struct {
	set featuregate.MutableVersionedFeatureGate
}

// New makes the gates with some of them set otherwise than by default. The names AllAlpha and AllBeta stand for groups.
// An unknown name is an error that lists the known ones.
func New(set map[string]bool) (*Gates, error) {
	g := featuregate.NewFeatureGate()
	specs := map[featuregate.Feature]featuregate.FeatureSpec{}
	for _, row := range table() {
		specs[row.name] = row.spec
	}
	if err := g.Add(specs); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !Known(name) {
			return nil, fmt.Errorf("unknown feature gate %s; choose from %s", name, strings.Join(Names(), ", "))
		}
	}
	// The library warns of every GA gate that is set; these are meant to be.
	return &Gates{g}, g.SetFromMapWithLogger(klog.Logger{}, set)
}

// Enabled reports whether a feature is on.
func (g *Gates) Enabled(name featuregate.Feature) bool {
	if g != nil {
		return g.set.Enabled(name)
	}
	for _, row := range table() {
		if row.name == name {
			return row.spec.Default
		}
	}
	return false
}

// Publish shows the gates as kubernetes_feature_enabled in the metrics. That metric is the library's and one for the
// whole process.
func (g *Gates) Publish() {
	if g != nil {
		g.set.AddMetrics()
	}
}

// All returns for every gate whether it is on.
func (g *Gates) All() map[string]bool {
	out := map[string]bool{}
	for _, row := range table() {
		out[string(row.name)] = g.Enabled(row.name)
	}
	return out
}

// Known reports whether a name is that of a gate or a group of gates here.
func Known(name string) bool {
	return Group(name) || slices.Contains(Names(), name)
}

// Group reports whether a name stands for a group of gates; every set of gates has the same groups.
func Group(name string) bool { return name == "AllAlpha" || name == "AllBeta" }

// Names lists the gates, sorted.
func Names() (out []string) {
	for _, row := range table() {
		out = append(out, string(row.name))
	}
	return out
}

// Help lists the gates for a person, one a line.
func Help() string {
	var lines []string
	for _, row := range table() {
		lines = append(lines, fmt.Sprintf("%s=true|false (default %t): %s", row.name, row.spec.Default, row.what))
	}
	return strings.Join(lines, "\n")
}
