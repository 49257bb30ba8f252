// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// record stores a new record and returns it; started is when its process starts, if that is known already.
func (r *Recorder) record(ctx context.Context, pod *corev1.Pod, spec debugrun.DebugRunSpec,
	started *metav1.Time) (*debugrun.DebugRun, error) {
	spec.Pod = debugrun.PodReference{Name: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName}
	spec.User = UserName(ctx)
	spec.Image = cutText(spec.Image, debugask.MaxImage)
	spec.Command, spec.Args = cutWords(spec.Command, maxKept), cutWords(spec.Args, maxKept)
	run := &debugrun.DebugRun{ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + "-", Namespace: pod.Namespace},
		Spec: spec}
	run.Status.StartedAt = started
	obj, err := r.records.Create(r.records.Within(ctx, pod.Namespace), run, rest.ValidateAllObjectFunc,
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
		return append(slices.Clone(words[:i]), firstBytes(w, max(0, len(w)+1+most)))
	}
	return words
}

// cutText keeps the first bytes of a text, and says that it did. Requests with a longer name of an image are refused
// now, but pods that were stored before have them.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return firstBytes(text, most)
}

func firstBytes(text string, n int) string { return strings.ToValidUTF8(text[:n], "") + "…(cut)" }

// Added puts on record that debug containers were added to a pod. It returns at once; done is closed when all of it is
// stored.
func (r *Recorder) Added(ctx context.Context, pod *corev1.Pod, containers []corev1.EphemeralContainer,
	runs map[string]int) (done <-chan struct{}) {
	var all sync.WaitGroup
	for _, c := range containers {
		all.Add(1)
		r.Beside(ctx, "debug container "+c.Name+" in pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			defer all.Done()
			_, err := r.record(ctx, pod, debugrun.DebugRunSpec{
				Kind: debugrun.EphemeralContainer, Container: c.Name, Run: int32(runs[c.Name]), Image: c.Image,
				Command: c.Command, Args: c.Args, Target: c.TargetContainerName,
			}, nil)
			return err
		})
		r.Beside(ctx, "event of pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			return r.event(ctx, pod, fmt.Sprintf("spec.ephemeralContainers{%s}", c.Name),
				debugrun.EventDebugContainerAdded, fmt.Sprintf("%s added debug container %s with image %s",
					UserName(ctx), c.Name, cutText(c.Image, debugask.MaxImage)))
		})
	}
	finished := make(chan struct{})
	r.background.Go(func() {
		all.Wait()
		close(finished)
	})
	return finished
}

// finish completes the record of an image exec.
func (r *Recorder) finish(ctx context.Context, run *debugrun.DebugRun, end End, now time.Time) error {
	ctx = r.records.Within(ctx, run.Namespace)
	key, err := r.records.KeyFunc(ctx, run.Name)
	if err != nil {
		return err
	}
	err = r.records.Storage.GuaranteedUpdate(ctx, key, &debugrun.DebugRun{}, false,
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
	return storeerr.InterpretUpdateError(err, r.records.DefaultQualifiedResource, run.Name)
}

// ImageExec puts on record that somebody is about to run a command from an image in a pod: record and condition are
// stored when it returns. finish, called once, completes the record.
func (r *Recorder) ImageExec(ctx context.Context, pod *corev1.Pod,
	spec debugrun.DebugRunSpec) (finish func(End), err error) {
	spec.Kind = debugrun.ImageExec
	tainted := make(chan error, 1)
	go func() { tainted <- r.taint(ctx, pod, imageTaint(UserName(ctx), spec.Target)) }()
	began := metav1.Now()
	kept, err := r.record(ctx, pod, spec, &began)
	if terr := <-tainted; err == nil && terr != nil {
		r.Beside(ctx, "end of image exec in pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			return r.finish(ctx, kept, End{Reason: debugrun.Refused, Message: terr.Error()}, time.Now())
		})
		return nil, terr
	}
	if err != nil {
		return nil, err
	}
	r.Beside(ctx, "event of pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
		return r.event(ctx, pod, "", debugrun.EventImageExec,
			fmt.Sprintf("%s runs %s with image %s in the pod", UserName(ctx), shown(spec.Command),
				cutText(spec.Image, debugask.MaxImage)))
	})
	return func(end End) {
		r.Beside(ctx, "end of image exec in pod "+pod.Namespace+"/"+pod.Name, func(ctx context.Context) error {
			return r.finish(ctx, kept, end, time.Now())
		})
	}, nil
}
