// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/e2e"
)

// UI-05: a pod that is made while the list is open comes into it, is seen to run, and goes when it is deleted.
func TestListIsLive(t *testing.T) {
	s := space(t)
	tab := open(t, s)
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("There are no pods here.")
	pod := s.Create(e2e.NewPod("web", e2e.Sh(e2e.Idle)))
	tab.Sees("web", "1 pod")
	tab.Until("show that it runs", `document.querySelector(".row .status.tone-good")?.innerText === "Running"`)
	tab.Until("show its address", fmt.Sprintf(`document.querySelector(".row .c-ip").innerText === %q ||
		document.querySelector(".row:not(.head) .c-ip").innerText.includes(".")`, pod.Status.PodIP))
	s.Delete("web")
	tab.Sees("There are no pods here.")
}

// UI-10: of 2,000 pods the document has a few dozen at a time, wherever one scrolls, and a filter finds one at once.
func TestManyPods(t *testing.T) {
	s := space(t)
	const many = 2000
	work := make(chan int)
	failed := make(chan error, 8)
	for range cap(failed) {
		go func() {
			var err error
			for i := range work {
				pod := e2e.NewPod(fmt.Sprintf("pod-%04d", i), e2e.Sh(e2e.Idle))
				pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wherry.test/never"}}
				if _, e := s.TryCreate(pod); e != nil {
					err = e
				}
			}
			failed <- err
		}()
	}
	for i := range many {
		work <- i
	}
	close(work)
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	tab := open(t, s)
	begin := time.Now()
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("pod-0000", "2000 pods")
	t.Logf("the list was there after %s", time.Since(begin))
	few := func() {
		t.Helper()
		if n := Get[int](tab, `document.querySelectorAll(".row:not(.head)").length`); n < 10 || n > 80 {
			t.Errorf("%d rows are in the document", n)
		}
	}
	few()
	for _, at := range []struct{ part, shows string }{{"0.5", "pod-1000"}, {"1", "pod-1999"}, {"0", "pod-0000"}} {
		begin = time.Now()
		tab.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{const g = document.querySelector(".grid"); g.scrollTop = (g.scrollHeight - g.clientHeight) * %s}`, at.part)))
		tab.Sees(at.shows)
		t.Logf("scrolled to %s in %s", at.shows, time.Since(begin))
		few()
	}
	tab.Keys("/")
	begin = time.Now()
	tab.Keys("pod-1234")
	tab.Sees("1 of 2000 pods")
	if typed := Get[string](tab, `document.querySelector(".filter").value`); typed != "pod-1234" {
		t.Errorf("the filter has %q", typed)
	}
	t.Logf("filtered in %s", time.Since(begin))
	tab.SeesNot("pod-0000")
}

// UI-09: without a mouse, from the list into a pod's log, and back.
func TestByKeyboardAlone(t *testing.T) {
	s := space(t)
	for _, name := range []string{"api", "web"} {
		s.Create(e2e.NewPod(name, e2e.Sh("echo this is "+name+"; "+e2e.Idle)))
		s.WaitReady(name)
	}
	tab := open(t, s)
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("api", "web")
	tab.TabTo("the list", `document.activeElement.matches(".grid")`)
	tab.Keys(kb.ArrowDown + kb.ArrowDown)
	tab.Until("choose web",
		`document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))?.innerText.includes("web")`)
	tab.Keys(kb.Enter)
	tab.Until("open web", `document.title.startsWith("web ") && document.querySelector(".pod")`)
	tab.Until("have the focus in the new view", `document.activeElement.id === "main"`)
	tab.TabTo("the tab of logs", `document.activeElement.innerText === "Logs"`)
	tab.Keys(kb.Enter)
	tab.Sees("this is web")
	tab.TabTo("the lines", `document.activeElement.matches(".log-list")`)
	tab.Keys(kb.Home)
	tab.Until("show the chosen line", `document.querySelector(".log-whole pre")?.innerText === "this is web"`)
	tab.TabTo("the way back", `document.activeElement.innerText === "Pods"`)
	tab.Keys(kb.Enter)
	tab.Until("be back at the list", `document.querySelector(".grid")?.innerText.includes("api")`)
	tab.Keys("?")
	tab.Until("explain its keys", `document.querySelector("dialog[open]")?.innerText.includes("Ctrl+F6")`)
	tab.Keys(kb.Escape)
	tab.Until("close that", `!document.querySelector("dialog[open]")`)
}

// TabTo presses Tab until the focus is where it should be.
func (tab *Tab) TabTo(what, there string) {
	tab.T.Helper()
	var seen []string
	for range 60 {
		tab.Keys(kb.Tab)
		if Get[bool](tab, there) {
			return
		}
		seen = append(seen,
			Get[string](tab, `document.activeElement.tagName + " " + document.activeElement.innerText.slice(0, 20)`))
	}
	tab.T.Fatalf("Tab does not lead to %s, but to %s", what, strings.Join(seen, ", "))
}

// UI-09: on the smallest screens there is nothing beyond the right edge, in any view; the page is dark where the system
// is.
func TestSmallScreen(t *testing.T) {
	s := space(t)
	name := "a-pod-with-a-name-that-is-longer-than-any-small-screen-is-wide-0123456789"
	pod := e2e.NewPod(name, e2e.Named("a-container-with-quite-a-long-name",
		e2e.Sh(`echo '{"level":"warn","msg":"`+strings.Repeat("long ", 60)+`"}'; `+e2e.Idle)))
	pod.Labels = map[string]string{"app": "long"}
	s.Create(pod)
	s.WaitReady(name)
	tab := open(t, s)
	tab.Do(chromedp.EmulateViewport(320, 640))
	at := "?namespace=" + s.Namespace + "&name=" + name
	for _, view := range []struct{ path, shows string }{
		{"/ui/pods", name}, {"/ui/pods?namespace=" + s.Namespace, name},
		{"/ui/workloads?namespace=" + s.Namespace, name}, {"/ui/services", "kubernetes"},
		{"/ui/nodes", "Memory"}, {"/ui/pod" + at, "Conditions"}, {"/ui/pod/logs" + at, "long"},
		{"/ui/pod/shell" + at, "Shell in"},
		{"/ui/pod/files" + at, "the kernel's"}, {"/ui/pod/files" + at + "&show=changed", "were looked at"},
		{"/ui/pod/yaml" + at, "kind: Pod"}, {"/ui/record?namespace=" + s.Namespace, "image exec"},
		{"/ui/record?show=pods", name}, {"/ui/nodes", "Since"},
	} {
		tab.Go(view.path)
		tab.Sees(view.shows)
		if wide := Get[int](tab,
			`Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`); wide > 320 {
			t.Errorf("%s is %d wide on a screen of 320: %s", view.path, wide, Get[string](tab, `[...document.querySelectorAll("body *")].filter((e) =>
				e.getBoundingClientRect().right > 321).slice(0, 8).map((e) => e.tagName + "." + e.className).join(", ")`))
		}
	}
	// how light the ground of the page and the words on it are
	light := `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector("h1")).color].map((c) =>
		c.match(/[\d.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) / 765)`
	for scheme, dark := range map[string]bool{"dark": true, "light": false} {
		if _, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
			t.Fatal(err)
		}
		if is := Get[[]float64](tab, light); (is[0] < 0.2 && is[1] > 0.7) != dark ||
			(is[0] > 0.9 && is[1] < 0.3) == dark {
			t.Errorf("where the system is %s, the ground is at %.2f and the words are at %.2f of white", scheme, is[0],
				is[1])
		}
	}
}
