// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// IX-06, DA-03: what a container has left is readable, a variable and a line at a time.
func TestText(t *testing.T) {
	if got := EnvText([]string{"A=1", "KEY=line 1\nline \\2", "EMPTY="}); string(got) != "A=1\nKEY=line 1\\nline \\\\2\nEMPTY=\n" {
		t.Errorf("environment: %q", got)
	}
	for code, want := range map[int]string{0: "", 1: "", 128: "", 129: "SIGHUP", 137: "SIGKILL", 139: "SIGSEGV", 255: ""} {
		if got := Signal(code); got != want {
			t.Errorf("exit code %d: %q", code, got)
		}
	}
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{{"", 3, ""}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 2, "a\nb\n"}, {"a\n", 9, "a\n"}, {"\n\n\n", 2, "\n\n"}} {
		if got := string(LastLines([]byte(c.text), c.lines)); got != c.want {
			t.Errorf("%d lines of %q: %q", c.lines, c.text, got)
		}
	}
}

// IX-06, DA-03: the end of a log is without what its format adds, in whole lines, also where one was written in parts.
func TestLogEnd(t *testing.T) {
	got := CRILogText([]byte("2026-11-20T12:00:00Z stdout F one\n2026-11-20T12:00:00Z stderr P tw\n2026-11-20T12:00:00Z stderr F o three\nnonsense\n2026-11-20T12:00:00Z stdout F \n"))
	if string(got) != "one\ntwo three\n\n" {
		t.Errorf("%q", got)
	}
	const logMost = 1 << 20
	file := filepath.Join(t.TempDir(), "0.log")
	line := []byte("2026-11-20T12:00:00.000000000Z stdout F 0123456789\n")
	if err := os.WriteFile(file, bytes.Repeat(line, 2*logMost/len(line)), 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := CRILogEnd(file, logMost)
	if err != nil || len(end) > logMost || len(end) < logMost/len(line)*10 || string(end[:11]) != "0123456789\n" {
		t.Errorf("%d bytes, %v, beginning %.20q", len(end), err, end)
	}
	if _, err := CRILogEnd(file+".none", logMost); !os.IsNotExist(err) {
		t.Errorf("a log that is not there: %v", err)
	}
}

// FuzzCRILogText takes the format off a container's log, which may be of any runtime, and cut.
func FuzzCRILogText(f *testing.F) {
	f.Add([]byte("2026-11-20T10:00:00.1Z stdout F x\n2026-11-20T10:00:00.1Z stderr P y"))
	f.Add([]byte("   \n\n a b  \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if out := CRILogText(data); len(out) > len(data) || bytes.Count(out, []byte("\n")) > bytes.Count(data, []byte("\n"))+1 {
			t.Errorf("%q becomes %q", data, out)
		}
		if end := LastLines(data, 2); !bytes.HasSuffix(data, end) || bytes.Count(end, []byte("\n")) > 2 {
			t.Errorf("%q ends with %q", data, end)
		}
	})
}
