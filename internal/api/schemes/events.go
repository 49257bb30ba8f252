// SPDX-License-Identifier: Apache-2.0

package schemes

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// addEventConversions makes events.k8s.io/v1 a view of core/v1 events: same storage, other field names.
func addEventConversions(scheme *runtime.Scheme) error {
	if err := scheme.AddConversionFunc((*eventsv1.Event)(nil), (*corev1.Event)(nil),
		func(in, out any, _ conversion.Scope) error {
			eventToCore(in.(*eventsv1.Event), out.(*corev1.Event))
			return nil
		}); err != nil {
		return err
	}
	if err := scheme.AddConversionFunc((*corev1.Event)(nil), (*eventsv1.Event)(nil),
		func(in, out any, _ conversion.Scope) error {
			EventFromCore(in.(*corev1.Event), out.(*eventsv1.Event))
			return nil
		}); err != nil {
		return err
	}
	if err := scheme.AddConversionFunc((*eventsv1.EventList)(nil), (*corev1.EventList)(nil),
		func(in, out any, _ conversion.Scope) error {
			from, to := in.(*eventsv1.EventList), out.(*corev1.EventList)
			to.ListMeta = from.ListMeta
			to.Items = make([]corev1.Event, len(from.Items))
			for i := range from.Items {
				eventToCore(&from.Items[i], &to.Items[i])
			}
			return nil
		}); err != nil {
		return err
	}
	return scheme.AddConversionFunc((*corev1.EventList)(nil), (*eventsv1.EventList)(nil),
		func(in, out any, _ conversion.Scope) error {
			from, to := in.(*corev1.EventList), out.(*eventsv1.EventList)
			to.ListMeta = from.ListMeta
			to.Items = make([]eventsv1.Event, len(from.Items))
			for i := range from.Items {
				EventFromCore(&from.Items[i], &to.Items[i])
			}
			return nil
		})
}

func eventToCore(in *eventsv1.Event, out *corev1.Event) {
	*out = corev1.Event{
		ObjectMeta:          in.ObjectMeta,
		InvolvedObject:      in.Regarding,
		Reason:              in.Reason,
		Message:             in.Note,
		Source:              in.DeprecatedSource,
		FirstTimestamp:      in.DeprecatedFirstTimestamp,
		LastTimestamp:       in.DeprecatedLastTimestamp,
		Count:               in.DeprecatedCount,
		Type:                in.Type,
		EventTime:           in.EventTime,
		Action:              in.Action,
		Related:             in.Related,
		ReportingController: in.ReportingController,
		ReportingInstance:   in.ReportingInstance,
	}
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

// EventFromCore shows a stored event as events.k8s.io/v1 does.
func EventFromCore(in *corev1.Event, out *eventsv1.Event) {
	*out = eventsv1.Event{
		ObjectMeta:               in.ObjectMeta,
		EventTime:                in.EventTime,
		ReportingController:      in.ReportingController,
		ReportingInstance:        in.ReportingInstance,
		Action:                   in.Action,
		Reason:                   in.Reason,
		Regarding:                in.InvolvedObject,
		Related:                  in.Related,
		Note:                     in.Message,
		Type:                     in.Type,
		DeprecatedSource:         in.Source,
		DeprecatedFirstTimestamp: in.FirstTimestamp,
		DeprecatedLastTimestamp:  in.LastTimestamp,
		DeprecatedCount:          in.Count,
	}
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}
