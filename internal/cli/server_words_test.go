// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/internal/server"
)

// A person at a terminal is told the way in and what to try, and in the end what runs on and how to end it.
func TestForegroundWords(t *testing.T) {
	for name, c := range map[string]struct {
		f        foreground
		pods     int
		welcome  []string
		farewell []string
	}{
		"usual folder": {foreground{dataDir: server.DefaultDataDir}, 2,
			[]string{"\n  sudo wherry kubectl get nodes\n", "Kubeconfig: /var/lib/wherry/kubeconfig (for root)\n"},
			[]string{"The server has stopped; 2 pods keep running.", "to remove everything: sudo wherry purge\n"}},
		"another folder": {foreground{dataDir: "/srv/x", also: "/home/me/kube"}, 1,
			[]string{"sudo wherry kubectl --data-dir /srv/x get nodes\n", "Kubeconfig: /home/me/kube\n"},
			[]string{"; 1 pod keeps running.", "sudo wherry purge --data-dir /srv/x\n"}},
		"no pods": {foreground{dataDir: "/srv/x"}, 0, nil, []string{"No pods are running. To remove all its data: sudo wherry purge --data-dir /srv/x\n"}},
		"agent":   {foreground{dataDir: server.DefaultDataDir, agent: true}, 3, []string{"The agent is ready."}, []string{"The next wherry agent takes over"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, want := range c.welcome {
				if got := c.f.welcome(); !strings.Contains(got, want) {
					t.Errorf("%s\nlacks %q", got, want)
				}
			}
			for _, want := range c.farewell {
				if got := c.f.farewell(c.pods); !strings.Contains(got, want) {
					t.Errorf("%s\nlacks %q", got, want)
				}
			}
		})
	}
}

// At a terminal the welcome comes when the server is ready, not before, and the farewell at the end.
func TestForegroundTerminal(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer terminal.Close()
	var log bytes.Buffer
	f := foreground{t: Terminal{Err: terminal}, log: slog.New(slog.NewTextHandler(&log, nil)), dataDir: t.TempDir()}
	said := bufio.NewReader(master)
	until := func(last string) (text string) {
		for {
			line, err := said.ReadString('\n')
			text += strings.ReplaceAll(line, "\r\n", "\n")
			if err != nil {
				t.Fatalf("%v after %q", err, text)
			}
			if strings.HasPrefix(line, last) {
				return text
			}
		}
	}
	begin := func(name string, ready chan struct{}) func(error) {
		fmt.Fprintln(terminal, name)
		until(name)
		return f.during(ready)
	}

	ready := make(chan struct{})
	ended := begin("ready", ready)
	fmt.Fprintln(terminal, "not ready yet")
	close(ready)
	if got, want := until("Ctrl-C stops"), "not ready yet\n"+strings.TrimSuffix(f.welcome(), "\n"); got != want {
		t.Errorf("it said %q, want %q", got, want)
	}
	ended(nil)
	if got, want := until("The server has stopped"), "\n"+f.farewell(0); got != want {
		t.Errorf("it said %q, want %q", got, want)
	}

	never := begin("never ready", make(chan struct{}))
	never(errors.New("which says enough"))
	fmt.Fprintln(terminal, "over")
	if got := until("over"); got != "over\n" {
		t.Errorf("a server that never was ready said %q", got)
	}
	if log.Len() > 0 {
		t.Errorf("it logged %q too", log.String())
	}
}

// Without a terminal the end is a line of the log, and an error says enough.
func TestForegroundLog(t *testing.T) {
	dir := t.TempDir()
	for _, pod := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, "pods", pod), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	f := foreground{t: Terminal{Err: &out}, log: slog.New(slog.NewTextHandler(&out, nil)), dataDir: dir}
	ready := make(chan struct{})
	close(ready)
	f.during(ready)(nil)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "pods=2") {
		t.Errorf("%s", got)
	}
	out.Reset()
	f.during(make(chan struct{}))(errors.New("no"))
	if out.Len() > 0 {
		t.Errorf("%s", out.String())
	}
}
