// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/node/cpus"
	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/node/memory"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
)

// placer is an agent that knows who has what on a machine of two NUMA nodes, as a process after another one on the same
// folder: of four CPUs the first is reserved, and each node has 8 bytes for pods.
func placer(t *testing.T, dir string, change func(*Config)) *Agent {
	t.Helper()
	c := Config{DataDir: dir, KubeletFolder: dir,
		CPUs: CPUManager{Static: true, Reserved: cpuset.New(0),
			Machine: pin.Machine{{ID: 0}, {ID: 1, Core: 1}, {ID: 2, Core: 2, Node: 1}, {ID: 3, Core: 3, Node: 1}}},
		Placing: Placing{Rule: numa.Rule{Policy: numa.SingleNUMANode, Nodes: 3},
			Memory: bank.Machine{0: {corev1.ResourceMemory: 8}, 1: {corev1.ResourceMemory: 8}}}}
	if change != nil {
		change(&c)
	}
	a := &Agent{cfg: c, log: slog.New(slog.DiscardHandler)}
	if err := a.newPlaces(); err != nil {
		t.Fatal(err)
	}
	return a
}

func guaranteed(name, cpu, memory string) *corev1.Pod {
	p := bound(name, cpu, 1, false)
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	return p
}

// where says where a pod's container is.
func where(a *Agent, p *corev1.Pod) string {
	return a.cpus.Of(p.UID)["c"].String() + " on " + a.memory.Nodes(p.UID, "c")
}

// PL-33: pods get their places when they are let in, and have them after the agent was killed; who has none is refused
// in the kubelet's words, and none is lost by that.
func TestPlacedWhenLetIn(t *testing.T) {
	dir := t.TempDir()
	a := placer(t, dir, nil)
	one, two, three := guaranteed("one", "1", "6"), guaranteed("two", "1", "6"), guaranteed("three", "1", "6")
	loose := bound("loose", "500m", 1, false)
	refused := func(a *Agent) {
		t.Helper()
		if m := a.unfit(three); m == nil || m.Reason != "TopologyAffinityError" ||
			!strings.HasPrefix(m.Message, "Resources cannot be allocated with Topology locality: container c: ") {
			t.Errorf("three: %+v", m)
		}
	}
	for _, p := range []*corev1.Pod{one, two, loose, one} {
		if m := a.unfit(p); m != nil {
			t.Fatalf("%s: %+v", p.Name, m)
		}
	}
	refused(a)
	for range 2 {
		if w1, w2, w3 := where(a, one), where(a, two), where(a, three); w1 != "1 on 0" || w2 != "2 on 1" ||
			w3 != " on " {
			t.Errorf("one has %s, two %s, three %s", w1, w2, w3)
		}
		a = placer(t, dir, nil)
		if m := a.unfit(one); m != nil { // not taken yet when the agent was killed
			t.Errorf("one again: %+v", m)
		}
		refused(a)
	}
	running := []corev1.ContainerStatus{{Name: "c",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	one.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: running}
	a.vacate(one)
	refused(a) // one says that it has ended, and still runs
	one.Status.ContainerStatuses = nil
	a.vacate(one)
	if m := a.unfit(three); m != nil || where(a, three) != "1 on 0" {
		t.Errorf("three, when one has ended: %+v, %s", m, where(a, three))
	}
	asks := guaranteed("two", "1", "5")
	if got := a.fixed(two,
		asks); got != "Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy" {
		t.Errorf("another amount of memory: %q", got)
	}
	if got := a.fixed(two, two); got != "" {
		t.Errorf("the same: %q", got)
	}
}

// PL-33: an agent that is killed while it writes down what a pod has leaves a part that is taken for nothing, at each
// moment; what has been given back is not held again after a kill.
func TestPlacedInPart(t *testing.T) {
	dir := t.TempDir()
	pod, other := guaranteed("pod", "1", "6"), guaranteed("other", "1", "6")
	if m := placer(t, dir, nil).unfit(pod); m != nil {
		t.Fatal(m)
	}
	folder := filepath.Join(podsFolder(dir), "pod")
	whole := map[string][]byte{}
	for _, name := range []string{memory.FileName, cpus.FileName} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		whole[name] = text
	}
	for _, written := range [][]string{{}, {memory.FileName}, {memory.FileName, cpus.FileName}, {cpus.FileName}} {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		err := os.MkdirAll(folder, 0o750)
		for _, name := range written {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), whole[name], 0o600))
		}
		if err = errors.Join(err, os.WriteFile(filepath.Join(folder, halfPlaced), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		a := placer(t, dir, nil)
		if got := where(a, pod); got != " on " {
			t.Errorf("%v was written: it has %s", written, got)
		}
		if m := a.unfit(other); m != nil || where(a, other) != "1 on 0" {
			t.Errorf("%v was written: another one has %s, %+v", written, where(a, other), m)
		}
		if m := a.unfit(pod); m != nil || where(a, pod) != "2 on 1" {
			t.Errorf("%v was written: placed anew it has %s, %+v", written, where(a, pod), m)
		}
		if a = placer(t, dir, nil); where(a, pod) != "2 on 1" {
			t.Errorf("%v was written: after another kill it has %s", written, where(a, pod))
		}
		a.release(other.UID)
	}
	a := placer(t, dir, nil)
	pod.Status.Phase = corev1.PodSucceeded
	a.vacate(pod)
	if a = placer(t, dir, nil); where(a, pod) != " on " {
		t.Errorf("given back, and after a kill it has %s", where(a, pod))
	}
}

// PL-33: without a topology manager memory is given when a pod is let in, and CPUs when it starts; without either
// nothing is; and a pod that is let in all the same has a place if there is one.
func TestPlacedByMemoryAlone(t *testing.T) {
	none := func(c *Config) { c.Placing.Rule.Policy = numa.None }
	a := placer(t, t.TempDir(), none)
	p, large := guaranteed("p", "1", "6"), guaranteed("large", "1", "12")
	if m := a.unfit(p); m != nil || where(a, p) != " on 0" {
		t.Errorf("%+v, %s", m, where(a, p))
	}
	if m := a.unfit(large); m == nil || m.Reason != "UnexpectedAdmissionError" {
		t.Errorf("large: %+v", m)
	}
	a.placeLate(large)
	if where(a, large) != " on " {
		t.Errorf("large has %s", where(a, large))
	}
	a.memory.Release("p")
	a.placeLate(large)
	if where(a, large) != " on 0-1" {
		t.Errorf("large has %s", where(a, large))
	}
	a = placer(t, t.TempDir(), func(c *Config) { none(c); c.Placing.Memory = nil })
	if m := a.unfit(p); m != nil || where(a, p) != " on " {
		t.Errorf("without memory manager: %+v, %s", m, where(a, p))
	}
}
