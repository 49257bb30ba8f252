// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// record stores a new record and returns it; started is when its process starts, if that is known already.
func (d *Debugger) record(ctx context.Context, pod *corev1.Pod, spec debugrun.DebugRunSpec,
	started *metav1.Time) (*debugrun.DebugRun, error) {
	spec.Pod = debugrun.PodReference{Name: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName}
	spec.User = userName(ctx)
	spec.Command, spec.Args = cutWords(spec.Command, maxKept), cutWords(spec.Args, maxKept)
	run := &debugrun.DebugRun{ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + "-", Namespace: pod.Namespace},
		Spec: spec}
	run.Status.StartedAt = started
	obj, err := d.records.Create(d.records.Within(ctx, pod.Namespace), run, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("record of a debug run in pod %s: %w", pod.Name, err)
	}
	return obj.(*debugrun.DebugRun), nil
}

// maxKept is how many bytes of a command, and of its arguments, a record keeps, as the audit log does: a command may be
// as long as an object, and who may only debug could fill the store with records.
const maxKept = 8 << 10

// cutWords keeps the first bytes of some words, and says that it did.
func cutWords(words []string, most int) []string {
	for i, w := range words {
		most -= len(w) + 1 // an empty one counts too
		if most >= 0 {
			continue
		}
		cut := strings.ToValidUTF8(w[:max(0, len(w)+1+most)], "") + "…(cut)"
		return append(slices.Clone(words[:i]), cut)
	}
	return words
}

// tellTries bounds how often an event is written anew when others write it too.
const tellTries = 5

// tell makes an event of the pod, or counts one up that says the same: who debugs all day does not flood them.
func (d *Debugger) tell(ctx context.Context, pod *corev1.Pod, path, reason, message string) (err error) {
	event := debugEvent(pod, path, reason, message, metav1.Now())
	ctx = d.events.Within(ctx, pod.Namespace)
	for range tellTries {
		_, err = d.events.Create(ctx, event.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, _, err = d.events.Update(ctx, event.Name, onceMore{event}, rest.ValidateAllObjectFunc,
			rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return err
}

// debugEvent is an event of a pod. One that says the same has the same name.
func debugEvent(pod *corev1.Pod, path, reason, message string, now metav1.Time) *corev1.Event {
	sum := fnv.New64a()
	for _, text := range []string{string(pod.UID), path, reason, message} {
		_, _ = io.WriteString(sum, text+"\x00") // a hash takes everything
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", pod.Name, sum.Sum64()), Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion, FieldPath: path,
		},
		Reason: reason, Message: message, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now,
		LastTimestamp: now, Source: corev1.EventSource{Component: "wherry-apiserver"},
		ReportingController: "wherry-apiserver",
	}
}

// onceMore is the change of an event that has happened once more.
type onceMore struct{ event *corev1.Event }

var _ rest.UpdatedObjectInfo = onceMore{}

// Preconditions implements rest.UpdatedObjectInfo.
func (onceMore) Preconditions() *metav1.Preconditions { return nil }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (a onceMore) UpdatedObject(_ context.Context, old runtime.Object) (runtime.Object, error) {
	kept, ok := old.(*corev1.Event)
	if !ok {
		return nil, fmt.Errorf("the store holds a %T where an event should be", old)
	}
	if kept.UID == "" { // it has gone meanwhile
		return nil, apierrors.NewNotFound(corev1.Resource("events"), a.event.Name)
	}
	now := kept.DeepCopy()
	now.Count++
	now.LastTimestamp = a.event.LastTimestamp
	now.InvolvedObject.ResourceVersion = a.event.InvolvedObject.ResourceVersion
	return now, nil
}

// added puts on record that debug containers were added to a pod. It returns at once; done is closed when all of it is
// stored.
func (d *Debugger) added(ctx context.Context, pod *corev1.Pod, containers []corev1.EphemeralContainer,
	runs map[string]int) (done <-chan struct{}) {
	var all sync.WaitGroup
	for _, c := range containers {
		all.Add(1)
		d.beside(ctx, "debug container "+c.Name+" in pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			defer all.Done()
			_, err := d.record(ctx, pod, debugrun.DebugRunSpec{
				Kind: debugrun.EphemeralContainer, Container: c.Name, Run: int32(runs[c.Name]), Image: c.Image,
				Command: c.Command, Args: c.Args, Target: c.TargetContainerName,
			}, nil)
			return err
		})
		d.beside(ctx, "event of pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			return d.tell(ctx, pod, fmt.Sprintf("spec.ephemeralContainers{%s}", c.Name),
				debugrun.EventDebugContainerAdded, fmt.Sprintf("%s added debug container %s with image %s",
					userName(ctx), c.Name, c.Image))
		})
	}
	finished := make(chan struct{})
	d.background.Go(func() {
		all.Wait()
		close(finished)
	})
	return finished
}

// ImageExec implements connect.Debugging: quotas are charged, and record and condition stored, before the command can
// start.
func (d *Debugger) ImageExec(ctx context.Context, pod *corev1.Pod,
	run connect.ImageRun) (finish func(connect.End), err error) {
	noteImageExec(ctx, run)
	leave, err := d.quotas.Visit(ctx, d.attributes(ctx, pod, pod), pod)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	tainted := make(chan error, 1)
	go func() { tainted <- d.taint(ctx, pod, imageTaint(userName(ctx), run.Container)) }()
	began := metav1.Now()
	kept, err := d.record(ctx, pod, debugrun.DebugRunSpec{
		Kind: debugrun.ImageExec, Image: run.Image, Command: run.Command, Target: run.Container, Writable: run.Writable,
	}, &began)
	if terr := <-tainted; err == nil && terr != nil {
		d.beside(ctx, "end of image exec in pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			return d.finish(ctx, kept, connect.End{Reason: debugrun.Refused, Message: terr.Error()}, time.Now())
		})
		return nil, terr
	}
	if err != nil {
		return nil, err
	}
	d.beside(ctx, "event of pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
		return d.tell(ctx, pod, "", debugrun.EventImageExec,
			fmt.Sprintf("%s runs %s with image %s in the pod", userName(ctx), shown(run.Command), run.Image))
	})
	return func(end connect.End) {
		leave()
		d.beside(ctx, "end of image exec in pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			return d.finish(ctx, kept, end, time.Now())
		})
	}, nil
}

// finish completes the record of an image exec.
func (d *Debugger) finish(ctx context.Context, run *debugrun.DebugRun, end connect.End, now time.Time) error {
	ctx = d.records.Within(ctx, run.Namespace)
	key, err := d.records.KeyFunc(ctx, run.Name)
	if err != nil {
		return err
	}
	err = d.records.Storage.GuaranteedUpdate(ctx, key, &debugrun.DebugRun{}, false,
		&storage.Preconditions{UID: &run.UID}, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			kept := obj.(*debugrun.DebugRun)
			finished := metav1.NewTime(now)
			kept.Status = debugrun.DebugRunStatus{
				StartedAt: kept.Status.StartedAt, FinishedAt: &finished, ExitCode: end.ExitCode, Reason: end.Reason,
				Message: end.Message,
			}
			if end.Reason == debugrun.Refused {
				kept.Status.StartedAt = nil // nothing was started
			}
			return kept, nil
		}), false, nil)
	return storeerr.InterpretUpdateError(err, d.records.DefaultQualifiedResource, run.Name)
}
