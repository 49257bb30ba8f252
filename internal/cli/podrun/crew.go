// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/cli/progress"
)

// crew reports the life of a workload and of its pods, which come and go. Its fields are of the goroutine of run.
type crew struct {
	owner *Runner
	of    *workload
	last  runtime.Object // as last seen

	shown   progress.Standing
	over    bool // nothing of the workload itself is waited for any longer
	gone    bool
	why     error // it is no longer followed
	met     map[types.UID]bool
	between map[types.UID]bool // what may stand between it and pods: is it the workload's?
	here    int                // pods that are followed
	code    int                // of the pod that failed last
	failed  time.Time          // when that was
	end     context.CancelCauseFunc
	ends    chan end
	again   chan *corev1.Pod // whose owner could not be read
}

func newCrew(r *Runner, w *workload) *crew {
	return &crew{owner: r, of: w, last: w.obj, met: map[types.UID]bool{}, between: map[types.UID]bool{},
		ends: make(chan end), again: make(chan *corev1.Pod)}
}

// errEnough ends the following of pods when no more of them is to be shown.
var errEnough = errors.New("there is nothing more to wait for")

// run follows the workload until it has ended, is ready (detached) or gone, one of its pods is hopeless, or ctx ends;
// and then its pods to their ends.
func (c *crew) run(ctx context.Context) (last runtime.Object, code int, err error) {
	ctx, c.end = context.WithCancelCause(ctx)
	defer c.end(nil)
	versions, failed := c.watch(ctx)
	pods := c.watchPods(ctx)
	c.see(ctx, c.of.obj)
	for !c.over || c.here > 0 {
		select {
		case now := <-versions:
			c.see(ctx, now)
		case err := <-failed:
			c.giveUp(err)
		case pod := <-pods:
			c.meet(ctx, pod)
		case pod := <-c.again:
			c.meet(ctx, pod)
		case e := <-c.ends:
			c.part(e)
		case <-done(ctx, c.over):
			c.giveUp(context.Cause(ctx))
		}
	}
	return c.last, c.exit(), c.why
}

// done is of no interest once all is over but the pods, which end with ctx too.
func done(ctx context.Context, over bool) <-chan struct{} {
	if over {
		return nil
	}
	return ctx.Done()
}

// giveUp stops to follow, for a reason that is no end of the workload's own.
func (c *crew) giveUp(why error) {
	if c.over {
		return
	}
	c.over = true
	if !errors.Is(why, errEnough) {
		c.why = why
	}
	c.end(why)
}

// exit is the exit code: that of the pod that failed last, if the workload has failed.
func (c *crew) exit() int {
	stuck, isStuck := errors.AsType[*stuckError](c.why)
	switch {
	case isStuck:
		return stuck.trouble.ExitCode
	case c.gone && c.why != nil:
		return 1
	case !c.shown.Failed:
		return 0
	}
	return max(c.code, 1)
}

// see looks at the workload's newest version, nil when it is gone.
func (c *crew) see(ctx context.Context, now runtime.Object) {
	if c.over {
		return
	}
	if now == nil {
		c.over, c.gone = true, true
		c.why = &goneError{c.of.long(), c.of.GetUID()}
		return // its pods go too, or end by themselves
	}
	c.last = now
	s := progress.Workload(now)
	if s.Trouble != "" && s.Trouble != c.shown.Trouble {
		c.owner.Screen.Show(c.of.String(), progress.Line{Text: s.Trouble, Trouble: true})
	}
	if s.Text != "" && s.Text != c.shown.Text {
		c.owner.Screen.Show(c.of.String(), progress.Line{Text: s.Text})
	}
	c.shown = s
	switch {
	case s.Ended:
		c.muster(ctx)
		c.over = true
	case s.Ready && c.owner.Options.Detach:
		c.giveUp(errEnough)
	}
}

// muster follows the pods that have not been heard of yet of a workload that has ended.
func (c *crew) muster(ctx context.Context) {
	list, err := c.owner.Client.CoreV1().Pods(c.of.GetNamespace()).List(ctx,
		metav1.ListOptions{LabelSelector: c.selector()})
	if err != nil {
		return // their messages are missing, no more
	}
	for i := range list.Items {
		c.meet(ctx, &list.Items[i])
	}
}

