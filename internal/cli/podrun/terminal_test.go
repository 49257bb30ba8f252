// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/internal/cli/progress"
)

// TestLogsOnATerminal (RS-13): a container's log lines may be coloured and do nothing else to the terminal, however they arrive. What is not
// a terminal gets every byte.
func TestLogsOnATerminal(t *testing.T) {
	const log = "\x1b[32mgrün\x1b[0m\x1b]0;PWNED\a\x1b[2J\r\nx\xff\n"
	for _, prefixed := range []bool{false, true} {
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		all := make(chan string)
		go func() {
			text, _ := io.ReadAll(master) // ends with EIO when the last writer has closed
			all <- strings.ReplaceAll(string(text), "\r\n", "\n")
		}()
		s := &Screen{Out: tty, Err: tty, prefixed: prefixed}
		w := s.Log("p", "web", false)
		for i := range len(log) {
			_, _ = w.Write([]byte{log[i]})
		}
		s.Show("p", progress.Line{Container: "web", Text: "failed: \x1b[2J"})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		tty.Close()
		// Byte by byte a style is ended after each, so that nothing else is coloured.
		got := strings.ReplaceAll(<-all, "\x1b[0m\x1b[32m", "")
		front := map[bool]string{true: "web | "}[prefixed]
		want := front + "\x1b[32mgrün\x1b[0m" + `\x1b]0;PWNED\x07\x1b[2J` + "\n" + front + `x\xff` + "\n"
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ` web failed: \x1b[2J`+"\n") {
			t.Errorf("prefixed %v: got %q, want %q", prefixed, got, want)
		}

		var file bytes.Buffer
		s = &Screen{Out: &file, Err: &file}
		w = s.Log("p", "web", false)
		_, _ = io.WriteString(w, log)
		if file.String() != log {
			t.Errorf("to a file: %q", file.String())
		}
	}
}
