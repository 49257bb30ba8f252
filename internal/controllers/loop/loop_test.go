// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestRetries: the first try comes at once, the next ones later and later, one that is asked for when it is due.
func TestRetries(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answers []error
		want    []time.Duration
	}{
		{"success", []error{nil}, []time.Duration{0}},
		{"errors", []error{errors.New("x"), errors.New("y"), nil}, []time.Duration{0, firstRetry, 3 * firstRetry}},
		{"later", []error{Later{After: time.Second}, Later{After: time.Minute}, nil}, []time.Duration{0, time.Second, 61 * time.Second}},
		{"later and later", []error{Later{}, Later{}, nil}, []time.Duration{0, firstRetry, 3 * firstRetry}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var at []time.Duration
				l := New("test", slog.New(slog.DiscardHandler), func(context.Context, string) error {
					at = append(at, time.Since(began))
					return tc.answers[len(at)-1]
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- l.Run(ctx) }()
				l.Add("a")
				time.Sleep(time.Hour)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if !slices.Equal(at, tc.want) {
					t.Errorf("tried at %v, want %v", at, tc.want)
				}
			})
		})
	}
}

// TestEndsWithItsInformers: a loop that begins when all is ending, its informers before it, has not failed (RS-08); one whose informers ended
// alone has.
func TestEndsWithItsInformers(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil)
	informer.RunWithContext(ended)
	for ctx, fails := range map[context.Context]bool{ended: false, t.Context(): true} {
		l := New("test", slog.New(slog.DiscardHandler), func(context.Context, string) error { return nil })
		l.Watch(informer, func(any) {})
		if err := l.Run(ctx); (err != nil) != fails {
			t.Errorf("the end was asked for: %v; error %v", ctx.Err(), err)
		}
	}
}

func TestGone(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for _, obj := range []any{pod, cache.DeletedFinalStateUnknown{Key: "p", Obj: pod}} {
		if Gone(obj) != any(pod) {
			t.Errorf("%T", obj)
		}
	}
}
