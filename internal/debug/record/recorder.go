// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// Recorder writes what is stored about debugging. It is safe for concurrent use.
type Recorder struct {
	pods, records, events *registry.REST
	log                   *slog.Logger

	background sync.WaitGroup // writes beside a request
}

// New makes a Recorder over the stores of a server. It begins nothing by itself.
func New(stores registry.Stores, log *slog.Logger) *Recorder {
	return &Recorder{pods: stores["pods"], records: stores[debugrun.Resource], events: stores["events"], log: log}
}

// writePatience bounds a write that goes on though the client may be gone.
const writePatience = 10 * time.Second

// Late puts on record, beside everything else, what somebody added to a pod before the server was killed.
func (r *Recorder) Late(ctx context.Context, started time.Time) {
	r.Beside(ctx, "debug containers from before the start", func(context.Context) error { return r.late(ctx, started) })
}

// Beside does a write that must be done though the client may go away. The server waits for it when it stops.
func (r *Recorder) Beside(ctx context.Context, what string, write func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	r.background.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, writePatience)
		defer cancel()
		if err := write(ctx); err != nil && !apierrors.IsNotFound(err) {
			r.log.Error("debugging could not be put on record", "what", what, "err", err)
		}
	})
}

// Close waits for the writes that are under way.
func (r *Recorder) Close() { r.background.Wait() }

// RunsOf lists the records of a pod's name, oldest first. They outlive the pod.
func (r *Recorder) RunsOf(ctx context.Context, name string) (*debugrun.DebugRunList, error) {
	namespace := request.NamespaceValue(ctx)
	obj, err := r.records.List(r.records.Within(ctx, namespace), &metainternal.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.pod.name", name),
	})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*debugrun.DebugRunList)
	if !ok {
		return nil, fmt.Errorf("the store returned a %T for the debug runs of pod %s", obj, name)
	}
	if len(list.Items) == 0 {
		if _, err := registry.Get[corev1.Pod](ctx, r.pods, namespace, name); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list.Items,
		func(a, b debugrun.DebugRun) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list, nil
}

// UserName is who makes a request.
func UserName(ctx context.Context) string {
	if u, ok := request.UserFrom(ctx); ok {
		return u.GetName()
	}
	return "unknown"
}
