// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func eventPrinter() Printer {
	doc, ref := corev1.Event{}.SwaggerDoc(), corev1.ObjectReference{}.SwaggerDoc()
	return Printer{
		Columns: columns(
			text("Last Seen", doc["lastTimestamp"]),
			text("Type", doc["type"]),
			text("Reason", doc["reason"]),
			text("Object", doc["involvedObject"]),
			wideText("Subobject", ref["fieldPath"]),
			wideText("Source", doc["source"]),
			text("Message", doc["message"]),
			wideText("First Seen", doc["firstTimestamp"]),
			wideText("Count", doc["count"]),
			wideText("Name", metaDoc("name")),
		),
		Row: func(obj runtime.Object, now time.Time) ([]any, error) {
			switch e := obj.(type) {
			case *corev1.Event:
				return eventRow(e, now), nil
			case *eventsv1.Event:
				return eventRow(coreEvent(e), now), nil
			}
			return nil, fmt.Errorf("cannot print %T as an event", obj)
		},
	}
}

func eventRow(e *corev1.Event, now time.Time) []any {
	first := e.FirstTimestamp.Time
	if first.IsZero() {
		first = e.EventTime.Time
	}
	last, count := e.LastTimestamp.Time, e.Count
	if last.IsZero() {
		last = first
	}
	if e.Series != nil {
		last, count = e.Series.LastObservedTime.Time, e.Series.Count
	} else if count == 0 {
		count = 1 // of an event without a series that nobody counted: it happened once
	}
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	return []any{
		since(last, now), e.Type, e.Reason, object,
		e.InvolvedObject.FieldPath, eventSource(e), strings.TrimSpace(e.Message),
		since(first, now), int64(count), e.Name,
	}
}

func eventSource(e *corev1.Event) string {
	component := orElse(e.Source.Component, e.ReportingController)
	if host := orElse(e.Source.Host, e.ReportingInstance); host != "" {
		return component + ", " + host
	}
	return component
}

// coreEvent gives an event of events.k8s.io the shape of the core kind; both are the same stored object.
func coreEvent(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		ObjectMeta:          e.ObjectMeta,
		InvolvedObject:      e.Regarding,
		Reason:              e.Reason,
		Message:             e.Note,
		Source:              e.DeprecatedSource,
		FirstTimestamp:      e.DeprecatedFirstTimestamp,
		LastTimestamp:       e.DeprecatedLastTimestamp,
		Count:               e.DeprecatedCount,
		Type:                e.Type,
		EventTime:           e.EventTime,
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
	}
	if e.Series != nil {
		out.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}
