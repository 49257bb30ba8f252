// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/wherryproject/wherry/test/e2e"
)

// looker is the kubeconfig of jane, who may look at what is in the namespace, and no more.
func looker(s *e2e.Space) string {
	s.T.Helper()
	s.Kubectl("create", "rolebinding", "lookers", "--clusterrole", "view", "--group", s.Namespace+"-lookers")
	file := filepath.Join(s.T.TempDir(), "jane.yaml")
	if out, err := s.Wherry(s.Context(), "kubeconfig", "--user", "jane", "--group", s.Namespace+"-lookers", "--ttl",
		"1h", "--server", s.Config.Host, "-o", file).CombinedOutput(); err != nil {
		s.T.Fatalf("%v: %s", err, out)
	}
	return file
}

// visit runs a command from the toolbox in a pod, which leaves a record.
func visit(s *e2e.Space, pod string, command ...string) {
	s.T.Helper()
	cmd := s.Wherry(s.Context(), append([]string{"exec", pod, "-n", s.Namespace, "-m", "wherry.dev/toolbox", "--"},
		command...)...)
	if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil {
		s.T.Fatalf("%v: %s", err, out)
	}
}

const recordLines = `document.querySelectorAll(".record-grid .row:not(.head)")`

// UI-05 UI-08 UI-09: who looks into a pod is in the record as it happens, is found by person and pod, and stays when
// the pod goes.
func TestRecord(t *testing.T) {
	s := space(t)
	for _, name := range []string{"api", "web"} {
		s.Create(e2e.NewPod(name, e2e.Named("app", e2e.Sh(e2e.Idle))))
		s.WaitReady(name)
	}
	tab := open(t, s)
	tab.Go("/ui/record?namespace=" + s.Namespace)
	tab.Sees("Nobody has looked into a pod", "wherry debug history -n "+s.Namespace,
		"sudo wherry audit -n "+s.Namespace)
	s.Kubectl("exec", "web", "--", "true")
	tab.Sees("exec by wherry-admin into app at")
	visit(s, "web", "sh", "-c", "exit 3")
	tab.Sees("image exec", "sh -c exit 3", "wherry-admin")
	ended := `[...` + recordLines + `].some((e) => e.querySelector(".r-end").innerText === "exit 3")`
	tab.Until("show how it ended", ended)

	tab.Keys("/")
	tab.Keys("user=nobody")
	tab.Sees("Nothing fits the filter.", "--field-selector spec.user=nobody")
	tab.Go("/ui/record?namespace=" + s.Namespace + "&filter=user%3Dwherry-admin+pod%3Dweb+exit")
	tab.Sees("spec.pod.name=web,spec.user=wherry-admin")
	tab.Until("show the one line", recordLines+`.length === 1`)
	tab.TabTo("the lines", `document.activeElement.matches(".record-grid")`)
	tab.Keys(kb.Home)
	tab.Until("tell the line in full", `document.querySelector(".log-whole")?.innerText.includes("could be read only")`)
	tab.Until("name the command that has all of it",
		`document.querySelector(".log-whole .command code")?.innerText.startsWith("wherry kubectl get debugrun web-")`)
	tab.Keys(kb.Enter)
	tab.Until("open the pod", `location.pathname === "/ui/pod" && document.title.startsWith("web ")`)
	tab.Click("Who looked into this pod")
	tab.Sees("wherry debug history web -n " + s.Namespace)
	tab.Click("Pods that were entered")
	tab.Until("show the one pod", recordLines+`.length === 1 && `+recordLines+`[0].innerText.includes("web")`)
	tab.Sees("wherry.dev/Tainted")
	s.Delete("web")
	tab.Until("show that it is gone", recordLines+`.length === 0`)
	tab.Click("Who looked into pods")
	tab.Until("show what was done in it", ended)
}

// UI-02: who may look sees who was there; of what is not his he reads the server's words.
func TestRecordOfWhoMayNot(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh(e2e.Idle)))
	s.WaitReady("web")
	visit(s, "web", "true")
	tab := open(t, s, "--kubeconfig", looker(s))
	tab.Expect("status of 403")
	tab.Go("/ui/record?namespace=" + s.Namespace)
	tab.Sees("image exec", "wherry-admin", "exit 0")
	tab.Go("/ui/record?namespace=kube-system")
	tab.Sees(`debugruns.debug.wherry.dev is forbidden: User "jane" cannot list resource "debugruns"`,
		`User "jane" cannot list resource "pods"`)
	if n := Get[int](tab, recordLines+".length"); n != 0 {
		t.Errorf("%d lines all the same", n)
	}
}

// UI-05: a debug session is seen to begin and to end.
func TestRecordFollowsASession(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Named("app", e2e.Sh(e2e.Idle))))
	s.WaitReady("web")
	tab := open(t, s)
	tab.Go("/ui/record?namespace=" + s.Namespace)
	tab.Sees("Nobody has looked into a pod")
	shell := open(t, s)
	shell.View("pod/shell", s, "web")
	shell.Click("Debug session beside app")
	shell.Until("have a session", `document.querySelector(".session-bar [role=status]")?.innerText.includes(": open")`)
	tab.Sees("debug container", "beside app", "running")
	shell.Keys("exit 4\r")
	tab.Until("show how it ended", `[...`+recordLines+`].some((e) => e.querySelector(".r-end").innerText === "exit 4")`)
}