// askAgain is how long it takes until it is asked again whose a pod is.
const askAgain = time.Second

// meet follows a pod if it is one of the workload's.
func (c *crew) meet(ctx context.Context, pod *corev1.Pod) {
	if c.met[pod.UID] || c.over {
		return
	}
	is, err := c.owns(ctx, pod)
	if err != nil { // the pod is not reported a second time
		time.AfterFunc(askAgain, func() {
			select {
			case c.again <- pod:
			case <-ctx.Done():
			}
		})
	}
	if !is {
		return
	}
	c.met[pod.UID] = true
	c.of.has(pod)
	c.here++
	f := newFollower(c.owner, pod)
	f.ofCrew = true
	go func() {
		last, code, err := f.run(ctx)
		c.ends <- end{obj: last, code: code, err: err}
	}()
}

// part takes note of the end of a pod.
func (c *crew) part(e end) {
	c.here--
	if pod, ok := e.obj.(*corev1.Pod); ok {
		c.of.lost(pod)
		if _, at := progress.LastFailure(pod); e.code != 0 && !at.Before(c.failed) {
			c.code, c.failed = e.code, at
		}
	}
	if e.err != nil {
		c.giveUp(e.err)
	}
}

// owns reports whether a pod is the workload's, by itself or by what stands between them: the ReplicaSets of a
// Deployment, the Jobs of a CronJob. An error says that it cannot be known now.
func (c *crew) owns(ctx context.Context, pod *corev1.Pod) (is bool, err error) {
	by := metav1.GetControllerOf(pod)
	switch {
	case by == nil:
		return false, nil
	case by.UID == c.of.GetUID():
		return true, nil
	}
	known, ok := c.between[by.UID]
	if ok {
		return known, nil
	}
	var m metav1.Object
	switch c.of.obj.(type) {
	case *appsv1.Deployment:
		m, err = c.owner.Client.AppsV1().ReplicaSets(pod.Namespace).Get(ctx, by.Name, metav1.GetOptions{})
	case *batchv1.CronJob:
		m, err = c.owner.Client.BatchV1().Jobs(pod.Namespace).Get(ctx, by.Name, metav1.GetOptions{})
	default:
		return false, nil
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return false, err
	}
	is = err == nil && m.GetUID() == by.UID && metav1.IsControlledBy(m, c.of)
	c.between[by.UID] = is
	return is, nil
}

// selector finds the workload's pods, and perhaps others.
func (c *crew) selector() string {
	var by *metav1.LabelSelector
	switch o := c.of.obj.(type) {
	case *appsv1.Deployment:
		by = o.Spec.Selector
	case *appsv1.ReplicaSet:
		by = o.Spec.Selector
	case *appsv1.StatefulSet:
		by = o.Spec.Selector
	case *appsv1.DaemonSet:
		by = o.Spec.Selector
	case *batchv1.Job:
		by = o.Spec.Selector
	case *corev1.ReplicationController:
		return labels.SelectorFromSet(o.Spec.Selector).String()
	}
	if by == nil { // a CronJob has none
		return ""
	}
	return metav1.FormatLabelSelector(by)
}

// watch gives the workload's versions, nil when it is gone.
func (c *crew) watch(ctx context.Context) (versions <-chan runtime.Object, failed <-chan error) {
	all, broken := make(chan runtime.Object), make(chan error, 1)
	who := watched{name: c.of.GetName(), uid: c.of.GetUID(), verbs: c.of.verbs}
	go func() {
		err := who.follow(ctx, c.of.GetResourceVersion(), func(now runtime.Object) (bool, error) {
			select {
			case all <- now:
			case <-ctx.Done():
			}
			return now == nil, nil
		})
		if err != nil && ctx.Err() == nil {
			broken <- err
		}
	}()
	return all, broken
}

// watchPods gives the pods that the workload may have made, as they come.
func (c *crew) watchPods(ctx context.Context) <-chan *corev1.Pod {
	pods := make(chan *corev1.Pod)
	selector := c.selector()
	client := c.owner.Client.CoreV1().Pods(c.of.GetNamespace())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = selector
				return client.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = selector
				return client.Watch(ctx, o)
			},
		}, c.owner.Client),
		ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				select {
				case pods <- pod:
				case <-ctx.Done():
				}
			}
		}},
	})
	go informer.RunWithContext(ctx)
	return pods
}
