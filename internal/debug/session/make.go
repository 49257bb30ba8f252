// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/wherryproject/wherry/internal/api/podstore"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/options"
	"github.com/wherryproject/wherry/internal/debug/permit"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Make makes a debug container: the update that a client of pods/ephemeralcontainers would make, with its rights,
// rules, admission and record, and the wait that the client would do (DC-03).
func (d *Debugger) Make(ctx context.Context, name string, session options.Session) (*Made, error) {
	if err := d.permit.Session(ctx, name); err != nil {
		return nil, err
	}
	record.NoteAdding(ctx, asked(session))
	record.NoteSession(ctx)
	pod, run, err := d.add(ctx, name, session)
	if err != nil {
		return nil, err
	}
	record.NoteRun(ctx, run)
	recorded := d.recorder.Added(ctx, pod, addedNamed(pod, session.Name), map[string]int{session.Name: run})
	begun := func(ctx context.Context) (*corev1.Pod, error) {
		now, err := d.begun(ctx, pod, session.Name, run)
		// not when it is this server that stops
		if err != nil && ctx.Err() == nil && !apierrors.IsServiceUnavailable(err) {
			d.giveUp(ctx, now, session.Name, run)
		}
		return now, orDead(err, now, session)
	}
	ended := func(ctx context.Context, closed bool) record.End { return d.ended(ctx, pod, session.Name, run, closed) }
	return &Made{Pod: pod, Run: run, Note: podspec.DebugNote(pod, session.Name), Recorded: recorded,
		Begun: begun, Ended: ended}, nil
}

// asked is the container that a debug session asks for.
func asked(s options.Session) []corev1.EphemeralContainer {
	c := corev1.EphemeralContainer{TargetContainerName: s.Target}
	c.Name, c.Image, c.Command = s.Name, s.Image, s.Command
	return []corev1.EphemeralContainer{c}
}

func addedNamed(pod *corev1.Pod, name string) []corev1.EphemeralContainer {
	return slices.DeleteFunc(slices.Clone(pod.Spec.EphemeralContainers),
		func(c corev1.EphemeralContainer) bool { return c.Name != name })
}

// podDebugRules are those of exec++: what of the pod may change is the debug container called name, the word about its
// runs and the condition that says so.
func podDebugRules(name string) registry.Rules {
	return registry.Typed[*corev1.Pod]{
		PrepareUpdate: func(pod, old *corev1.Pod) {
			asked, wanted, tainted := pod.Spec.EphemeralContainers, *pod, podstore.TaintOf(pod)
			old.DeepCopyInto(pod)
			pod.Spec.EphemeralContainers = asked
			pod.ResourceVersion, pod.UID = wanted.ResourceVersion, wanted.UID
			podstore.TakeOwn(pod, &wanted)
			if tainted != nil {
				podstore.SetCondition(&pod.Status, *tainted)
			}
			podspec.SetDefaults(pod)
			if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
				pod.Generation++
			}
		},
		ValidateUpdate: func(pod, old *corev1.Pod) field.ErrorList {
			return append(podspec.ValidateDebugContainerUpdate(pod, old, name), podspec.Unsupported(pod)...)
		},
	}.Rules()
}

// addition is the change of a pod that makes a debug container; the store calls it again when another write came in
// between.
type addition struct {
	*Debugger
	pod     string
	session options.Session
	run     int // written: which run of the name this is
}

var _ rest.UpdatedObjectInfo = (*addition)(nil)

// Preconditions implements rest.UpdatedObjectInfo.
func (a *addition) Preconditions() *metav1.Preconditions { return nil }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (a *addition) UpdatedObject(ctx context.Context, oldObj runtime.Object) (runtime.Object, error) {
	old, ok := oldObj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("the store holds a %T where a pod should be", oldObj)
	}
	if old.UID == "" {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), a.pod)
	}
	if a.session.UnlessDead && podspec.IsDead(old, a.session.Target) {
		return nil, deadRefusal(old)
	}
	pod := old.DeepCopy()
	container, err := podspec.NewDebugContainer(pod, a.session.DebugContainer)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	now := time.Now()
	want := podspec.DebugRun{Request: a.session.Request}
	if a.session.TTL > 0 {
		want.Limit(a.session.TTL, now)
	}
	a.run, err = podspec.AddDebugContainer(pod, container, want)
	var refused *podspec.DebugRefusal
	switch {
	case errors.As(err, &refused) && refused.Taken:
		return nil, permit.Refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists, pod.Name, "%s",
			refused.Message)
	case errors.As(err, &refused):
		return nil, permit.Refusal(http.StatusConflict, metav1.StatusReasonConflict, pod.Name, "%s", refused.Message)
	case err != nil:
		return nil, err
	}
	if err := record.MarkAdded(pod, record.UserName(ctx), container.Name, now); err != nil {
		return nil, err
	}
	if err := a.permit.Admit(ctx, pod, withoutEphemeral(old, a.session.Name)); err != nil {
		return nil, err
	}
	return pod, nil
}

