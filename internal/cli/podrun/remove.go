// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cli/progress"
)

// remove deletes what the run created, pods first, and waits until they are gone. An interrupt meanwhile kills them.
func (r *Runner) remove(made *created) error {
	// Not the run's context: that one has ended when we clean up.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.showSpared(made)
	if err := r.deleteAll(ctx, made); err != nil {
		return err
	}
	gone := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { gone <- r.waitGone(ctx, made) })
	for waiting := true; waiting; {
		select {
		case err := <-gone:
			if err != nil {
				return err
			}
			waiting = false
		case s := <-r.Interrupts:
			if err := r.hurry(ctx, made, s); err != nil {
				return err
			}
		}
	}
	return r.removeOthers(ctx, made)
}

// hurry kills the pods if the signal asks for haste.
func (r *Runner) hurry(ctx context.Context, made *created, s os.Signal) error {
	if !hurries(s) {
		return nil
	}
	r.Screen.Say("killing")
	pods := made.pods
	for _, w := range made.workloads {
		if w.ours {
			pods = append(slices.Clip(pods), w.all()...)
		}
	}
	return r.deletePods(ctx, pods, ptr.To[int64](0))
}

// deleteAll begins to delete what the run attends to and has made.
func (r *Runner) deleteAll(ctx context.Context, made *created) error {
	return errors.Join(r.deletePods(ctx, made.pods, nil), r.deleteWorkloads(ctx, made.workloads))
}

func (r *Runner) deletePods(ctx context.Context, pods []*corev1.Pod, grace *int64) error {
	var errs []error
	for _, p := range pods {
		err := r.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
			GracePeriodSeconds: grace,
			Preconditions:      metav1.NewUIDPreconditions(string(p.UID)),
		})
		// conflict: another pod of that name
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Runner) waitGone(ctx context.Context, made *created) error {
	for _, p := range made.pods {
		err := watchPod(ctx, r.Client, p, "", func(now *corev1.Pod) (bool, error) { return now == nil, nil })
		if err != nil {
			return err
		}
		r.Screen.Show(p.Name, progress.Line{Text: "is gone"})
	}
	for _, w := range made.workloads {
		if !w.ours {
			continue
		}
		err := watched{name: w.GetName(), uid: w.GetUID(), verbs: w.verbs}.follow(ctx, "",
			func(now runtime.Object) (bool, error) { return now == nil, nil })
		if err != nil {
			return err
		}
		r.Screen.Show(w.String(), progress.Line{Text: "is gone"})
	}
	return nil
}

// leave adds to why a run gave up what it leaves, and how to look at it and to remove it.
func (r *Runner) leave(why error, made *created, pods []*corev1.Pod) error {
	lines := []string{why.Error()}
	for _, p := range pods {
		if g, ok := errors.AsType[*goneError](why); p == nil || ok && g.uid == p.UID {
			continue
		}
		lines = append(lines, advice(p))
	}
	for _, w := range made.workloads {
		if g, ok := errors.AsType[*goneError](why); !w.ours || ok && g.uid == w.GetUID() {
			continue
		}
		lines = append(lines, leftWorkload(w))
	}
	if r.ServerEnds && len(lines) > 1 {
		lines = append(lines,
			"the server ends with this run, and the pods would keep running without one: start a server first ("+
				r.Start+")")
	}
	return errors.New(strings.Join(lines, "\n"))
}

// advice says what can be done with a pod that is left.
func advice(p *corev1.Pod) string {
	in := namespaceFlag(p.Namespace)
	return fmt.Sprintf("pod %s/%s was not deleted: debug it (wherry debug%s %s), or delete it (wherry kubectl delete pod%s %s)",
		p.Namespace, p.Name, in, p.Name, in, p.Name)
}

// namespaceFlag is how a command line names a namespace.
func namespaceFlag(ns string) string {
	if ns == metav1.NamespaceDefault {
		return ""
	}
	return " -n " + ns
}
