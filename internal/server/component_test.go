// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// RS-08: a start that is given up ends, also if a component does not heed it; the others are stopped, and it is named.
func TestStartThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		forever := make(chan struct{})
		defer close(forever)
		var stopped atomic.Bool
		g := &group{log: slog.New(slog.NewTextHandler(&log, nil)), list: []component{
			{name: "folder", start: func(context.Context) error { return nil }, stop: func(context.Context) error { stopped.Store(true); return nil }},
			{name: "deaf", after: []string{"folder"}, start: func(context.Context) error { <-forever; return nil }},
			{name: "hears", after: []string{"folder"}, start: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		}}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		time.AfterFunc(time.Second, cancel) // SIGTERM
		if err := g.start(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("start: %v", err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
		if !strings.Contains(log.String(), "[deaf]") {
			t.Errorf("who hangs is not named:\n%s", log.String())
		}
		if err := g.stop(t.Context()); err != nil || !stopped.Load() {
			t.Errorf("stop: %v; what was up is stopped: %v", err, stopped.Load())
		}
	})
}

// RS-08: the stop ends within its limit, also if components do not heed it; each of those after them is stopped all the same.
func TestStopThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		var order []string
		part := func(name string, stop func()) component {
			return component{name: name, start: func(context.Context) error { return nil }, stop: func(context.Context) error {
				order = append(order, name)
				stop()
				return nil
			}}
		}
		g := &group{log: quiet(), list: []component{part("a", func() {}), part("deaf", func() { <-forever }), part("b", func() {})}}
		if err := g.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		err := g.stop(ctx)
		if err == nil || !strings.Contains(err.Error(), "stop deaf: did not end in time") {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
		if !slices.Equal(order, []string{"b", "deaf", "a"}) {
			t.Errorf("stopped: %v", order)
		}
	})
}