// deadRefusal is the error for a client that would rather look at what is left than join what has ended.
func deadRefusal(pod *corev1.Pod) error {
	return markDead(permit.Refusal(http.StatusConflict, metav1.StatusReasonConflict, pod.Name,
		"nothing is running in pod %s any more, so a debug container would find nothing to inspect", pod.Name))
}

// markDead gives a refusal the mark by which such a client knows it.
func markDead(err *apierrors.StatusError) *apierrors.StatusError {
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: debugask.CauseDead})
	return err
}

// orDead marks what keeps a debug container from starting, if by now there is nothing to inspect by it: what ran when
// it was asked for has ended while it was made.
func orDead(err error, pod *corev1.Pod, s options.Session) error {
	refused, is := errors.AsType[*apierrors.StatusError](err)
	if !is || refused.ErrStatus.Details == nil || !s.UnlessDead || pod == nil || !podspec.IsDead(pod, s.Target) {
		return err
	}
	return markDead(refused)
}

// add makes the debug container in the stored pod, and says which run of its name that is.
func (d *Debugger) add(ctx context.Context, name string, session options.Session) (*corev1.Pod, int, error) {
	change := &addition{Debugger: d, pod: name, session: session}
	store, namespace := d.pods.With(d.schemes, podDebugRules(session.Name)), request.NamespaceValue(ctx)
	var obj runtime.Object
	err := d.pods.Growing(ctx, namespace, func(charge registry.Charge) (err error) {
		fits := func(ctx context.Context, now, old runtime.Object) error {
			if err := d.permit.Validate(ctx, now, withoutEphemeral(old, session.Name)); err != nil {
				return err
			}
			return charge(ctx, d.permit.Attributes(ctx, now, old))
		}
		obj, _, err = store.Update(d.pods.Within(ctx, namespace), name, change, rest.ValidateAllObjectFunc, fits, false,
			&metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, 0, fmt.Errorf("the store returned a %T for pod %s", obj, name)
	}
	return pod, change.run, nil
}

// giveUp stops a debug container that could not start, so that it does not start later, when nobody waits for it any
// more. Its record stays.
func (d *Debugger) giveUp(ctx context.Context, pod *corev1.Pod, name string, run int) {
	if pod == nil {
		return
	}
	d.recorder.Beside(ctx, "stop of debug container "+name+" in pod "+pod.Namespace+"/"+pod.Name,
		func(ctx context.Context) error {
			_, err := d.setStop(ctx, pod, name, run, time.Now(), "")
			return err
		})
}

// setStop has a run of a debug container stopped at a time, unless it is to be stopped before. It returns the pod as
// stored.
func (d *Debugger) setStop(ctx context.Context, pod *corev1.Pod, name string, run int, at time.Time,
	by string) (*corev1.Pod, error) {
	var stored *corev1.Pod
	uid := pod.UID
	err := podstore.Update(d.pods.Within(ctx, pod.Namespace), d.pods.Store, pod.Name, &storage.Preconditions{UID: &uid},
		false, func(p *corev1.Pod) error {
			stored = p
			runs := podspec.DebugRunsOf(p)
			if runs == nil {
				runs = podspec.DebugRuns{}
			}
			want := runs[name]
			ends := podspec.DebugEnds(p, name)
			if want.Run != run || !ends.IsZero() && ends.Before(at) {
				return nil
			}
			want.Stop(at, by)
			runs[name] = want
			return podspec.SetDebugRuns(p, runs)
		})
	return stored, err
}

// withoutEphemeral is what admission gets as the old object before a debug container is made: one whose name is used
// again is a new container to it, whatever it has in common with the old one.
func withoutEphemeral(old runtime.Object, name string) runtime.Object {
	pod, ok := old.(*corev1.Pod)
	if !ok || pod == nil || len(addedNamed(pod, name)) == 0 {
		return old
	}
	was := pod.DeepCopy()
	was.Spec.EphemeralContainers = slices.DeleteFunc(was.Spec.EphemeralContainers,
		func(c corev1.EphemeralContainer) bool { return c.Name == name })
	return was
}
