// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEvent(t *testing.T) {
	type ev = corev1.Event
	good := func() *ev {
		return &ev{
			ObjectMeta: object("e"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
			EventTime: metav1.NewMicroTime(time.Unix(1, 0)), ReportingController: "wherry.dev/node", ReportingInstance: "n",
			Action: "Start", Reason: "Started", Message: "m", Type: "Normal",
		}
	}
	check(t, good, ValidateEvent, []row[ev]{
		{"namespace", func(e *ev) { e.InvolvedObject.Namespace = "x" }, "involvedObject.namespace", "does not match event.namespace"},
		{"of a node elsewhere", func(e *ev) { e.Namespace, e.InvolvedObject.Namespace = "x", "" }, "involvedObject.namespace", "does not match"},
		{"of a node", func(e *ev) { e.InvolvedObject.Namespace = "" }, "", ""},
		{"of a role", func(e *ev) { e.Name = "system:view.17ab" }, "", ""},
		{"name of a path", func(e *ev) { e.Name = "a/b" }, "metadata.name", "may not contain '/'"},
		{"controller", func(e *ev) { e.ReportingController = "" }, "reportingComponent", ""},
		{"instance", func(e *ev) { e.ReportingInstance = "" }, "reportingInstance", "Required"},
		{"action", func(e *ev) { e.Action = "" }, "action", "Required"},
		{"reason", func(e *ev) { e.Reason = strings.Repeat("x", 129) }, "reason", "128"},
		{"message", func(e *ev) { e.Message = strings.Repeat("x", 1025) }, "message", "1024"},
		{"old form", func(e *ev) { e.EventTime, e.Type, e.Reason, e.Action = metav1.MicroTime{}, "", "", "" }, "", ""},
	})
}

func TestEventV1(t *testing.T) {
	type ev = eventsv1.Event
	good := func() *ev {
		return &ev{
			ObjectMeta: object("e"), Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
			EventTime: metav1.NewMicroTime(time.Unix(1, 0)), ReportingController: "wherry.dev/node", ReportingInstance: "n",
			Action: "Start", Reason: "Started", Note: "m", Type: "Normal",
		}
	}
	check(t, good, ValidateEventV1, []row[ev]{
		{"time", func(e *ev) { e.EventTime = metav1.MicroTime{} }, "eventTime", "Required"},
		{"namespace", func(e *ev) { e.Regarding.Namespace = "x" }, "regarding.namespace", "does not match"},
		{"note", func(e *ev) { e.Note = strings.Repeat("x", 1025) }, "note", "1024"},
		{"old count", func(e *ev) { e.DeprecatedCount = 1 }, "deprecatedCount", "needs to be unset"},
		{"old source", func(e *ev) { e.DeprecatedSource.Host = "h" }, "deprecatedSource", "needs to be unset"},
	})
	checkUpdate(t, good, ValidateEventV1Update, nil, []row[ev]{
		{"series", func(e *ev) { e.Series = &eventsv1.EventSeries{Count: 2} }, "", ""},
		{"series of one", func(e *ev) { e.Series = &eventsv1.EventSeries{Count: 1} }, "series.count", "at least 2"},
		{"note", func(e *ev) { e.Note = "n" }, "[]", "only `series`"},
	})
}
