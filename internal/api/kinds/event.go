// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/validation"
)

func eventRules() registry.Rules {
	return registry.Typed[*corev1.Event]{
		Validate: validation.ValidateEvent,
		// The core API has always let writers change what they like.
		ValidateUpdate: func(e, _ *corev1.Event) field.ErrorList { return validation.ValidateEvent(e) },
		CreateOnUpdate: true,
	}.Rules()
}

// newEventRules are those of events.k8s.io, which are stricter about the same objects.
func newEventRules() registry.Rules {
	return registry.Typed[*corev1.Event]{
		Validate: func(e *corev1.Event) field.ErrorList { return validation.ValidateEventV1(newForm(e)) },
		ValidateUpdate: func(e, old *corev1.Event) field.ErrorList {
			return validation.ValidateEventV1Update(newForm(e), newForm(old))
		},
		CreateOnUpdate: true,
	}.Rules()
}

func newForm(e *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{}
	schemes.EventFromCore(e, out)
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
