// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Recorder records the events of a controller. They are sent while a loop runs.
type Recorder struct {
	record.EventRecorder
	sink   record.EventBroadcaster
	client kubernetes.Interface
}

// NewRecorder makes a recorder for the component of that name.
func NewRecorder(client kubernetes.Interface, component string) *Recorder {
	r := &Recorder{client: client, sink: record.NewBroadcaster()}
	r.EventRecorder = r.sink.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	return r
}

// Run runs the loop until ctx is done, and sends the events meanwhile. It is called once.
func (r *Recorder) Run(ctx context.Context, l *Loop) error {
	defer r.Send()()
	return l.Run(ctx)
}

// Send has events sent until the function that it returns is called. It is called once, where there is no loop.
func (r *Recorder) Send() (end func()) {
	r.sink.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: r.client.CoreV1().Events("")})
	return r.sink.Shutdown
}
