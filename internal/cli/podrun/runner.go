// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/cli/pulling"
	"github.com/wherryproject/wherry/internal/manifest"
	"github.com/wherryproject/wherry/internal/timeline"
)

// Exit codes of a run that the pod does not decide. One that a signal ended has 128 and the signal's number, as a shell
// reports it: 130 for Ctrl-C.
const (
	ExitFailure = 125 // the run itself failed: bad manifest, no server, hopeless image
	ExitTimeout = 124 // as timeout(1)
	exitSignal  = 128
)

// Options say how to run.
type Options struct {
	Namespace string        // for objects that name none
	Remove    bool          // delete afterwards what was created
	Detach    bool          // return when the pods are ready
	FailFast  bool          // give up on trouble that time might heal
	Timeout   time.Duration // 0: none
	Quiet     bool          // no progress, logs only
	Prefix    *bool         // the container's name in front of its output; nil: if several containers write
}

// Runner runs the objects of a manifest. Interrupts carries the signals that end a run: the first one deletes the pods
// and waits, a second one of a person at the terminal kills them.
type Runner struct {
	Client     kubernetes.Interface
	Screen     *Screen
	Options    Options
	Interrupts <-chan os.Signal
	// Timeline fetches what a pod's node noted of it; nil: where the time went is not shown.
	Timeline func(context.Context, *corev1.Pod) (timeline.History, error)
	// Attach carries the streams of a container's process until it ends, to a terminal of its own or to out and errs;
	// nil: what containers write is read of their logs. A refusal is an *apierrors.StatusError.
	Attach func(ctx context.Context, pod *corev1.Pod, container string, out, errs io.Writer) error
	// Transfers are the parts of images that the node is fetching; nil: not known.
	Transfers pulling.Ask
	// ServerEnds says that the server ends with the run, so that a pod that is left has none.
	ServerEnds bool
	// Start is the command that starts one that does not.
	Start string

	logs splitting
}

// Result is a run's end.
type Result struct {
	Code    int
	Objects []runtime.Object // what ran, as last seen, in the order of the manifest: pods, then what makes pods
}

var errTimeout = errors.New("timeout")

// interruption is the signal that ended a run.
type interruption struct{ signal os.Signal }

func (i *interruption) Error() string { return "terminated by " + i.signal.String() }

func (i *interruption) code() int {
	if n, ok := i.signal.(syscall.Signal); ok {
		return exitSignal + int(n)
	}
	return exitSignal + int(syscall.SIGINT)
}

// hurries reports whether a signal, sent again, asks for haste. A terminal that goes away may say so more than once.
func hurries(s os.Signal) bool { return s != syscall.SIGHUP && s != syscall.SIGPIPE }

