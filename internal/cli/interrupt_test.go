// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wherryproject/wherry/internal/datadir"
)

// RS-14: Ctrl-C amid a backup or an export leaves no part of a file, which would hold every Secret.
func TestInterruptedFilesLeaveNothing(t *testing.T) {
	dir := alone(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", datadir.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("a part"))
		_ = http.NewResponseController(w).Flush()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	})}
	go func() { _ = srv.Serve(socket) }()
	defer srv.Close()
	for _, args := range []string{"backup -o", "image export example/app:1 -f"} {
		to := t.TempDir()
		code, out, errs := call(t, "", append(strings.Fields(args), filepath.Join(to, "file"))...)
		if code != 130 || out != "" || !strings.Contains(errs, "interrupted: nothing was written") {
			t.Errorf("%s: exit code %d, %q, %q", args, code, out, errs)
		}
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("%s left %v, %v", args, left, err)
		}
	}
}
