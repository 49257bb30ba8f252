// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api/podstore"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// DC-05: who added which container is known of each of them, whoever entered the pod in whatever way since; words that
// look like the condition's own do not mislead; and what was added under this server is on its way.
func TestMissingRecords(t *testing.T) {
	started := time.Date(2026, 11, 20, 12, 0, 0, 500, time.UTC)
	pod := func(name string, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		change(&p)
		return p
	}
	add := func(p *corev1.Pod, name, user string, at time.Time) {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name}})
		if err := MarkAdded(p, user, name, at); err != nil {
			t.Fatal(err)
		}
	}
	earlier := started.Add(-time.Hour)
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want []string
	}{
		"two by two users": {pod("p", func(p *corev1.Pod) {
			add(p, "one", "jane", earlier)
			add(p, "two", "joe", earlier)
		}), []string{"one by jane", "two by joe"}},
		"somebody ran a command since": {pod("p", func(p *corev1.Pod) {
			add(p, "one", "jane", earlier)
			execTaint("joe", "main").put(&p.Status, 1, earlier)
		}), []string{"one by jane"}},
		"somebody runs a command now": {pod("p", func(p *corev1.Pod) {
			add(p, "one", "jane", earlier)
			execTaint("joe", "main").put(&p.Status, 1, started.Add(time.Second))
		}), []string{"one by jane"}},
		"a user whose name is words": {pod("p", func(p *corev1.Pod) {
			add(p, "one", "jane by joe at noon", earlier)
		}), []string{"one by jane by joe at noon"}},
		"under this server": {pod("p", func(p *corev1.Pod) {
			add(p, "one", "jane", earlier)
			add(p, "two", "joe", started)
		}), []string{"one by jane"}},
		"by an earlier version": {earlierVersions(t), []string{"first by unknown", "debug by unknown"}},
		"by an earlier version, and by this one": {func() corev1.Pod {
			p := earlierVersions(t)
			add(&p, "late", "joe", earlier)
			return p
		}(), []string{"first by unknown", "debug by unknown", "late by joe"}},
	} {
		var got []string
		for _, r := range missingRecords([]corev1.Pod{c.pod}, nil, started) {
			got = append(got, r.container.Name+" by "+r.user)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	old := earlierVersions(t)
	kept := []debugrun.DebugRun{{Spec: debugrun.DebugRunSpec{Pod: debugrun.PodReference{UID: old.UID},
		Container: "debug", Run: 1}}}
	if got := missingRecords([]corev1.Pod{old}, kept, started); len(got) != 1 || got[0].container.Name != "first" {
		t.Errorf("with the second on record: %+v", got)
	}
}

// IX-08: the condition as an earlier version wrote it is kept as it is until somebody enters the pod, and is then
// written anew.
func TestTaintOfAnEarlierVersion(t *testing.T) {
	p := earlierVersions(t)
	c, at := podstore.TaintOf(&p), time.Date(2026, 11, 20, 12, 0, 1, 0, time.UTC)
	was := *c
	again := taint{debugrun.TaintedByDebugContainer, "debug container debug by jane"}
	if again.fresh(c, at) {
		t.Error("nobody knows when it was written, but it is said to be fresh")
	}
	if again.put(&p.Status, p.Generation, at); !again.fresh(c, at) || c.LastTransitionTime != was.LastTransitionTime ||
		!c.LastProbeTime.Time.Equal(at) {
		t.Errorf("written anew: %+v", c)
	}
	if runs := podspec.DebugRunsOf(&p); runs["debug"].Run != 1 {
		t.Errorf("runs %+v", runs)
	}
}

// earlierVersions is a pod that was debugged under a version that named the user in the condition's message only.
func earlierVersions(t *testing.T) (p corev1.Pod) {
	t.Helper()
	text, err := os.ReadFile("testdata/debugged-by-an-earlier-version.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}
