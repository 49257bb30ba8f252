// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/e2e"
)

// UI-05 UI-06: the life of a pod is seen as it goes: containers' rows come while they start, and their ends when the pod
// is deleted; then it is there still.
func TestLifeIsWatched(t *testing.T) {
	s := space(t)
	tab := open(t, s)
	tab.Expect("status of 404") // before the pod there is no timeline
	tab.View("pod", s, "app")
	tab.Sees("Life")
	s.Create(e2e.WithInit(e2e.NewPod("app", e2e.Named("front", e2e.Sh(e2e.Idle))),
		e2e.Named("prepare", e2e.Sh("echo prepared")), e2e.Sidecar(e2e.Named("proxy", e2e.Sh(e2e.Idle)))))
	for _, container := range []string{"prepare", "proxy", "front"} {
		tab.Until("have a row of "+container, `[...document.querySelectorAll(".life .label")].some((e) => e.textContent.includes("`+container+`"))`)
	}
	s.WaitReady("app")
	tab.Until("show that all run", `document.querySelector(".pod-head")?.innerText.includes("2/2 ready")`)
	for _, container := range []string{"proxy", "front"} {
		tab.Until("show that "+container+" runs", `[...document.querySelectorAll(".life svg g:has(> .label)")].some((e) =>
			e.querySelector(".label").textContent.includes("`+container+`") && e.querySelector(".state").textContent === "ready")`)
	}
	before := Get[int](tab, `document.querySelectorAll(".life .mark").length`)
	s.Delete("app")
	tab.Sees("This pod is gone")
	tab.Until("show the ends", `document.querySelectorAll(".life .mark").length > `+itoa(before))
	tab.SeesNot("so far")
	text := Get[string](tab, `[...document.querySelectorAll(".life .bar title")].map((e) => e.textContent).join("\n")`)
	for _, what := range []string{"prepare", "proxy", "front"} {
		if !strings.Contains(text, what+":") {
			t.Errorf("no stretch of %s after all has ended:\n%s", what, text)
		}
	}
	tab.Go("/ui/pods")
	tab.View("pod", s, "app") // opened anew, when there is no pod any more
	tab.Until("show the life of a pod that is gone", `document.querySelectorAll(".life .bar").length > 3`)
}

// UI-04 UI-06 UI-08: what a container that keeps dying said last, how it ended, and the log of its run before are a click away.
func TestCrashLoop(t *testing.T) {
	s := space(t)
	c := e2e.Sh("echo starting; echo cannot open the database >&2; echo no database > /dev/termination-log; exit 3")
	c.Name = "front"
	s.Create(e2e.NewPod("web", c))
	s.WaitRestarts("web", "front", 1)
	s.WaitWaiting("web", "front", "CrashLoopBackOff")
	tab := open(t, s)
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("CrashLoopBackOff", "1 in trouble")
	tab.Click("web")
	tab.Sees("Why it is not ready", "exit 3", "no database", "wherry why web")
	tab.Click("its last words")
	tab.Sees("cannot open the database", "--previous")
	if at := Get[string](tab, `location.pathname + " " + new URLSearchParams(location.search).get("container")`); at != "/ui/pod/logs front" {
		t.Errorf("its last words are at %s", at)
	}
}

// UI-05 UI-06: the last run of a container that keeps dying is put beside the one before.
func TestRunsBesideEachOther(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Named("front", e2e.Sh("echo run; exit 3"))))
	s.WaitRestarts("web", "front", 1)
	tab := open(t, s)
	tab.View("pod", s, "web")
	tab.Until("compare the last two runs", `/front: run \d+ beside run \d+/.test(document.querySelector(".runs")?.innerText)`)
	tab.ClickOn(`document.querySelector(".runs summary")`)
	tab.Sees("ran for", "created and started in", "exit 3")
}
