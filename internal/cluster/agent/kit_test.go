// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/cluster/agent"
	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/mountfd"
)

// standKit makes a kit whose program is this one.
func standKit(dir string) int {
	program, err := os.Executable()
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(program); err == nil {
			err = os.WriteFile(filepath.Join(dir, "session"), text, 0o755)
		}
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		return 1
	}
	return 0
}

// showKit tells what a session's process has of its kit: what it is, whether it can be written to, and its guard.
func showKit(reports *json.Encoder) int {
	attached := ""
	dir, err := os.MkdirTemp("", "kit-shown")
	if err == nil {
		defer os.RemoveAll(dir)
		if err = unix.Unshare(unix.CLONE_NEWNS); err == nil {
			err = errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), mountfd.AttachPath(talk.KitFD, dir))
		}
	}
	if err == nil {
		own, _ := os.Stat("/proc/self/exe")
		theirs, _ := os.Stat(filepath.Join(dir, "session"))
		if os.SameFile(own, theirs) {
			attached = "own program"
		}
		err = os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
	}
	guard, gerr := os.Readlink("/proc/self/fd/6")
	text, _ := json.Marshal([]string{attached, errorText(err), guard, errorText(gerr)})
	_ = reports.Encode(talk.Report{Evidence: text})
	return 0
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A session begins with the kit's program, has the kit as a mount that it cannot write to, and the agent's own program
// to guard it; and another session has another such mount. A folder that no program can be run from is no kit.
func TestKit(t *testing.T) {
	if os.Geteuid() != 0 || !mountfd.KernelCan() {
		t.Skip("this makes mounts: it needs root and Linux 5.12")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kit, err := agent.MakeKit(program, filepath.Join(t.TempDir(), "kit"))
	if errors.Is(err, unix.EPERM) {
		t.Skipf("mounts cannot be made here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer kit.Close()
	for range 2 {
		c, err := agent.Place{Here: true, Kit: kit}.Start("/bin/false", talk.Ask{Evidence: &wire.Pod{UID: "u"}},
			agent.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if r := c.Next(); r == nil || json.Unmarshal(r.Evidence, &got) != nil {
			t.Fatalf("%+v", r)
		}
		c.End()
		if got[0] != "own program" || !strings.Contains(got[1], "read-only") || got[2] != program {
			t.Errorf("%q", got)
		}
	}
	noexec := t.TempDir()
	if err := unix.Mount("x", noexec, "tmpfs", unix.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(noexec, 0) }()
	if _, err := agent.MakeKit(program, filepath.Join(noexec, "kit")); err == nil ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("where no program runs: %v", err)
	}
	if _, err := agent.MakeKit("/bin/false", filepath.Join(noexec, "other")); err == nil {
		t.Error("what could not be unpacked is a kit")
	}
}
