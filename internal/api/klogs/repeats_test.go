// SPDX-License-Identifier: Apache-2.0

package klogs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// PL-15: an autoscaler without figures says so once, and again when the reason is another or the trouble has come back.
func TestAutoscalersAreHeardOnce(t *testing.T) {
	var out bytes.Buffer
	h := newAtLeast(slog.NewTextHandler(&out, nil), slog.LevelWarn)
	now := time.Unix(1_000_000, 0)
	say := func(target, why string) int {
		t.Helper()
		out.Reset()
		r := slog.NewRecord(now, slog.LevelError, "Unhandled Error", 0)
		r.Add("err", fmt.Errorf("%s%s: %w", aboutTarget, target, errors.New(why)))
		if err := h.WithAttrs(nil).Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return strings.Count(out.String(), "Unhandled Error")
	}
	const web, api = "Deployment/shop/web", "Deployment/shop/api"
	for i, c := range []struct {
		later       time.Duration
		target, why string
		lines       int
	}{
		{0, web, "missing request for cpu", 1},
		{5 * time.Second, web, "missing request for cpu", 0},
		{0, api, "missing request for cpu", 1},
		{5 * time.Second, web, "no metrics returned", 1},
		{5 * time.Second, web, "no metrics returned", 0},
		{5 * time.Second, web, "missing request for cpu", 1},
		{time.Hour, web, "missing request for cpu", 1},
	} {
		now = now.Add(c.later)
		if got := say(c.target, c.why); got != c.lines {
			t.Errorf("%d: %s, %s: %d lines, want %d", i, c.target, c.why, got, c.lines)
		}
	}
	for range 2 { // what others say is not held back
		out.Reset()
		slog.New(h).Error("Unhandled Error", "err", errors.New("something else"))
		if out.Len() == 0 {
			t.Error("another error is not logged")
		}
	}
	for i := range 10 * mostTargets {
		now = now.Add(time.Second)
		say(fmt.Sprint("Deployment/shop/", i), "missing request for cpu")
	}
	if len(h.repeats.last) > mostTargets {
		t.Errorf("%d targets are remembered", len(h.repeats.last))
	}
}
