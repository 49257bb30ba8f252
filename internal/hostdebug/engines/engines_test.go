// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// DA-03: an ended container's files are its layers, the uppermost first, with its volumes; one that runs has a process.
func TestInspected(t *testing.T) {
	var got inspected
	text := `{"Id":"abc","Name":"/web","State":{"Status":"exited","Pid":0,"ExitCode":3,"OOMKilled":true,
 "Health":{"Status":"unhealthy","FailingStreak":2,"Log":[{"ExitCode":0},{"ExitCode":1,"Output":"refused"}]}},"RestartCount":4,
 "Config":{"Image":"app:1","User":"1000","Env":["A=b"]},"HostConfig":{"ReadonlyRootfs":true,"Memory":64},
 "GraphDriver":{"Name":"overlay2","Data":{"UpperDir":"/u","LowerDir":"/l1:/l2"}},
 "Mounts":[{"Type":"bind","Source":"/data","Destination":"/d","RW":false},{"Type":"tmpfs","Source":"","Destination":"/t"}]}`
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	c := got.container(target.Docker)
	if c.Alive() || c.Target.String() != "docker:web" || c.ExitCode != 3 || !c.OOMKilled || !c.ReadOnly || c.State != Exited {
		t.Errorf("%+v", c)
	}
	if c.MemoryLimit != 64 || c.Restarts != 4 || c.Health == nil || *c.Health != (Health{"unhealthy", 2, 1, "refused"}) {
		t.Errorf("%+v, %+v", c, c.Health)
	}
	if dirs := strings.Join(c.Layers.Overlay, " "); dirs != "/u /l1 /l2" {
		t.Errorf("layers %s", dirs)
	}
	if len(c.Binds) != 1 || c.Binds[0] != (Bind{"/data", "/d", true}) {
		t.Errorf("volumes %+v", c.Binds)
	}
	got.State.Status, got.State.PID = "running", 12
	if c := got.container(target.Podman); !c.Alive() || c.PID != 12 || c.Target.Engine != target.Podman {
		t.Errorf("%+v", c)
	}
	got.State.Status = "exited" // a number that is left over is nobody's process
	if c := got.container(target.Docker); c.Alive() {
		t.Errorf("%+v", c)
	}
}

// A name becomes that of a folder, and nothing else.
func TestFolderName(t *testing.T) {
	for name, want := range map[string]string{"web": "web", "/web": "web", "": "target", "..": "target", "../../etc": "etc",
		"a b;c": "a-b-c", "\x1b[31mred": "31mred", ".wherry": "wherry", "nginx: master": "nginx-master"} {
		if got := (&Container{Name: name}).FolderName(); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// Docker's framing of logs: both streams in order; what is none is an error and no text.
func TestFrames(t *testing.T) {
	frame := func(stream byte, text string) string {
		return string([]byte{stream, 0, 0, 0, 0, 0, 0, byte(len(text))}) + text
	}
	read := func(text string) (string, error) {
		out, err := io.ReadAll(&frames{from: io.NopCloser(strings.NewReader(text))})
		return string(out), err
	}
	if got, err := read(frame(1, "out\n") + frame(2, "") + frame(2, "err\n")); err != nil || got != "out\nerr\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := read(frame(1, "whole")[:10]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
	if got, err := read("plain text, not framed"); err == nil {
		t.Errorf("%q is taken for a log", got)
	}
}

// FuzzFrames reads logs; whatever comes, it ends.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Add([]byte{2, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, text []byte) {
		out, _ := io.ReadAll(&frames{from: io.NopCloser(bytes.NewReader(text))})
		if len(out) > len(text) {
			t.Errorf("%d bytes of %d", len(out), len(text))
		}
	})
}

// FuzzAnswers reads what engines answer; nothing of it ends the program.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"Id":"a","Name":"/x","State":{"Pid":-1}}`), "MainPID=0\nActiveState=active\n")
	f.Add([]byte(`[{"Id":"a","Names":[],"Created":-1}]`), "=\n\n=")
	f.Fuzz(func(t *testing.T, text []byte, unit string) {
		var one inspected
		if json.Unmarshal(text, &one) == nil {
			if c := one.container(target.Docker); c.PID < 0 || c.FolderName() == "" {
				t.Errorf("%+v", c)
			}
		}
		_, _ = podmanList(text)
		if pid, err := properties(unit).mainPID(); err == nil && pid <= 0 {
			t.Errorf("%q: process %d", unit, pid)
		}
	})
}

// A unit that cannot be joined says why and what to do.
func TestUnits(t *testing.T) {
	for text, want := range map[string]string{
		"LoadState=not-found\nActiveState=inactive\nMainPID=0\n":                                "no such unit",
		"LoadState=loaded\nActiveState=failed\nMainPID=0\nResult=exit-code\nExecMainStatus=3\n": "result exit-code, status 3",
		"LoadState=loaded\nActiveState=active\nSubState=exited\nMainPID=0\n":                    "pid:NUMBER",
		"LoadState=loaded\nActiveState=active\n":                                                "not a service",
		"LoadState=loaded\nMainPID=x\n":                                                         `"x"`,
	} {
		if pid, err := properties(text).mainPID(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v", text, pid, err)
		}
	}
	if pid, err := properties("LoadState=loaded\nActiveState=active\nMainPID=42\n").mainPID(); err != nil || pid != 42 {
		t.Errorf("%d, %v", pid, err)
	}
}

// A process is described by the kernel; one that is not there, or is the kernel's, is said to be so.
func TestProcesses(t *testing.T) {
	p := processes{"/proc"}
	own := target.Target{Engine: target.PID, Name: strconv.Itoa(os.Getpid())}
	c, err := p.Find(t.Context(), own)
	if err != nil || c.PID != os.Getpid() || !c.Alive() || len(c.Args) == 0 || len(c.Env) == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := p.Find(t.Context(), target.Target{Engine: target.PID, Name: "4194303"}); err == nil {
		t.Errorf("%+v", c)
	}
	if _, err := c.Log(t.Context(), 1); err == nil {
		t.Error("a process has a log")
	}
}

// systemd that is installed and does not run, as in a container, is absent: nothing of it is asked.
func TestNoSystemd(t *testing.T) {
	var absent *enginesocket.Absent
	_, err := units{processes{"/proc"}, filepath.Join(t.TempDir(), "none")}.List(t.Context())
	if !errors.As(err, &absent) || !strings.Contains(err.Error(), "does not run on this machine") {
		t.Error(err)
	}
}

// A rootless engine that is looked at is that of who has called sudo, else of who asks.
func TestCaller(t *testing.T) {
	env := func(text string) func(string) string { return func(string) string { return text } }
	for _, c := range []struct {
		uid  int
		sudo string
		want int
	}{{0, "", 0}, {1000, "", 1000}, {0, "0", 0}, {0, "1", 1}, {1000, "1", 1000}, {0, "nonsense", 0}} {
		if got := (Options{UID: c.uid, Getenv: env(c.sudo)}).caller(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
