// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/e2e"
)

// Prints waits until the terminal shows a text.
func (tab *Tab) Prints(text string) {
	tab.T.Helper()
	tab.Until("print "+text,
		fmt.Sprintf(`document.querySelector(".xterm-rows")?.innerText.replaceAll("\u00a0", " ").includes(%q)`, text))
}

// UI-07: a shell is typed in, is as large as its window, goes on in other views; a debug session is left and taken up
// again.
func TestShell(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh(e2e.Idle)))
	s.WaitReady("web")
	tab := open(t, s)
	tab.View("pod/shell", s, "web")
	tab.Click("Shell in main")
	tab.Until("have a shell", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Keys("echo $((6*7))x\r")
	tab.Prints("42x")
	tab.Keys(`was=$(stty size); while [ "$was" = "$(stty size)" ]; do usleep 50000; done; stty size | sed 's/ /-by-/'` +
		"\r")
	tab.Do(chromedp.EmulateViewport(900, 600))
	tab.Until("tell the shell that its window is smaller",
		`/\d+-by-1[01]\d\b/.test(document.querySelector(".xterm-rows").innerText)`)
	tab.Click("Overview")
	tab.Sees("Conditions")
	tab.Click("Shell")
	tab.Prints("-by-1")
	tab.Keys("echo still $((40+2))\r")
	tab.Prints("still 42")
	tab.Keys("exit\r")
	tab.Until("say that it ended", `document.querySelector(".session-bar [role=status]")?.innerText.includes("ended")`)
	tab.Click("Close")

	tab.Click("Debug session beside main")
	tab.Until("have a session", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Keys("keep=th$((1))s; echo $keep\r")
	tab.Prints("th1s")
	tab.Keys(kb.Enter)
	tab.Click("Leave; it goes on")
	tab.Until("have no terminal", `!document.querySelector(".xterm")`)
	tab.Click("Take up again")
	tab.Until("have it again", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Prints("th1s") // what it has written before
	tab.Keys("echo and $keep.\r")
	tab.Prints("and th1s.")
}

// UI-06: the files of a container that has ended are below /c, in a shell in its pod.
func TestFilesOfTheDead(t *testing.T) {
	s := space(t)
	s.Create(e2e.Never("web", e2e.Sh(e2e.Idle), e2e.Named("dead", e2e.Sh("echo what was left > /last.txt; exit 1"))))
	s.Wait("web", "have lost a container", func(p *corev1.Pod) bool { return e2e.Ended(p, "dead") != nil })
	tab := open(t, s)
	tab.View("pod/shell", s, "web")
	tab.Click("Shell with all containers' files")
	tab.Until("have a shell", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Keys("cat /c/dead/last.txt\r")
	tab.Prints("what was left")
}

// UI-02: who may only look is offered no shell; at its address there are the server's words, and so where pods are not
// his.
func TestOnlyLooking(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh("echo hello; "+e2e.Idle)))
	s.WaitReady("web")
	tab := open(t, s, "--kubeconfig", looker(s))
	tab.Expect("status of 403") // for what she asks for that is not hers
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("web", "jane")
	tab.View("pod/logs", s, "web")
	tab.Sees("hello")
	tab.View("pod/shell", s, "web")
	tab.Sees("You may not open a shell here")
	if n := Get[int](tab, `document.querySelectorAll(".shell .bar button").length`); n != 0 {
		t.Errorf("%d buttons are offered for shells", n)
	}
	words, err := chromedp.Run(tab.ctx, chromedp.Evaluate[string](fmt.Sprintf(`fetch("/ui/k8s/api/v1/namespaces/%s/pods/web/exec?command=id&stdout=true").
		then((answer) => answer.text())`, s.Namespace), chromedp.EvalAwaitPromise))
	if err != nil || !strings.Contains(words, "pods/exec") || !strings.Contains(words, "is forbidden") {
		t.Errorf("a shell all the same: %v: %s", err, words)
	}
	tab.Go("/ui/pods?namespace=kube-system")
	tab.Sees(`pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "kube-system"`)
	tab.Go("/ui/nodes")
	tab.Sees(`User "jane" cannot list resource "nodes"`)
	tab.Go("/ui/workloads?namespace=" + s.Namespace)
	tab.Sees("web")
}
