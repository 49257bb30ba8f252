// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// DC-12: debug containers are listed for people and for programs.
func TestDebugList(t *testing.T) {
	end := &corev1.ContainerStateTerminated{ExitCode: 5, FinishedAt: metav1.Unix(1e9, 0)}
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "tools"}}}},
		Status: corev1.PodStatus{EphemeralContainerStatuses: []corev1.ContainerStatus{
			{Name: "debug", State: corev1.ContainerState{Terminated: end}}}}}
	list := debugContainersOf([]corev1.Pod{p}, end.FinishedAt.Add(90*time.Second))
	var out, errs bytes.Buffer
	terminal := cmdline.Terminal{Out: &out, Err: &errs}
	if err := printDebugContainers(terminal, list.Items, true); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(strings.Split(out.String(), "\n")[1]); strings.Join(got, " ") != "default web debug tools - Exited (5) 90s" {
		t.Errorf("%q", got)
	}
	out.Reset()
	if err := cmdline.PrintAs(terminal, "json", list); err != nil {
		t.Fatal(err)
	}
	var read debugContainers
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || len(read.Items) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	if c := read.Items[0]; c.Pod != "web" || c.Name != "debug" || c.Status != "Exited" || *c.ExitCode != 5 || !c.FinishedAt.Equal(&end.FinishedAt) {
		t.Errorf("%+v", c)
	}
	out.Reset()
	if err := cmdline.PrintAs(terminal, "json", debugContainersOf(nil, time.Now())); err != nil || strings.TrimSpace(out.String()) != "{\n  \"items\": []\n}" {
		t.Errorf("of none: %q, %v", out.String(), err)
	}
	if err := cmdline.PrintAs(terminal, "xml", list); err == nil {
		t.Error("-o xml is taken")
	}
}

// The history shows what was run, and what is for programs says what it is.
func TestDebugHistory(t *testing.T) {
	var out bytes.Buffer
	list := &debugrun.DebugRunList{Items: []debugrun.DebugRun{{Spec: debugrun.DebugRunSpec{User: "jane", Command: []string{"sh", "-c", "ls\x1b[2J"}}}}}
	if err := printDebugRuns(cmdline.Terminal{Out: &out}, list, ""); err != nil || !strings.Contains(out.String(), "sh -c ls [2J") {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := printDebugRuns(cmdline.Terminal{Out: &out}, list, "yaml"); err != nil || !strings.Contains(out.String(), "kind: DebugRun\n") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
