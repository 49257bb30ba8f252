// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/e2e"
)

// downloads has the page's downloads go to a folder; done is told when one is there.
func (tab *Tab) downloads() (folder string, done <-chan struct{}) {
	tab.T.Helper()
	folder = tab.T.TempDir()
	came := make(chan struct{}, 8)
	events := true
	err := chromedp.Listen(tab.ctx, func(event any) {
		if e, ok := event.(*browser.EventDownloadProgress); ok && e.State == browser.DownloadProgressStateCompleted {
			came <- struct{}{}
		}
	})
	if err == nil {
		_, err = chromedp.Call(tab.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior:         browser.SetDownloadBehaviorBehaviorAllow,
			BrowserContextID: chromedp.FromContext(tab.ctx).BrowserContextID, DownloadPath: folder,
			EventsEnabled: &events})
	}
	if err != nil {
		tab.T.Fatalf("the browser: %v", err)
	}
	return folder, came
}

// downloaded waits for a download, and returns what it has.
func (tab *Tab) downloaded(done <-chan struct{}, file string) string {
	tab.T.Helper()
	select {
	case <-done:
	case <-time.After(e2e.Timeout):
		tab.T.Fatalf("the browser has no %s", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		tab.T.Fatal(err)
	}
	return string(text)
}

// UI-04 UI-06 UI-08: the files of a container that has ended are walked by the keyboard, looked at as text whatever
// they say they are, fetched, and compared with those of another; what was written is told apart from what the image
// has.
func TestFiles(t *testing.T) {
	s := space(t)
	s.Create(e2e.Never("web",
		e2e.Named("app", e2e.Sh("mkdir -p /srv; echo port=80 > /srv/app.conf; echo only here > /srv/only; "+e2e.Idle)),
		e2e.Named("dead",
			e2e.Sh(`mkdir -p /srv/deep; echo port=81 > /srv/app.conf; echo '<img src=x onerror=alert(1)>' > "$(printf '/srv/a\nb<b>')"; echo what was left > /srv/deep/last.txt; exit 1`))))
	s.Wait("web", "have lost a container", func(p *corev1.Pod) bool { return e2e.Ended(p, "dead") != nil })
	tab := open(t, s)
	tab.View("pod/files", s, "web", "container", "dead")
	tab.Sees("srv/", "It has ended", "ls -la /c/dead/")
	tab.TabTo("the files", `document.activeElement.matches(".files-grid")`)
	tab.Keys(kb.End)
	tab.Until("choose the last one",
		`document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))`)
	tab.Click("srv/")
	tab.Sees("app.conf", `a\nb<b>`, "-rw-r--r--")
	tab.Click(`a\nb<b>`)
	tab.Until("show it as text",
		`document.querySelector(".file-text")?.innerText.includes("<img src=x onerror=alert(1)>")`)
	tab.View("pod/files", s, "web", "container", "dead", "path", "/srv/deep/last.txt", "file", "1")
	tab.Until("show its text", `document.querySelector(".file-text")?.innerText.trim() === "what was left"`)
	tab.Sees("wherry cp " + s.Namespace + "/web:/srv/deep/last.txt")

	folder, done := tab.downloads()
	tab.Click("Download")
	if text := tab.downloaded(done, filepath.Join(folder, "last.txt")); text != "what was left\n" {
		t.Errorf("last.txt has come as %q", text)
	}
	tab.Sees("14 B came")
	tab.View("pod/files", s, "web", "container", "dead", "path", "/srv")
	tab.Sees("app.conf")
	tab.Click("Download folder")
	if archive := tab.downloaded(done, filepath.Join(folder, "srv.tar")); !strings.Contains(archive,
		"srv/deep/last.txt") || !strings.Contains(archive, "srv/a\nb<b>") {
		t.Errorf("srv.tar has come with %d bytes, and not with all files", len(archive))
	}

	tab.Click("What changed")
	tab.Sees("deep/last.txt", "app.conf", "-cmin")
	tab.SeesNot("bin/sh")
	tab.View("pod/files", s, "web", "container", "dead", "path", "/srv", "with", "app")
	tab.Sees("only in app", "only in dead", "other contents of the same size", "diff -rq /c/dead/srv /c/app/srv")
	tab.Click("app.conf")
	tab.Until("show the lines that differ",
		`document.querySelector(".diff")?.innerText.includes("- port=81\n+ port=80")`)
}

// UI-06 UI-08: what a container has deleted of its image's is told, of one that runs and of one that has ended; the
// image's own version can be looked at, fetched, and compared with the container's.
func TestFilesOfTheImage(t *testing.T) {
	s := space(t)
	script := "rm /etc/group; echo changed >> /etc/passwd; mkdir -p /srv; echo new > /srv/new; "
	s.Create(e2e.Never("web", e2e.Named("app", e2e.Sh(script+e2e.Idle)), e2e.Named("dead", e2e.Sh(script+"exit 1"))))
	s.Wait("web", "have lost a container", func(p *corev1.Pod) bool { return e2e.Ended(p, "dead") != nil })
	s.Kubectl("exec", "web", "-c", "app", "--", "sh", "-c", "until [ -e /srv/new ]; do usleep 50000; done")
	tab := open(t, s)
	for _, container := range []string{"app", "dead"} {
		tab.View("pod/files", s, "web", "container", container, "path", "/", "show", "changed")
		tab.Sees("looked at", "srv/new", "deleted file", "etc/group")
		tab.Click("etc/group")
		tab.Sees("the files of the image of " + container)
		tab.Until("show what the image has", `document.querySelector(".file-text")?.innerText.includes("root:x:0")`)
		if command := tab.Text(".files .command code"); !strings.HasSuffix(command, "/c/.wherry/"+container+"/image/etc/group") {
			t.Errorf("it names the command %q", command)
		}
		tab.View("pod/files", s, "web", "container", container, "path", "/etc", "with", container+"@image")
		tab.Sees("only in the image of "+container, "group")
		tab.Click("passwd")
		tab.Until("show the lines that differ", `document.querySelector(".diff")?.innerText.includes("- changed")`)
	}
	tab.View("pod/files", s, "web", "container", "dead@image", "path", "/etc")
	tab.Sees("group")
	folder, done := tab.downloads()
	tab.View("pod/files", s, "web", "container", "dead@image", "path", "/etc/group", "file", "1")
	tab.Until("show it", `document.querySelector(".file-text")?.innerText.includes("root:x:0")`)
	tab.Click("Download")
	if text := tab.downloaded(done, filepath.Join(folder, "group")); !strings.Contains(text, "root:x:0") {
		t.Errorf("group has come as %q", text)
	}
}

// UI-06: a file is written into a container, after the page has asked where it takes another's place.
func TestUpload(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh("mkdir -p /srv; echo old > /srv/app.conf; "+e2e.Idle)))
	s.WaitReady("web")
	tab := open(t, s)
	tab.View("pod/files", s, "web", "path", "/srv")
	tab.Sees("app.conf")
	file := filepath.Join(t.TempDir(), "app.conf")
	if err := os.WriteFile(file, []byte(strings.Repeat("new\n", 300_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	tab.Do(chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), []string{file}))
	tab.Sees("app.conf is there already")
	tab.Click("Replace it")
	tab.Sees("1.1 MiB written to /srv")
	if out := s.Kubectl("exec", "web", "--", "sh", "-c",
		"wc -c < /srv/app.conf; tail -n1 /srv/app.conf").Out; strings.Join(strings.Fields(out), " ") != "1200000 new" {
		t.Errorf("the file in the container: %q", out)
	}
}

// UI-02: who may not image exec reads the server's words for that.
func TestFilesOfWhoMayNot(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh(e2e.Idle)))
	s.WaitReady("web")
	tab := open(t, s, "--kubeconfig", looker(s))
	tab.Expect("403")
	tab.View("pod/files", s, "web")
	tab.Sees("cannot be shown", `User "jane" cannot`, "pods/exec")
}
