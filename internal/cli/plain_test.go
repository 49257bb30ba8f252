// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
)

// hostile is what a terminal would obey: a title, a clearing of the screen by C1, a line written over, text that runs the other way.
const hostile = "a\x1b]0;PWNED\a\u009b2J\rb\u202ec"

// onTerminal returns what reaches a terminal, with its own line ends taken back.
func onTerminal(t *testing.T, write func(tty *os.File)) string {
	t.Helper()
	t.Setenv("TERM", "xterm")
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
	write(tty)
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	return <-all
}

// TestHostileWords (RS-13): what a server or a container says does not act on the terminal: refusals, logs, names of files.
// ATTACK A26.
func TestHostileWords(t *testing.T) {
	debug := func(d *debugServer) func(tty *os.File) {
		config := d.kubeconfig(t)
		return func(tty *os.File) {
			run(Terminal{In: strings.NewReader(""), Out: tty, Err: tty}, []string{"debug", "--kubeconfig", config, "web", "--", "true"})
		}
	}
	ended := &debugServer{pod: podDebuggedBefore(), log: "\x1b[31mred\x1b[0m " + hostile + "\n"}
	ended.exec = func(w http.ResponseWriter, r *http.Request) {
		if err := podspec.SetDebugRuns(ended.pod, podspec.DebugRuns{"debug": {Request: r.URL.Query().Get(debugask.ParamRequest)}}); err != nil {
			t.Error(err)
		}
		refusing(500, metav1.StatusReasonInternalError, "container is not running")(w, r)
	}
	for name, c := range map[string]struct {
		write func(tty *os.File)
		want  string
	}{
		"refusal": {debug(&debugServer{pod: podDebuggedBefore(), exec: refusing(403, metav1.StatusReasonForbidden, hostile)}), "error:"},
		"log":     {debug(ended), "\x1b[31mred\x1b[0m a"},
		"argument": {func(tty *os.File) {
			run(Terminal{In: strings.NewReader(""), Out: tty, Err: tty}, []string{"run", "-f", "/no/" + hostile})
		}, "error:"},
	} {
		got := onTerminal(t, c.write)
		if !strings.Contains(got, c.want) || !strings.Contains(got, `a\x1b]0;PWNED\x07\u009b2J\x0db\u202ec`) {
			t.Errorf("%s: got %q", name, got)
		}
		if strings.ContainsAny(strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(got), "\x1b\a\r\u009b\u202e") {
			t.Errorf("%s: the terminal would obey %q", name, got)
		}
	}
}