// Run runs the objects. The error, if any, is the run's own failure, not the pods'.
func (r *Runner) Run(ctx context.Context, objects []manifest.Object) (Result, error) {
	if err := r.check(objects); err != nil {
		return Result{Code: ExitFailure}, err
	}
	var timeout <-chan time.Time
	if r.Options.Timeout > 0 {
		timer := time.NewTimer(r.Options.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	made := &created{}
	err := r.interruptible(ctx, timeout, func(ctx context.Context) (err error) {
		if err = r.rehearse(ctx, objects); err == nil {
			made, err = r.create(ctx, objects)
		}
		return err
	})
	if err != nil { // nothing is half done
		return Result{Code: codeOf(err)}, errors.Join(r.outcome(err, "not created"), r.remove(made))
	}
	r.Screen.expect(made.pods, len(made.workloads), r.Options.Prefix)
	result, err := r.attend(ctx, made, timeout)
	return r.cleanUp(result, err, made)
}

// cleanUp removes what the run promised to remove, and says what it leaves of a run that did not come to its end.
func (r *Runner) cleanUp(result Result, err error, made *created) (Result, error) {
	if err == nil {
		if !r.Options.Remove || r.Options.Detach && result.Code == 0 {
			return result, nil
		}
		return result, r.remove(made)
	}
	_, interrupted := errors.AsType[*interruption](err)
	switch {
	case interrupted:
		result.Code = codeOf(err)
	case errors.Is(err, errTimeout):
		result.Code = codeOf(err)
		err = r.outcome(err, notYet(r.Options.Detach))
	case result.Code == 0:
		result.Code = ExitFailure
	}
	if interrupted || r.Options.Remove {
		return result, errors.Join(r.outcome(err, ""), r.remove(made))
	}
	return result, r.leave(err, made, result.pods())
}

func notYet(detached bool) string {
	if detached {
		return "not ready"
	}
	return "not finished"
}

// codeOf is the exit code of a run that ended before it had pods to attend to, or by a signal.
func codeOf(err error) int {
	if i, ok := errors.AsType[*interruption](err); ok {
		return i.code()
	}
	if errors.Is(err, errTimeout) {
		return ExitTimeout
	}
	return ExitFailure
}

// outcome is a run's end in words: after a timeout, how far it was; nil for a signal, which whoever sent it knows of.
func (r *Runner) outcome(err error, notYet string) error {
	if _, ok := errors.AsType[*interruption](err); ok {
		return nil
	}
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("%s after %s", notYet, r.Options.Timeout)
	}
	return err
}

// interruptible runs do with a context that the first interrupt cancels, and the timeout.
func (r *Runner) interruptible(ctx context.Context, timeout <-chan time.Time, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case s := <-r.Interrupts:
			r.sayDeleting()
			cancel(&interruption{s})
		case <-timeout:
			cancel(errTimeout)
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

func (r *Runner) sayDeleting() { r.Screen.Announce("deleting; press Ctrl-C again to kill at once") }

// attend follows all pods and workloads to their ends, or to readiness when detached. The first that fails gives the
// exit code. An interrupt deletes them, and so does the timeout of a run that removes them; their ends are then
// followed as any other. Workloads that were there before are left alone.
func (r *Runner) attend(ctx context.Context, made *created, timeout <-chan time.Time) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	existing, leaveExisting := context.WithCancelCause(ctx)
	defer leaveExisting(nil)
	ends, n := r.followAll(ctx, existing, made), len(made.pods)+len(made.workloads)
	result := Result{Objects: make([]runtime.Object, n)}
	var cut, failed error
	for left := n; left > 0; {
		select {
		case e := <-ends:
			left--
			result.Objects[e.index] = e.obj
			if result.Code == 0 {
				result.Code = e.code
			}
			if e.err != nil && failed == nil && cut == nil {
				failed = e.err
				cancel(e.err)
			}
		case s := <-r.Interrupts:
			leaveExisting(errEnough)
			if err := r.cutShort(ctx, made, s, cut != nil); err != nil {
				cancel(err)
			}
			if _, again := cut.(*interruption); !again {
				cut = &interruption{s}
			}
		case <-timeout:
			cut = errTimeout
			if r.Options.Detach || !r.Options.Remove {
				cancel(cut)
				continue
			}
			r.Screen.Say("not finished after %s; deleting", r.Options.Timeout)
			leaveExisting(errEnough)
			if err := r.deleteAll(ctx, made); err != nil {
				cancel(err)
			}
		}
	}
	if cut != nil {
		return result, cut
	}
	return result, failed
}

// followAll follows each pod and workload to its end, which it sends: those of the run until ctx ends, workloads that
// were there before until existing does.
func (r *Runner) followAll(ctx, existing context.Context, made *created) <-chan end {
	ends := make(chan end)
	for i, pod := range made.pods {
		go func() {
			last, code, err := newFollower(r, pod).run(ctx)
			ends <- end{i, withKind(last, corev1.SchemeGroupVersion.WithKind("Pod")), code, err}
		}()
	}
	for i, w := range made.workloads {
		in := ctx
		if !w.ours {
			in = existing
		}
		go func() {
			last, code, err := newCrew(r, w).run(in)
			ends <- end{len(made.pods) + i, withKind(last, w.gvk), code, err}
		}()
	}
	return ends
}

// cutShort deletes what the run made on a signal, and kills the pods on one that hurries when they are being deleted
// already.
func (r *Runner) cutShort(ctx context.Context, made *created, s os.Signal, already bool) error {
	if already {
		return r.hurry(ctx, made, s)
	}
	r.sayDeleting()
	r.showSpared(made)
	return r.deleteAll(ctx, made)
}

// end is what came of one follower or crew.
type end struct {
	index int
	obj   runtime.Object
	code  int
	err   error
}

// withKind is an object that says what it is, which those that clients decode do not.
func withKind(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	whole := obj.DeepCopyObject()
	whole.GetObjectKind().SetGroupVersionKind(gvk)
	return whole
}

// pods are those of a result that are pods themselves.
func (r Result) pods() (all []*corev1.Pod) {
	for _, o := range r.Objects {
		if p, ok := o.(*corev1.Pod); ok {
			all = append(all, p)
		}
	}
	return all
}
