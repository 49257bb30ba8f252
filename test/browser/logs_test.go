// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strconv"
	"strings"
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

// UI-05 UI-09: the lines of two containers stand side by side, in the order of one clock, and go on to come.
func TestLogsSideBySide(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Named("front", e2e.Sh("echo begun in front; "+e2e.Idle)), e2e.Named("back", e2e.Sh("echo begun in back; "+e2e.Idle))))
	s.WaitReady("web")
	tab := open(t, s)
	tab.View("pod/logs", s, "web")
	tab.Sees("begun in front", "begun in back")
	tab.Click("Side by side")
	for _, words := range []string{"front asks", "back answers", "front thanks"} {
		container, _, _ := strings.Cut(words, " ")
		s.Kubectl("exec", "web", "-c", container, "--", "sh", "-c", "echo '"+words+"' > /proc/1/fd/1")
		tab.Sees(words)
	}
	left := func(words string) string {
		return `[...document.querySelectorAll(".in-column")].find((e) => e.innerText.includes("` + words + `")).getBoundingClientRect().left`
	}
	if !Get[bool](tab, left("front asks")+` === `+left("front thanks")+` && `+left("front asks")+` + 100 < `+left("back answers")) {
		t.Error("the lines do not stand in columns of their containers")
	}
	if head := tab.Text(".log-head"); strings.Join(strings.Fields(head), " ") != "Time front back" {
		t.Errorf("the columns are called %q", head)
	}
	order := Get[string](tab, `[...document.querySelectorAll(".in-column")].slice(-3).map((e) => e.textContent).join(" / ")`)
	if want := "front: front asks / back: back answers / front: front thanks"; order != want {
		t.Errorf("the last lines are %q, want %q", order, want)
	}
}
