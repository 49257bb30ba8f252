// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestOwed: what finds no room on the disk is written when there is some, told once in between; what was written meanwhile is never replaced
// by something older; any other failure is one (RS-02).
func TestOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full error
		var written, said []string
		log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { said = append(said, string(p)); return len(p), nil }), nil))
		o := newOwed(log, func(text []byte) error {
			if full == nil {
				written = append(written, string(text))
			}
			return full
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); o.run(ctx) }()
		put := func(text string) {
			t.Helper()
			if err := o.put([]byte(text)); err != nil {
				t.Error(err)
			}
		}
		full = fmt.Errorf("kubeconfig: %w", syscall.ENOSPC)
		put("a")
		time.Sleep(3500 * time.Millisecond) // of a clock that only the test moves
		synctest.Wait()
		if len(written) > 0 || len(said) != 1 {
			t.Errorf("while the disk is full: written %q, said %q", written, said)
		}
		full = nil
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(written, []string{"a"}) || !strings.Contains(strings.Join(said, ""), "room again") {
			t.Errorf("with room: written %q, said %q", written, said)
		}
		full = syscall.EDQUOT
		put("b")
		full = nil
		put("c")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if !slices.Equal(written, []string{"a", "c"}) {
			t.Errorf("c is newer than b, and written was %q", written)
		}
		full = errors.New("another")
		if err := o.put([]byte("d")); !errors.Is(err, full) {
			t.Errorf("another failure: %v", err)
		}
		cancel()
		<-done
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
