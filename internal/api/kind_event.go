// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation"
)

func eventRules() rules {
	return typed[*corev1.Event]{
		validate: validation.ValidateEvent,
		// The core API has always let writers change what they like.
		validateUpdate: func(e, _ *corev1.Event) field.ErrorList { return validation.ValidateEvent(e) },
		createOnUpdate: true,
	}.rules()
}

// newEventRules are those of events.k8s.io, which are stricter about the same objects.
func newEventRules() rules {
	return typed[*corev1.Event]{
		validate: func(e *corev1.Event) field.ErrorList { return validation.ValidateEventV1(newForm(e)) },
		validateUpdate: func(e, old *corev1.Event) field.ErrorList {
			return validation.ValidateEventV1Update(newForm(e), newForm(old))
		},
		createOnUpdate: true,
	}.rules()
}

func newForm(e *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{}
	eventFromCore(e, out)
	return out
}

func eventFields(obj runtime.Object) fields.Set {
	e := obj.(*corev1.Event)
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	return fields.Set{
		"involvedObject.kind":            e.InvolvedObject.Kind,
		"involvedObject.namespace":       e.InvolvedObject.Namespace,
		"involvedObject.name":            e.InvolvedObject.Name,
		"involvedObject.uid":             string(e.InvolvedObject.UID),
		"involvedObject.apiVersion":      e.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": e.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       e.InvolvedObject.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         source,
		"type":                           e.Type,
	}
}
