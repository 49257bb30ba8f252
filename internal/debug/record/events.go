// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// eventTries bounds how often an event is written anew when others write it too.
const eventTries = 5

// event makes an event of the pod, or counts one up that says the same: who debugs all day does not flood them.
func (r *Recorder) event(ctx context.Context, pod *corev1.Pod, path, reason, message string) (err error) {
	event := debugEvent(pod, path, reason, message, metav1.Now())
	ctx = r.events.Within(ctx, pod.Namespace)
	for range eventTries {
		_, err = r.events.Create(ctx, event.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, _, err = r.events.Update(ctx, event.Name, onceMore{event}, rest.ValidateAllObjectFunc,
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

// maxCommand bounds a command in a condition or event; the record has all of it.
const maxCommand = 200

func shown(command []string) string {
	text := strings.Join(command, " ")
	if text == "" {
		return "the image's own command"
	}
	if len(text) > maxCommand {
		return strings.ToValidUTF8(text[:maxCommand], "") + "…"
	}
	return text
}
