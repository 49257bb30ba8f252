// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/wherryproject/wherry/internal/node/logs"
)

// EC-16: a log that somebody has just read is known to them, and to nobody else; after a while it is shown to them again.
func TestReadLogs(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "0.log")
	var l readLogs
	l.note("jane", path, 5, noon)
	for name, c := range map[string]struct {
		reader, path string
		after        time.Duration
		want         int64
	}{
		"who read it":        {"jane", path, time.Second, 5},
		"another one":        {"ann", path, time.Second, 0},
		"nobody knows who":   {"", path, time.Second, 0},
		"another log":        {"jane", path + ".none", time.Second, 0},
		"who read it before": {"jane", path, time.Minute, 0},
	} {
		if got := l.known(c.reader, c.path, noon.Add(c.after)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	l.note("", path, 5, noon.Add(time.Minute))
	if got := l.known("", path, noon.Add(time.Minute)); got != 5 {
		t.Errorf("of an API server that tells nobody: %d", got)
	}
	l.note("ann", path, 5, noon.Add(2*time.Minute))
	if len(l.last) != 1 {
		t.Errorf("%d are remembered", len(l.last))
	}
}

// EC-16: who comes when a container has ended is shown its log and a plain end, as if they had come before: kubectl run prints the log
// once more after an attachment that fails. What they have just read is not shown again. Debug containers' output is not in their log.
func TestAttachToTheEnded(t *testing.T) {
	dir := t.TempDir()
	text := "2026-11-20T12:00:00Z stdout F one\n2026-11-20T12:00:00Z stderr F two\n"
	for _, name := range []string{"main", "debug"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("CRI", func(t *testing.T) { attachesToTheEnded(t, dir, "EXITED", func(*Config) {}) })
	t.Run("own", func(t *testing.T) {
		attachesToTheEnded(t, dir, "it has ended (exit code 3)", func(c *Config) { c.Streams = scripted{} })
	})
}

func attachesToTheEnded(t *testing.T, dir, refusal string, own func(*Config)) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Logs = logs.Read }, own)
			w.host.logPath = dir
			for _, name := range []string{"main", "debug"} {
				if err := w.fake.Exit(w.host.containers[name], 3); err != nil {
					t.Fatal(err)
				}
			}
			if code, body := w.get(w.masters, "/containerLogs/default/web/main?reader=jane"); code != 200 || body != "one\ntwo\n" {
				t.Fatalf("the log: %d %q", code, body)
			}
			for _, c := range []struct{ query, out, errOut string }{
				{"input=1&output=1&error=1&reader=ann", "one\n", "two\n"},
				{"output=1&reader=ann", "one\n", ""},
				{"input=1&output=1&error=1&reader=jane", "", ""},
				{"output=1&tty=1&reader=bob", "one\r\n", ""}, // as the terminal had it; the log has lost the carriage returns
			} {
				var out, errOut bytes.Buffer
				o := remotecommand.StreamOptions{Stdout: &out, Tty: strings.Contains(c.query, "tty")}
				if strings.Contains(c.query, "error") {
					o.Stdin, o.Stderr = strings.NewReader("for nobody"), &errOut
				}
				err := w.executor(how, "/attach/default/web/main?"+c.query).StreamWithContext(t.Context(), o)
				if err != nil || out.String() != c.out || errOut.String() != c.errOut {
					t.Errorf("%s: %q %q %v", c.query, out.String(), errOut.String(), err)
				}
			}
			if code, body := w.do(w.masters, http.MethodPost, "/attach/default/web/debug?output=1"); code != 500 || !strings.Contains(body, refusal) {
				t.Errorf("a debug container: %d %q", code, body)
			}
			w.host.logPath = filepath.Join(dir, "none")
			if code, body := w.do(w.masters, http.MethodPost, "/attach/default/web/main?output=1"); code != 500 || !strings.Contains(body, refusal) {
				t.Errorf("without a log: %d %q", code, body)
			}
		})
	}
}

// EC-16: what a container prints while somebody reads its log is either in what they read or shown when they attach, never both.
func TestReadWhileItGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	line := func(word string) string { return "2026-11-20T12:00:00Z stdout F " + word + "\n" }
	if err := os.WriteFile(path, []byte(line("one")), 0o600); err != nil {
		t.Fatal(err)
	}
	first := true
	grows := writerFunc(func(p []byte) (int, error) { // while the first line is on its way, another is printed
		if first {
			first = false
			return len(p), os.WriteFile(path, []byte(line("one")+line("two")), 0o600)
		}
		return len(p), nil
	})
	var read, shown bytes.Buffer
	to, err := logs.Read(t.Context(), path, &corev1.PodLogOptions{}, nil, io.MultiWriter(&read, grows), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := logs.Replay(path, to, replayMost, &shown, nil); err != nil || read.String()+shown.String() != "one\ntwo\n" {
		t.Errorf("read %q, shown %q, %v", read.String(), shown.String(), err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
