// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/wherryproject/wherry/test/e2e"
)

// UI-01 UI-03 UI-08: a link signs in once; every view opens without an error or a breach of its policy, asks nothing of
// other origins, and names its command.
func TestSignInByLink(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh("echo hello; "+e2e.Idle)))
	s.WaitReady("web")
	link, _ := s.Open()
	tab := newTab(t)
	var mu sync.Mutex
	var asked []string
	if err := chromedp.Listen(tab.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	tab.Go(link)
	tab.Sees("web", "wherry-admin")
	if got := Get[string](tab, "document.cookie + location.search"); got != "?namespace="+s.Namespace && got != "" {
		t.Errorf("what a script of the page can see of the sign-in: %q", got)
	}
	for _, view := range []struct{ path, shows string }{
		{"/ui/pods", "web"}, {"/ui/pods?namespace=" + s.Namespace, "web"}, {"/ui/workloads", "web"},
		{"/ui/services", "kubernetes"},
		{"/ui/nodes", "Memory"}, {"/ui/pod?namespace=" + s.Namespace + "&name=web", "Conditions"},
		{"/ui/pod/logs?namespace=" + s.Namespace + "&name=web", "hello"},
		{"/ui/pod/shell?namespace=" + s.Namespace + "&name=web", "Shell in main"},
		{"/ui/pod/files?namespace=" + s.Namespace + "&name=web", "the kernel's"},
		{"/ui/pod/yaml?namespace=" + s.Namespace + "&name=web", "kind: Pod"},
		{"/ui/record?namespace=" + s.Namespace, "image exec"},
		{"/ui/object?kind=Service&namespace=default&name=kubernetes", "kind: Service"},
	} {
		tab.Go(view.path)
		tab.Sees(view.shows)
		if command := tab.Text(".command code"); !strings.HasPrefix(command, "wherry ") {
			t.Errorf("%s names no command: %q", view.path, command)
		}
	}
	mu.Lock()
	for _, address := range asked {
		if !strings.HasPrefix(address, tab.Base+"/") && !strings.HasPrefix(address, "data:") {
			t.Errorf("the page asked for %s", address)
		}
	}
	if len(asked) == 0 {
		t.Error("nothing is known of what the page asked for")
	}
	mu.Unlock()

	second := newTab(t)
	second.Expect("status of 403|favicon.ico") // its words are plain text, which names no icon
	second.Go(link)
	second.Sees("has been used")
	second.Expect("status of 401")
	second.Go("/ui/pods")
	second.Sees("You are not signed in")
	if resp, err := http.Get(tab.Base + "/ui/k8s/api/v1/pods"); err != nil ||
		resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a cookie: %v %v", resp, err)
	}

	tab.Expect("status of 401|closed before the connection is established|HTTP Authentication failed") // a watch that was just being opened
	tab.Click("Sign out")
	tab.Sees("You are not signed in")
	tab.Go("/ui/pods")
	tab.Sees("You are not signed in")
}
