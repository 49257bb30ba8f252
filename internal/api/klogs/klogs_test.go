// SPDX-License-Identifier: Apache-2.0

package klogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/registry/generic/registry"
)

// PL-15: that a stream's client has gone is not an error to a person, nor that a controller tries again; what else the
// libraries call one is.
func TestKlog(t *testing.T) {
	closed := &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	for _, c := range []struct {
		message string
		err     error
		level   string
	}{
		{"Error on socket receive", closed, "DEBUG"},
		{"Error on socket receive", errors.New("bad frame"), "ERROR"},
		{"Unhandled Error", fmt.Errorf("error executing command in container: %v",
			fmt.Errorf("attaching to the command: %w", context.Canceled)), "DEBUG"},
		{"Unhandled Error", errors.New("error executing command in container: no such thing"), "ERROR"},
		{"Failed to watch", closed, "ERROR"},
		{"Error on socket receive", nil, "ERROR"},
		{"Unhandled Error",
			errors.New(`sync "ns/rs" failed with read version: 8 is not as new as written version: 9 for group ` +
				`resource replicasets.apps`), "DEBUG"},
		{"Error syncing StatefulSet, requeuing",
			errors.New("Operation cannot be fulfilled on statefulsets.apps \"x\": " +
				"the object has been modified; please apply your changes to the latest version and try again"),
			"DEBUG"},
		{"Error syncing StatefulSet, requeuing", errors.New("no such claim"), "ERROR"},
		{"Unhandled Error", errors.New("timed out waiting for dependency graph builder sync during GC sync"), "DEBUG"},
		{"Unable to sync caches", nil, "DEBUG"},
	} {
		for _, threshold := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
			var out bytes.Buffer
			log := slog.New(newAtLeast(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: threshold}),
				slog.LevelWarn))
			log.Error(c.message, "err", c.err)
			want := "level=" + c.level
			if c.level == "DEBUG" && threshold > slog.LevelDebug {
				want = ""
			}
			if got := out.String(); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s (%v) at %s: %q, want %q", c.message, c.err, threshold, got, want)
			}
		}
	}
}

// PL-15: the words by which somebody quicker is known are the library's.
func TestOptimisticLock(t *testing.T) {
	if optimisticLock != registry.OptimisticLockErrorMsg {
		t.Errorf("the library says %q", registry.OptimisticLockErrorMsg)
	}
}
