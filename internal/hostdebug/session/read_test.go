// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// Who root of a user namespace is on the machine.
func TestMappedRoot(t *testing.T) {
	for text, want := range map[string]int{
		"         0     100000      65536\n":                          100000,
		"0 0 4294967295\n":                                            0,
		"         0       1000          1\n         1 100000 65536\n": 1000,
	} {
		if got, ok := mappedRoot(text); !ok || got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "1 100000 65536\n", "0 x 1\n", "0 -1 1", "nonsense"} {
		if got, ok := mappedRoot(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// DA-04: what the caller can give is read from the kernel.
func TestBounding(t *testing.T) {
	got := bounding("Name:\tx\nCapBnd:\t0000000000000003\nSeccomp:\t0\n")
	if strings.Join(got, " ") != "CAP_CHOWN CAP_DAC_OVERRIDE" {
		t.Errorf("%v", got)
	}
	if got := bounding("CapBnd:\t000001ffffffffff\n"); len(got) != 41 || got[40] != "CAP_CHECKPOINT_RESTORE" {
		t.Errorf("all of them: %v", got)
	}
	if got := bounding("CapBnd:\tz\n"); got != nil {
		t.Errorf("%v", got)
	}
}

// What runc says is told without its steps.
func TestLastError(t *testing.T) {
	log := `{"level":"warning","msg":"unable to terminate"}
{"level":"error","msg":"runc run failed: unable to start container process: error during container init: exec: \"x\": executable file not found in $PATH"}
not json
`
	if got := lastError([]byte(log)); got != `exec: "x": executable file not found in $PATH` {
		t.Errorf("%q", got)
	}
	if got := lastError([]byte(`{"level":"info","msg":"x"}`)); got != "" {
		t.Errorf("%q", got)
	}
}

// A command that cannot be run is refused as a shell does, and is looked for in the debugger's own files only.
func TestRunnable(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "bin"), 0o755),
		os.WriteFile(filepath.Join(root, "bin/tool"), nil, 0o755),
		os.WriteFile(filepath.Join(root, "bin/text"), nil, 0o644),
		os.Symlink("/bin/tool", filepath.Join(root, "bin/link")),
		os.Symlink("../../../../../../../../bin/sh", filepath.Join(root, "bin/out"))); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{"tool": 0, "/bin/tool": 0, "link": 0, "text": exitcode.CannotRun,
		"/bin": exitcode.CannotRun, "none": exitcode.NotFound, "./tool": 0, "./none": exitcode.NotFound,
		"../bin/tool": 0, "bin/tool": exitcode.NotFound, "/none": exitcode.NotFound, "out": exitcode.NotFound} {
		code, err := runnable(t.Context(), root, &specs.Process{Args: []string{command}, Env: []string{"PATH=/bin"},
			Cwd: "/bin"})
		if code != want || (err == nil) != (want == 0) {
			t.Errorf("%s: %d, %v", command, code, err)
		}
	}
	if code, err := runnable(t.Context(), root, &specs.Process{}); code != exitcode.CannotRun || err == nil {
		t.Errorf("no command: %d, %v", code, err)
	}
}

// A debugger that was not started because its target ended meanwhile is told so, and not in runc's words.
func TestOutcome(t *testing.T) {
	cmd := exec.Command("cat")
	pidfd := -1
	cmd.SysProcAttr = &syscall.SysProcAttr{PidFD: &pidfd}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	s := &session{held: &held{pidfd: pidfd},
		req: Request{Target: &engines.Container{Target: target.Target{Engine: target.Docker,
			Name: "web"}}}}
	is := func(wantCode, code int, err error, words string) {
		t.Helper()
		if code != wantCode || (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%d, %v", code, err)
		}
	}
	code, err := s.outcome(3, "")
	is(3, code, err, "")
	code, err = s.outcome(killed, "")
	is(killed, code, err, "")
	code, err = s.outcome(1, "procReady not received")
	is(0, code, err, "could not be started: procReady not received")
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	code, err = s.outcome(3, "")
	is(3, code, err, "")
	code, err = s.outcome(killed, "")
	is(killed, code, err, "docker:web has ended")
	code, err = s.outcome(1, "procReady not received")
	is(killed, code, err, "docker:web has ended before")
}

// DA-03: what is known of a container that has ended; a log that cannot be read is said, and hinders nothing.
func TestEvidence(t *testing.T) {
	c := &engines.Container{Target: target.Target{Engine: target.Docker, Name: "web"}, Name: "web",
		State: engines.Exited, ExitCode: 137, OOMKilled: true, Started: time.Unix(100, 0),
		Finished: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Env: []string{"A=b\nc", `D=\`}}
	dir := filepath.Join(t.TempDir(), "web")
	c.ReadLog = func(context.Context, int) (io.ReadCloser, error) { return nil, errors.New("it is broken") }
	note, err := keepEvidence(t.Context(), c, dir, os.Getuid(), os.Getgid())
	if err != nil || !strings.Contains(note, "it is broken") {
		t.Fatalf("%q, %v", note, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "status.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got knownState
	if err := json.Unmarshal(text, &got); err != nil || *got.ExitCode != 137 || got.Signal != "SIGKILL" ||
		!got.OOMKilled ||
		!got.StartedAt.IsZero() || got.FinishedAt.IsZero() {
		t.Errorf("%s: %v", text, err)
	}
	if env, err := os.ReadFile(filepath.Join(dir, "env")); err != nil || string(env) != "A=b\\nc\nD=\\\\\n" {
		t.Errorf("environment %q, %v", env, err)
	}
	c.ReadLog = func(context.Context, int) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("last words\n")), nil
	}
	if note, err := keepEvidence(t.Context(), c, dir, os.Getuid(), os.Getgid()); err != nil || note != "" {
		t.Fatalf("%q, %v", note, err)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || string(log) != "last words\n" {
		t.Errorf("log %q, %v", log, err)
	}
}
