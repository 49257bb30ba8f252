// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cli/progress"
	"github.com/wherryproject/wherry/internal/manifest"
	"github.com/wherryproject/wherry/internal/timeline"
)

// Exit codes of a run that the pod does not decide.
const (
	ExitFailure     = 125 // the run itself failed: bad manifest, no server, hopeless image
	ExitTimeout     = 124 // as timeout(1)
	ExitInterrupted = 130 // as a shell reports Ctrl-C
)

// Options say how to run.
type Options struct {
	Namespace string        // for objects that name none
	Remove    bool          // delete afterwards what was created
	Detach    bool          // return when the pods are ready
	FailFast  bool          // give up on trouble that time might heal
	Timeout   time.Duration // 0: none
	Quiet     bool          // no progress, logs only
}

// Runner runs the objects of a manifest. Interrupts carries what a person at the terminal sends: the first one deletes the
// pods and waits, the second kills them.
type Runner struct {
	Client     kubernetes.Interface
	Screen     *Screen
	Options    Options
	Interrupts <-chan os.Signal
	// Timeline fetches what a pod's node noted of it; nil: nothing is told of where the time went.
	Timeline func(context.Context, *corev1.Pod) (timeline.History, error)
}

// Result is a run's end.
type Result struct {
	Code int
	Pods []*corev1.Pod // as last seen
}

var (
	errTimeout     = errors.New("timeout")
	errInterrupted = errors.New("interrupted")
)

// Run runs the objects. The error, if any, is the run's own failure, not the pods'.
func (r *Runner) Run(ctx context.Context, objects []manifest.Object) (Result, error) {
	if err := r.check(objects); err != nil {
		return Result{Code: ExitFailure}, err
	}
	made := &created{}
	err := r.interruptible(ctx, func(ctx context.Context) (err error) {
		if err = r.rehearse(ctx, objects); err == nil {
			made, err = r.create(ctx, objects)
		}
		return err
	})
	var result Result
	if err == nil {
		result, err = r.attend(ctx, made.pods)
	}
	switch {
	case err == nil && (!r.Options.Remove || r.Options.Detach && result.Code == 0):
		return result, nil
	case err == nil:
		return result, r.remove(made)
	case errors.Is(err, errInterrupted):
		result.Code = ExitInterrupted
		return result, r.remove(made)
	case errors.Is(err, errTimeout) && r.Options.Detach:
		result.Code = ExitTimeout
		return result, fmt.Errorf("not ready after %s; the pod is left as it is, look at it with wherry kubectl describe pod", r.Options.Timeout)
	case errors.Is(err, errTimeout):
		result.Code = ExitTimeout
		return result, errors.Join(fmt.Errorf("not done after %s", r.Options.Timeout), r.remove(made))
	}
	result.Code = ExitFailure
	return result, errors.Join(err, r.remove(made))
}

// interruptible runs do with a context that the first interrupt cancels.
func (r *Runner) interruptible(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-r.Interrupts:
			r.sayDeleting()
			cancel(errInterrupted)
		case <-done:
		}
	})
	err := do(ctx)
	close(done)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (r *Runner) sayDeleting() { r.Screen.Say("deleting; press Ctrl-C again to kill at once") }

// attend follows all pods to their ends, or to readiness when detached. The first pod that fails gives the exit code. An
// interrupt or the timeout deletes the pods, whose ends are then followed as any other.
func (r *Runner) attend(ctx context.Context, pods []*corev1.Pod) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ends := make(chan end)
	for i, pod := range pods {
		go func() {
			f := newFollower(r, pod, len(pods) > 1)
			last, code, err := f.run(ctx)
			ends <- end{i, last, code, err}
		}()
	}
	var timeout <-chan time.Time
	if r.Options.Timeout > 0 {
		timer := time.NewTimer(r.Options.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	result := Result{Pods: make([]*corev1.Pod, len(pods))}
	var cut, failed error
	for left := len(pods); left > 0; {
		select {
		case e := <-ends:
			left--
			result.Pods[e.index] = e.pod
			if result.Code == 0 {
				result.Code = e.code
			}
			if e.err != nil && failed == nil {
				failed = e.err
				cancel(e.err)
			}
		case <-r.Interrupts:
			var err error
			if cut == nil {
				r.sayDeleting()
				err = r.deletePods(ctx, pods, nil)
			} else {
				r.Screen.Say("killing")
				err = r.deletePods(ctx, pods, ptr.To[int64](0))
			}
			cut = errInterrupted
			if err != nil {
				cancel(err)
			}
		case <-timeout:
			cut = errTimeout
			if r.Options.Detach {
				cancel(cut)
				continue
			}
			r.Screen.Say("not done after %s; deleting", r.Options.Timeout)
			if err := r.deletePods(ctx, pods, nil); err != nil {
				cancel(err)
			}
		}
	}
	if cut != nil {
		return result, cut
	}
	return result, failed
}

// end is what came of one follower.
type end struct {
	index int
	pod   *corev1.Pod
	code  int
	err   error
}

// remove deletes what the run created, pods first, and waits until they are gone. A second interrupt kills them.
func (r *Runner) remove(made *created) error {
	// Not the run's context: that one has ended when we clean up.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := r.deletePods(ctx, made.pods, nil); err != nil {
		return err
	}
	gone := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { gone <- r.waitGone(ctx, made.pods) })
	for waiting := true; waiting; {
		select {
		case err := <-gone:
			if err != nil {
				return err
			}
			waiting = false
		case <-r.Interrupts:
			r.Screen.Say("killing")
			if err := r.deletePods(ctx, made.pods, ptr.To[int64](0)); err != nil {
				return err
			}
		}
	}
	return r.removeOthers(ctx, made)
}

func (r *Runner) deletePods(ctx context.Context, pods []*corev1.Pod, grace *int64) error {
	var errs []error
	for _, p := range pods {
		err := r.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
			GracePeriodSeconds: grace,
			Preconditions:      metav1.NewUIDPreconditions(string(p.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // conflict: another pod of that name
			errs = append(errs, fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Runner) waitGone(ctx context.Context, pods []*corev1.Pod) error {
	for _, p := range pods {
		err := watchPod(ctx, r.Client, p, "", func(now *corev1.Pod) (bool, error) { return now == nil, nil })
		if err != nil {
			return err
		}
		r.Screen.Tell(p.Name, progress.Line{Text: "is gone"}, len(pods) > 1)
	}
	return nil
}
