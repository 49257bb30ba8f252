// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
)

// PL-04, SC-07: exec probes.
func TestExec(t *testing.T) {
	for _, tc := range []struct {
		name  string
		probe *corev1.Probe
		want  Result
		took  time.Duration
	}{
		{"PL-04 exit 0", execProbe(1, "x", "stdout=fine", "stderr=note"), Result{Verdict: Success, Message: "fine\nnote\n"}, 0},
		{"PL-04 exit 3", execProbe(1, "x", "stdout=bad", "exit_code=3"), Result{Verdict: Failure, Message: "bad\n"}, 0},
		{"PL-04 in time", execProbe(3, "x", "run_for=2s"), Result{Verdict: Success}, 2 * time.Second},
		{"PL-04 too late", execProbe(1, "x", "run_for=2s"), Result{Verdict: Failure, Message: `command timed out: "x run_for=2s" timed out after 1s`}, time.Second},
		{"PL-04 no timeoutSeconds means 1", execProbe(0, "x", "run_for=2s"), Result{Verdict: Failure, Message: `command timed out: "x run_for=2s" timed out after 1s`}, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _, id := running(t, nil)
				to := target()
				to.ContainerID = id
				began := time.Now()
				got, err := p.Try(t.Context(), to, tc.probe)
				if err != nil || got != tc.want {
					t.Errorf("Try: %+v, %v; want %+v", got, err, tc.want)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %s, want %s", took, tc.took)
				}
			})
		})
	}
}

// PL-04: the command of a probe may name variables whose values stand in the spec.
func TestExecVariables(t *testing.T) {
	var ran []string
	p, _, id := running(t, func(_ critest.Info, cmd []string) (critest.ExecAnswer, bool) {
		ran = cmd
		return critest.ExecAnswer{}, true
	})
	to := target(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "PORT", Value: "80"}, {Name: "KEY", ValueFrom: &corev1.EnvVarSource{}}}
	})
	to.ContainerID = id
	if _, err := p.Try(t.Context(), to, execProbe(1, "nc", "$(PORT)", "a$(KEY)b", "$$(PORT)", "$(NONE)")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"nc", "80", "ab", "$(PORT)", "$(NONE)"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

// PL-04: output is cut at 10 KiB and fit for an event.
func TestExecOutput(t *testing.T) {
	p, _, id := running(t, func(critest.Info, []string) (critest.ExecAnswer, bool) {
		return critest.ExecAnswer{Stdout: "\xff\xfe" + strings.Repeat("€", 10<<10), ExitCode: 1}, true
	})
	to := target()
	to.ContainerID = id
	r, err := p.Try(t.Context(), to, execProbe(1, "x"))
	if err != nil || r.Verdict != Failure || len(r.Message) > maxMessage || len(r.Message) < maxMessage-4 || r.Message != "?"+strings.Repeat("€", len(r.Message)/3) {
		t.Errorf("Try: %v %v, %d bytes: %.20q…", r.Verdict, err, len(r.Message), r.Message)
	}
}

// PL-04: when nobody could say how the command ended, there is no verdict.
func TestExecUnknown(t *testing.T) {
	gone := errors.New("the pod leaves")
	for name, tc := range map[string]struct {
		do   func(*critest.Fake, context.CancelCauseFunc)
		want func(error) bool
	}{
		"runtime is away": {func(f *critest.Fake, _ context.CancelCauseFunc) { f.Down() }, cri.Unavailable},
		"no such command": {func(f *critest.Fake, _ context.CancelCauseFunc) {
			f.Fault(func(critest.Call) error { return status.Error(codes.Unknown, "exec failed: no such file") })
		}, func(err error) bool { return strings.Contains(err.Error(), "no such file") }},
		"given up": {func(_ *critest.Fake, cancel context.CancelCauseFunc) {
			time.AfterFunc(time.Second, func() { cancel(gone) })
		}, func(err error) bool { return errors.Is(err, gone) }},
	} {
		t.Run("PL-04 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, fake, id := running(t, nil)
				to := target()
				to.ContainerID = id
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				tc.do(fake, cancel)
				r, err := p.Try(ctx, to, execProbe(10, "x", "run_for=5s"))
				if err == nil || r != (Result{}) || !tc.want(err) {
					t.Errorf("Try: %+v, %v", r, err)
				}
			})
		})
	}
}

// PL-04: a probe without a handler is an error, not a panic.
func TestNoHandler(t *testing.T) {
	if r, err := New(nil).Try(t.Context(), target(), &corev1.Probe{}); err == nil || r.Verdict != Unknown {
		t.Errorf("Try: %+v, %v", r, err)
	}
}
