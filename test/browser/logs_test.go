// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strconv"
	"testing"

	"github.com/wherryproject/wherry/test/e2e"
)

func itoa(n int) string { return strconv.Itoa(n) }

// UI-05 UI-10: a line that is written is seen in an open log, in the order of time among those of all containers; a long log
// has a few dozen lines in the document; a search marks what it finds.
func TestLogIsFollowed(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Named("front", e2e.Sh("seq 1 20000 | sed 's/^/line /'; "+e2e.Idle)), e2e.Named("back", e2e.Sh("echo begun; "+e2e.Idle))))
	s.WaitReady("web")
	tab := open(t, s)
	tab.View("pod/logs", s, "web", "container", "front")
	tab.Sees("line 20000")
	if n := Get[int](tab, `document.querySelectorAll(".log-row").length`); n < 10 || n > 120 {
		t.Errorf("%d lines are in the document", n)
	}
	say := func(container, words string) {
		t.Helper()
		s.Kubectl("exec", "web", "-c", container, "--", "sh", "-c", "echo '"+words+"' > /proc/1/fd/1")
	}
	say("front", "a word more")
	tab.Sees("a word more")
	tab.View("pod/logs", s, "web")
	tab.Sees("a word more")
	say("back", `{"level":"error","msg":"the disk is full","disk":"sda"}`)
	say("front", "after that")
	tab.Sees("the disk is full", "after that")
	order := Get[string](tab, `[...document.querySelectorAll(".log-row")].map((e) => e.querySelector(".log-text").innerText).slice(-3).join(" / ")`)
	if want := `a word more / errorthe disk is full disk=sda / after that`; order != want {
		t.Errorf("the last lines are %q, want %q", order, want)
	}
	tab.Keys("/")
	tab.Keys("disk")
	tab.Until("mark what was searched for", `document.querySelector(".log-row mark")?.innerText === "disk"`)
}
