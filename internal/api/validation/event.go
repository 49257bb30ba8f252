// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

const (
	maxInstance = 128
	maxAction   = 128
	maxReason   = 128
	maxNote     = 1024
)

// ValidateEvent checks a core v1 Event. One of the old form (no eventTime) is only looked at loosely, so that
// no component loses its events.
func ValidateEvent(e *corev1.Event) field.ErrorList {
	all := eventPlace(&e.ObjectMeta, e.InvolvedObject, "involvedObject")
	if e.EventTime.Time.Equal(time.Time{}) {
		return all
	}
	return append(all, newEvent(newForm{
		controller: e.ReportingController, controllerField: "reportingComponent", instance: e.ReportingInstance,
		action: e.Action, reason: e.Reason, note: e.Message, noteField: "message", anyType: true,
	})...)
}

// ValidateEventV1 checks an Event of events.k8s.io/v1, where the new form is a must.
func ValidateEventV1(e *eventsv1.Event) field.ErrorList {
	all := eventPlace(&e.ObjectMeta, e.Regarding, "regarding")
	if e.EventTime.Time.Equal(time.Time{}) {
		all = append(all, field.Required(field.NewPath("eventTime"), ""))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"deprecatedSource", e.DeprecatedSource != (corev1.EventSource{})},
		{"deprecatedFirstTimestamp", !e.DeprecatedFirstTimestamp.IsZero()},
		{"deprecatedLastTimestamp", !e.DeprecatedLastTimestamp.IsZero()},
		{"deprecatedCount", e.DeprecatedCount != 0},
	} {
		if f.set {
			all = append(all, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	return append(all, newEvent(newForm{
		controller: e.ReportingController, controllerField: "reportingController", instance: e.ReportingInstance,
		action: e.Action, reason: e.Reason, note: e.Note, noteField: "note", kind: e.Type,
	})...)
}

// ValidateEventV1Update lets only the series go on.
func ValidateEventV1Update(now, was *eventsv1.Event) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	n, w := now.DeepCopy(), was.DeepCopy()
	n.ObjectMeta, w.ObjectMeta, n.TypeMeta, w.TypeMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{}, metav1.TypeMeta{},
		metav1.TypeMeta{}
	n.Series, w.Series = nil, nil
	n.EventTime, w.EventTime = metav1.MicroTime{}, metav1.MicroTime{}
	if !equality.Semantic.DeepEqual(n, w) {
		all = append(all, field.Forbidden(field.NewPath(""), "only `series` of an event may be changed"))
	}
	if s := now.Series; s != nil && s.Count < 2 {
		all = append(all, field.Invalid(field.NewPath("series", "count"), s.Count, "should be at least 2"))
	}
	return all
}

// eventPlace: an Event is in the namespace of its object, or in default when that has none.
func eventPlace(m *metav1.ObjectMeta, about corev1.ObjectReference, name string) (all rules.Errs) {
	path := field.NewPath(name, "namespace")
	switch {
	case about.Namespace == "" && m.Namespace != metav1.NamespaceDefault && m.Namespace != metav1.NamespaceSystem:
		all = append(all, field.Invalid(path, about.Namespace, "does not match event.namespace"))
	case about.Namespace != "" && about.Namespace != m.Namespace:
		all = append(all, field.Invalid(path, about.Namespace, "does not match event.namespace"))
	}
	return append(all, rules.Meta(m, rules.AnyName)...)
}

// newForm are the fields that both APIs have under different names.
type newForm struct {
	controller, controllerField, instance, action, reason, note, noteField, kind string
	// the core API has never looked at it
	anyType bool
}

func newEvent(e newForm) (all rules.Errs) {
	at := func(name string) *field.Path { return field.NewPath(name) }
	if e.controller == "" {
		all = append(all, field.Required(at(e.controllerField), ""))
	}
	all = append(all, rules.Valid(at(e.controllerField), e.controller, validation.IsQualifiedName(e.controller))...)
	for _, f := range []struct {
		name, value string
		most        int
	}{{"reportingInstance", e.instance, maxInstance}, {"action", e.action, maxAction},
		{"reason", e.reason, maxReason}} {
		switch {
		case f.value == "":
			all = append(all, field.Required(at(f.name), ""))
		case len(f.value) > f.most:
			all = append(all, field.Invalid(at(f.name), "", validation.MaxLenError(f.most)))
		}
	}
	if len(e.note) > maxNote {
		all = append(all, field.Invalid(at(e.noteField), "", validation.MaxLenError(maxNote)))
	}
	if e.anyType {
		return all
	}
	return append(all, rules.OneOf(at("type"), e.kind, corev1.EventTypeNormal, corev1.EventTypeWarning)...)
}
