// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/e2e"
)

// UI-05: when the server dies under an open page, the page says so and shows what it had; when the server is there
// again, so is the page, by itself, in the list, in a pod's life and in its log.
func TestServerRestarts(t *testing.T) {
	port := ""
	if run.skip == "" {
		port = itoa(e2e.FreePort(t))
	}
	srv := own(t, "--secure-port", port)
	s := srv.Space(t)
	s.Create(e2e.NewPod("web", e2e.Sh("echo hello; "+e2e.Idle)))
	s.WaitReady("web")
	s.Kubectl("exec", "web", "--", "true")
	tab := open(t, s)
	for _, view := range []struct{ path, shows string }{
		{"/ui/pods?namespace=" + s.Namespace, "web"},
		{"/ui/pod?name=web&namespace=" + s.Namespace, "Conditions"},
		{"/ui/pod/logs?name=web&namespace=" + s.Namespace, "hello"},
		{"/ui/record?namespace=" + s.Namespace, "exec by wherry-admin"},
	} {
		tab.Go(view.path)
		tab.Sees(view.shows)
		tab.Expect("ERR_|status of 50|WebSocket")
		srv.Kill()
		tab.Sees("Not connected; trying again")
		tab.Sees(view.shows)
		if err := srv.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		tab.SeesNot("Not connected")
		tab.Sees(view.shows)
		switch {
		case strings.Contains(view.path, "/logs"):
			s.Kubectl("exec", "web", "--", "sh", "-c", "echo and after > /proc/1/fd/1")
			tab.Sees("and after")
			if n := strings.Count(tab.Text(".log-list"), "hello"); n != 1 {
				t.Errorf("the line from before the restart is there %d times", n)
			}
		case strings.Contains(view.path, "/pods"):
			s.Create(e2e.NewPod("later", e2e.Sh(e2e.Idle)))
			tab.Sees("later")
		case strings.Contains(view.path, "/record"):
			visit(s, "web", "true")
			tab.Sees("image exec")
		}
	}
}

// UI-02 UI-03: `wherry server --ui`, over https: one signs in by a token, is who that is of, and leaves nothing of it
// in the browser.
func TestSignInByToken(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh("echo hello; "+e2e.Idle)))
	s.WaitReady("web")
	s.Kubectl("create", "serviceaccount", "looker")
	s.Kubectl("create", "rolebinding", "lookers", "--clusterrole", "edit", "--serviceaccount", s.Namespace+":looker")
	token := strings.TrimSpace(s.Kubectl("create", "token", "looker").Out)
	tab := newTab(t)
	tab.Expect("status of 40[13]|closed before the connection is established|HTTP Authentication failed")
	tab.Go(s.Config.Host + "/ui/")
	tab.Sees("Token of a service account or user")
	tab.ClickOn(`document.querySelector("#token")`)
	tab.Keys("wrong\r")
	tab.Until("refuse a wrong token", `document.querySelector("[role=alert]")?.innerText`)
	tab.ClickOn(`document.querySelector("#token")`)
	Get[int](tab, `(document.querySelector("#token").value = "", 0)`)
	tab.Keys(token + "\r")
	tab.Sees("system:serviceaccount:" + s.Namespace)
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("web")
	if kept := Get[string](tab,
		`document.cookie + " " + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`); strings.Contains(kept,
		token[:20]) || kept[0] != ' ' {
		t.Errorf("a script of the page can see %s", kept)
	}
	tab.View("pod/logs", s, "web")
	tab.Sees("hello")
	tab.View("pod/shell", s, "web")
	tab.Click("Shell in main")
	tab.Until("have a terminal", `document.activeElement.matches(".xterm textarea")`)
	tab.Keys("echo $((6*7))x\r")
	tab.Prints("42x")
	tab.Click("Sign out")
	tab.Sees("Token of a service account or user")
}
