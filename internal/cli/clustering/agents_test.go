// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// DA-10: where no runtime is found, installing ends with the agent's words for it, and they are in the state.
func TestInstallWhereAgentsEnd(t *testing.T) {
	c := newCluster(t)
	c.node(t, "there", corev1.ConditionTrue)
	rolls := c.rolls(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	_, errs, err := call(t, func(line string) {
		if line == "agents: 1 of 2 ready" { // they are waited for
			go func() {
				defer close(ended)
				c.crash(ctx, t, "there")
			}()
			return
		}
		rolls(line)
	}, "install", "--kubeconfig", c.admin)
	cancel()
	<-ended
	if err == nil || !strings.Contains(err.Error(), "not all of it is running: the agent of node there keeps exiting: there is no socket") ||
		!strings.Contains(errs, "no agent runs on node there: its program has ended: there is no socket") {
		t.Errorf("%v\n%s", err, errs)
	}
}

// crash plays an agent that is started again and again.
func (c *cluster) crash(ctx context.Context, t *testing.T, node string) {
	d, err := c.AppsV1().DaemonSets("wherry-debug").Get(ctx, agentName, metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
	p.Spec.NodeName = node
	pods := c.CoreV1().Pods("wherry-debug")
	if p, err = pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		t.Error(err)
		return
	}
	for n := int32(0); ctx.Err() == nil; n++ {
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", RestartCount: n,
			LastTerminationState: endedWith("error: there is no socket")}}}
		now, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		p = now
	}
}

// An agent of an earlier installation, and one that has not ended again since it is waited for, say nothing of this one.
func TestCrashes(t *testing.T) {
	pod := func(restarts int32, change func(*corev1.Pod)) watch.Event {
		p := agentOn("n", false, change)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", RestartCount: restarts, LastTerminationState: endedWith("error: x")}}
		o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p)
		if err != nil {
			t.Fatal(err)
		}
		return watch.Event{Type: watch.Modified, Object: &unstructured.Unstructured{Object: o}}
	}
	older := func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"--cri-socket=/old"} }
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	for name, test := range map[string]struct {
		events []watch.Event
		fails  bool
	}{
		"twice":               {[]watch.Event{pod(0, nil), pod(1, nil), pod(2, nil)}, true},
		"once":                {[]watch.Event{pod(0, nil), pod(1, nil)}, false},
		"before":              {[]watch.Event{pod(7, nil), pod(7, nil)}, false},
		"before and again":    {[]watch.Event{pod(7, nil), pod(8, nil)}, true},
		"an older one":        {[]watch.Event{pod(1, older), pod(2, older), pod(3, older)}, false},
		"one that runs again": {[]watch.Event{pod(1, nil), pod(2, ready)}, false},
	} {
		c := &crashes{agents: &corev1.PodSpec{Containers: []corev1.Container{{Name: "agent"}}}, before: map[types.UID]int32{}}
		var err error
		for _, e := range test.events {
			err = errors.Join(err, c.judge(e))
		}
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
