// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/oneline"
)

// rootCA is the ConfigMap with the CA's certificate that is in every pod.
const rootCA = "kube-root-ca.crt"

// mostChanges is how many are shown, the latest.
const mostChanges = 8

// changes are what was done to the pod, to its owners and to what it refers to, and the first sign of trouble, in
// order.
func (r *report) changes() (all []Change) {
	if r.Pod != nil {
		all = append(all, Change{At: r.Pod.CreationTimestamp.Time, What: "the pod was created",
			By: creator(r.Pod.ManagedFields), From: "metadata.creationTimestamp"})
		all = append(all, managed("the pod", r.Pod.ManagedFields, r.Pod.CreationTimestamp.Time)...)
	}
	for _, o := range r.Owners {
		all = append(all, managed(o.Kind+" "+o.Name, o.Managed, time.Time{})...)
		if len(o.Diff) > 0 {
			all = append(all, Change{At: o.Rollout, What: "rollout: " + strings.Join(o.Diff, "; "),
				From: "ReplicaSets of " + o.Kind + " " + o.Name})
		}
	}
	for _, o := range r.Objects {
		if !o.Missing && o.Name != rootCA {
			all = append(all, managed(o.Kind+" "+o.Name, o.Managed, time.Time{})...)
		}
	}
	for i := range r.Events {
		e := &r.Events[i]
		if slices.Contains([]string{"Scheduled", "ScalingReplicaSet", "Preempted", "NodeNotReady", "ResizeCompleted"},
			e.Reason) {
			all = append(all, Change{At: firstOf(e), What: e.Message, By: source(e), From: eventFrom(e)})
		}
	}
	if sign, ok := r.sign(); ok {
		all = append(all, sign)
	}
	slices.SortStableFunc(all, func(a, b Change) int { return a.At.Compare(b.At) })
	if len(all) > mostChanges {
		all = all[len(all)-mostChanges:]
	}
	return all
}

// sign is the first sign that something was wrong.
func (r *report) sign() (Change, bool) {
	var first *corev1.Event
	for i := range r.Events {
		e := &r.Events[i]
		if e.Type == corev1.EventTypeWarning && (first == nil || firstOf(e).Before(firstOf(first))) {
			first = e
		}
	}
	if first == nil {
		return Change{}, false
	}
	return Change{At: firstOf(first), What: oneline.Cut(first.Message, 160), By: source(first),
		From: "event " + first.Reason, Sign: true}, true
}

func source(e *corev1.Event) string {
	if e.ReportingController != "" {
		return e.ReportingController
	}
	return e.Source.Component
}

// creator is who wrote an object first.
func creator(entries []metav1.ManagedFieldsEntry) string {
	var first *metav1.ManagedFieldsEntry
	for i := range entries {
		if e := &entries[i]; e.Subresource == "" && e.Time != nil && (first == nil || e.Time.Before(first.Time)) {
			first = e
		}
	}
	if first == nil {
		return ""
	}
	return first.Manager
}

// managed are the writes of an object that its managed fields show: for each manager the last one. Writes at the
// time of its creation are not shown again.
func managed(what string, entries []metav1.ManagedFieldsEntry, created time.Time) (all []Change) {
	for _, e := range entries {
		if e.Subresource != "" || e.Time == nil || e.Time.Time.Equal(created) {
			continue
		}
		fields := Fields(e.FieldsV1)
		if fields == "" {
			continue
		}
		all = append(all, Change{At: e.Time.Time, What: fmt.Sprintf("%s was written: %s", what, fields), By: e.Manager,
			From: "managedFields, " + string(e.Operation)})
	}
	return all
}

// mostFields is how many fields of a write are named.
const mostFields = 3

// Fields names the fields that a manager has written last, of spec and data first; empty if there are none that a
// person would look for: what controllers keep in annotations and statuses is left out.
func Fields(raw *metav1.FieldsV1) string {
	if raw == nil {
		return ""
	}
	var set fieldpath.Set
	if err := set.FromJSON(bytes.NewReader(raw.GetRawBytes())); err != nil {
		return "fields that cannot be read"
	}
	var paths []string
	more := 0
	set.Leaves().Iterate(func(p fieldpath.Path) {
		text := strings.TrimPrefix(p.String(), ".")
		if strings.HasPrefix(text, "metadata.annotations") || strings.HasPrefix(text, "metadata.ownerReferences") ||
			strings.HasPrefix(text, "status") {
			return
		}
		if len(paths) < mostFields {
			paths = append(paths, text)
		} else {
			more++
		}
	})
	if more > 0 {
		return fmt.Sprintf("%s and %d more fields", strings.Join(paths, ", "), more)
	}
	return strings.Join(paths, ", ")
}
