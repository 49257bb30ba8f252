// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
)

// awaitAgents waits until agents run wherever they can, or one ends again and again.
func (c *connection) awaitAgents(ctx context.Context, t cmdline.Terminal, namespace string) error {
	agents, err := c.AppsV1().DaemonSets(namespace).Get(ctx, agentName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	waiting, allRun := context.WithCancel(ctx)
	work.Go(func() error {
		defer allRun()
		at := c.objects.Resource(appsv1.SchemeGroupVersion.WithResource("daemonsets")).Namespace(namespace)
		return until(ctx, t, at, agentName, c.judgeAgents(ctx))
	})
	work.Go(func() error {
		at := c.objects.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
		only := selected(at, func(o *metav1.ListOptions) { o.LabelSelector = nameLabel + "=" + agentName })
		seen := &crashes{agents: &agents.Spec.Template.Spec, before: map[types.UID]int32{}}
		_, err := watchtools.UntilWithSync(waiting, only, &unstructured.Unstructured{}, nil,
			func(e watch.Event) (bool, error) { return false, seen.judge(e) })
		if waiting.Err() != nil {
			return nil // what there is to say, the other has printed
		}
		return err
	})
	return work.Wait()
}

// fruitless is how often an agent's program may be started again before it is not waited for any more.
const fruitless = 2

// crashes watches agents' programs end.
type crashes struct {
	agents *corev1.PodSpec // as they are installed now
	before map[types.UID]int32
}

// judge returns an error if an agent's program ends again and again, also while it is watched: what it ended of may be
// mended, and one that waits to be started again does not know yet.
func (c *crashes) judge(e watch.Event) error {
	o, is := e.Object.(*unstructured.Unstructured)
	if !is || e.Type == watch.Deleted {
		return nil
	}
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err != nil {
		return err
	}
	restarts := int32(0)
	for _, s := range p.Status.ContainerStatuses {
		restarts += s.RestartCount
	}
	before, known := c.before[p.UID]
	if !known {
		c.before[p.UID] = restarts
	}
	words := lastWords(&p)
	if words == "" || !known || restarts <= before || restarts < fruitless || podReady(&p) ||
		!sameProgram(&p.Spec, c.agents) {
		return nil
	}
	return fmt.Errorf("the agent of node %s keeps exiting: %s", wanted(&p), words)
}

// sameProgram reports whether two pods run the same: one of an earlier installation says nothing of this one.
func sameProgram(a, b *corev1.PodSpec) bool {
	return slices.EqualFunc(a.Containers, b.Containers, func(a, b corev1.Container) bool {
		return a.Image == b.Image && slices.Equal(a.Args, b.Args)
	})
}

// nodesFor is how long nodes are taken to be as they were: a large cluster has many of them, and many changes.
const nodesFor = 15 * time.Second

// judgeAgents is called by one goroutine.
func (c *connection) judgeAgents(ctx context.Context) judge {
	var nodes []corev1.Node
	var looked time.Time
	return func(o *unstructured.Unstructured) (bool, string, error) {
		var d appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			return false, "", err
		}
		if looked.IsZero() || time.Since(looked) > nodesFor {
			var err error
			if nodes, err = c.listNodes(ctx); err != nil {
				return false, "", err
			}
			looked = time.Now()
		}
		done, say := rolledOut(&d, nodes)
		return done, say, nil
	}
}

// listNodes lists the nodes; none where they may not be listed.
func (c *connection) listNodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
