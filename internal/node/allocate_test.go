// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// desk is an admission on a folder, on a node of four CPUs, with what it said.
type desk struct {
	*admission
	t       *testing.T
	putOff  []string
	changed []types.UID
}

func newDesk(t *testing.T, folder string) *desk {
	d := &desk{t: t, admission: newAdmission(func(context.Context) (*corev1.Node, []corev1.Pod, error) {
		return nil, nil, errors.New("unreachable")
	})}
	d.held.folder, d.held.log = folder, slog.New(slog.DiscardHandler)
	d.held.putOff = func(p *corev1.Pod, r plan.Resize) { d.putOff = append(d.putOff, p.Name+" "+r.Reason) }
	d.held.changed = func(uid types.UID) { d.changed = append(d.changed, uid) }
	d.setNode(&corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}}})
	return d
}

func asking(name, cpu string, priority int32) *corev1.Pod {
	now := metav1.Now()
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}},
		Status: corev1.PodStatus{StartTime: &now}}
}

// come has the admission take in a pod whose folder is there.
func (d *desk) come(pods ...*corev1.Pod) {
	d.t.Helper()
	for _, p := range pods {
		if err := os.MkdirAll(filepath.Join(d.held.folder, p.Name), 0o700); err != nil {
			d.t.Fatal(err)
		}
		d.count(p)
		if err := d.keepAllocated(p); err != nil {
			d.t.Fatal(err)
		}
	}
}

// ask makes a pod ask for another amount.
func (d *desk) ask(p *corev1.Pod, cpu string) *corev1.Pod {
	now := p.DeepCopy()
	now.Generation++
	now.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu)
	d.count(now)
	d.resized(now)
	return now
}

func (d *desk) want(p *corev1.Pod, cpu, reason string) {
	d.t.Helper()
	has, r := d.allocatedTo(p)
	got := ""
	if r != nil {
		got = r.Reason
	}
	if c := has.Spec.Containers[0].Resources.Requests.Cpu().String(); c != cpu || got != reason {
		d.t.Errorf("%s has %s and is told %q, want %s and %q", p.Name, c, got, cpu, reason)
	}
}

// PL-14: what fits is set aside at once, what does not waits for room and is told once, what the node does not have at all is
// infeasible, and who asks for what it has again asks for nothing.
func TestAllocate(t *testing.T) {
	d := newDesk(t, t.TempDir())
	big, p := asking("big", "2", 0), asking("p", "1", 0)
	d.come(big, p)
	p = d.ask(p, "2")
	d.want(p, "2", "")
	p = d.ask(p, "3")
	d.want(p, "2", "Deferred")
	_, r := d.allocatedTo(p)
	if want := "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"; r.Message != want {
		t.Errorf("told: %s", r.Message)
	}
	d.grantAll()
	p = d.ask(p, "5")
	d.want(p, "2", "Infeasible")
	p = d.ask(p, "2")
	d.want(p, "2", "")
	p = d.ask(p, "4")
	big = d.ask(big, "1")
	d.want(p, "2", "Deferred")
	d.forget(big.UID)
	d.want(p, "4", "")
	if want := []string{"p Deferred", "p Infeasible", "p Deferred"}; !slices.Equal(d.putOff, want) {
		t.Errorf("told %v, want %v", d.putOff, want)
	}
	if !slices.Contains(d.changed, "p") {
		t.Error("nobody was told that there is more now")
	}
}

// PL-14: those who ask for less go first, then by priority, then by how long they have waited.
func TestAllocateInTurn(t *testing.T) {
	d := newDesk(t, t.TempDir())
	big, low, high := asking("big", "3", 0), asking("low", "250m", 1), asking("high", "250m", 2)
	d.come(big, low, high)
	low, high = d.ask(low, "3"), d.ask(high, "3")
	d.want(low, "250m", "Deferred")
	d.want(high, "250m", "Deferred")
	done := big.DeepCopy()
	done.Status.Phase = corev1.PodSucceeded
	d.count(done)
	d.want(high, "3", "")
	d.want(low, "250m", "Deferred")
	high = d.ask(high, "1")
	d.want(high, "1", "")
	d.want(low, "3", "")
}

// PL-14: an agent that starts again knows what was set aside, whatever the pods ask for by now, and tells nothing twice.
func TestAllocateAgain(t *testing.T) {
	folder := t.TempDir()
	d := newDesk(t, folder)
	big, p := asking("big", "2", 0), asking("p", "1", 0)
	d.come(big, p)
	p = d.ask(d.ask(p, "2"), "3")
	d.want(p, "2", "Deferred")
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: "Deferred", ObservedGeneration: p.Generation}}
	d = newDesk(t, folder)
	d.open(t.Context(), []*corev1.Pod{p, big})
	d.want(p, "2", "Deferred")
	if len(d.putOff) > 0 {
		t.Errorf("told again: %v", d.putOff)
	}
	d.forget(big.UID)
	d.want(p, "3", "")
}
