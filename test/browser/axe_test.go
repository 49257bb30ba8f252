// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/wherryproject/wherry/test/e2e"
)

// axeFile is axe-core, which judges how well a page serves those who do not see it, or do not use a mouse.
const axeFile = "../../ui/node_modules/axe-core/axe.min.js"

// axe returns axe-core's source.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(axeFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("axe-core is not here: run npm ci in ui, as make test-browser does")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// fault is what axe-core finds.
type fault struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target         []any
		FailureSummary string
	}
}

// grave reports whether a fault keeps somebody from using the page.
func (f fault) grave() bool { return f.Impact == "serious" || f.Impact == "critical" }

func (f fault) String() string {
	out := fmt.Sprintf("%s: %s (%s)", f.Impact, f.Help, f.ID)
	for i, n := range f.Nodes {
		if i == 4 {
			return out + fmt.Sprintf("\n\tand %d more", len(f.Nodes)-i)
		}
		out += fmt.Sprintf("\n\t%v: %s", n.Target, strings.ReplaceAll(n.FailureSummary, "\n", " "))
	}
	return out
}

// judged is what axe-core has to say of what a tab shows, by all of its rules or those that are named.
func judged(tab *Tab, source string, rules ...string) []fault {
	tab.T.Helper()
	if !Get[bool](tab, `"axe" in window`) {
		tab.Do(chromedp.Evaluate[chromedp.Void](source + "\n;undefined"))
	}
	// colours on their way from one to another are neither
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.getAnimations().filter((a) => a.effect?.getTiming().iterations !== Infinity).forEach((a) => a.finish())`))
	only := "{}"
	if len(rules) > 0 {
		only = fmt.Sprintf(`{runOnly: {type: "rule", values: ["%s"]}}`, strings.Join(rules, `", "`))
	}
	out, err := chromedp.Run(tab.ctx, chromedp.Evaluate[[]fault](
		`axe.run(document, {resultTypes: ["violations"], preload: false, ...`+only+`}).then((r) => r.violations.map((v) => ({ID: v.id, Impact: v.impact,
			Help: v.help, Nodes: v.nodes.map((n) => ({Target: n.target, FailureSummary: n.failureSummary}))})))`,
		chromedp.EvalAwaitPromise))
	if err != nil {
		tab.T.Fatalf("axe-core: %v", err)
	}
	return out
}

// accessible judges what a tab shows: on a small screen and a large one, in light and in dark, which are other colours
// and nothing else.
func accessible(tab *Tab, source, what string) {
	tab.T.Helper()
	for _, wide := range []int64{1400, 320} {
		tab.Do(chromedp.EmulateViewport(wide, 800))
		for scheme, rules := range map[string][]string{"light": nil, "dark": {"color-contrast"}} {
			prefers(tab, scheme)
			for _, f := range judged(tab, source, rules...) {
				if f.grave() {
					tab.T.Errorf("%s, %s, %d wide: %s", what, scheme, wide, f)
				} else {
					tab.T.Logf("%s, %s, %d wide: %s", what, scheme, wide, f)
				}
			}
		}
	}
	tab.Do(chromedp.EmulateViewport(1280, 800))
}

// prefers has the system be light or dark.
func prefers(tab *Tab, scheme string) {
	tab.T.Helper()
	if _, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
		tab.T.Fatal(err)
	}
}

// UI-09: axe-core finds no serious or critical fault in any view, in light and dark, at 320 and at 1400 pixels.
func TestAxe(t *testing.T) {
	source := axe(t)
	s := space(t)
	s.Create(e2e.WithInit(e2e.NewPod("web",
		e2e.Named("app", e2e.Sh(`mkdir -p /srv; echo port=80 > /srv/app.conf; echo '{"level":"warn","msg":"slow","ms":812}'; echo plain; `+e2e.Idle)),
		e2e.Named("dead", e2e.Sh("mkdir -p /srv; echo port=81 > /srv/app.conf; echo no database > /dev/termination-log; exit 3"))),
		e2e.Named("prepare", e2e.Sh("echo prepared")), e2e.Sidecar(e2e.Named("proxy", e2e.Sh(e2e.Idle)))))
	s.WaitRestarts("web", "dead", 1)
	s.WaitWaiting("web", "dead", "CrashLoopBackOff")
	visit(s, "web", "true")
	s.Kubectl("exec", "web", "-c", "app", "--", "true")
	tab := open(t, s)
	at := "?namespace=" + s.Namespace + "&name=web"
	for _, view := range []struct{ path, shows string }{
		{"/ui/pods?namespace=" + s.Namespace, "CrashLoopBackOff"}, {"/ui/pods?namespace=" + s.Namespace + "&filter=none", "No pod fits"},
		{"/ui/workloads?namespace=" + s.Namespace, "web"}, {"/ui/services", "kubernetes"}, {"/ui/nodes", "Since"},
		{"/ui/pod" + at, "Why it is not ready"}, {"/ui/pod/logs" + at + "&container=app", "slow"},
		{"/ui/pod/logs" + at + "&container=dead&previous=1", "--previous"},
		{"/ui/pod/files" + at + "&path=/srv", "app.conf"}, {"/ui/pod/files" + at + "&path=/srv/app.conf&file=1", "port=80"},
		{"/ui/pod/files" + at + "&path=/srv&show=changed", "looked at"},
		{"/ui/pod/files" + at + "&path=/srv&with=dead", "how it differs"},
		{"/ui/pod/files" + at + "&path=/srv/app.conf&file=1&with=dead", "− app"},
		{"/ui/pod/yaml" + at, "kind: Pod"}, {"/ui/object?kind=Service&namespace=default&name=kubernetes", "kind: Service"},
		{"/ui/record?namespace=" + s.Namespace, "image exec"}, {"/ui/record?show=pods&namespace=" + s.Namespace, "web"},
		{"/ui/nothing", "There is no such page"}, {"/ui/pod" + strings.Replace(at, "web", "none", 1), "none"},
	} {
		tab.Expect("status of 404")
		tab.Go(view.path)
		tab.Until("show "+view.shows, fmt.Sprintf("document.body.innerText.toLowerCase().includes(%q)", strings.ToLower(view.shows)))
		accessible(tab, source, view.path)
	}
}

// UI-09: nor in what opens over or in a view, nor where one signs in.
func TestAxeOfWhatOpens(t *testing.T) {
	source := axe(t)
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh(`echo '{"level":"error","msg":"lost"}'; `+e2e.Idle)))
	s.WaitReady("web")
	tab := open(t, s)
	tab.View("pod/logs", s, "web")
	tab.Sees("lost")
	tab.ClickOn(`document.querySelector(".log-row")`)
	tab.Until("show the whole line", `document.querySelector(".log-whole pre")`)
	accessible(tab, source, "a line of a log")
	tab.Keys("?")
	tab.Until("explain its keys", `document.querySelector("dialog[open]")`)
	accessible(tab, source, "the keys")
	tab.View("pod/shell", s, "web")
	tab.Sees("Shell in main")
	accessible(tab, source, "before a shell")
	tab.Click("Shell in main")
	tab.Until("have a shell", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Prints("#")
	accessible(tab, source, "a shell")
	tab.Expect("status of 401|closed before the connection is established|HTTP Authentication failed")
	tab.Click("Sign out")
	tab.Sees("You are not signed in")
	accessible(tab, source, "signed out, links")
	other := newTab(t)
	other.Expect("status of 401")
	other.Go(s.Config.Host + "/ui/")
	other.Sees("Token of a service account or user")
	accessible(other, source, "signed out, tokens")
}
