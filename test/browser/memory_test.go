// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/e2e"
)

const (
	// mostMemory is what five pages may take in the server, in MB.
	mostMemory = 40
	// settles is how long a figure is looked at: what was in use least at any moment of it is what is needed.
	settles = 20 * time.Second
)

// Five pages that are open before 200 pods take 40 MB in the server at most, and nothing after they were closed
// that could be told from what it takes at rest. It measures for two minutes, on a machine that should be quiet.
func TestMemoryOfPages(t *testing.T) {
	if os.Getenv("MEASURE") == "" {
		t.Skip("nothing is to be measured (MEASURE=1)")
	}
	srv := own(t, "--ui")
	s := srv.Space(t)
	for i := range 200 {
		pod := e2e.NewPod(fmt.Sprintf("pod-%03d", i), e2e.Sh(e2e.Idle))
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wherry.test/never"}}
		s.Create(pod)
	}
	s.Create(e2e.NewPod("web", e2e.Sh("while :; do echo hello; sleep 1; done")))
	s.WaitReady("web")
	token := strings.TrimSpace(s.Kubectl("create", "token", "default", "-n", "default").Out)
	s.Kubectl("create", "clusterrolebinding", s.Namespace, "--clusterrole", "cluster-admin", "--serviceaccount", "default:default")
	before := least(t, srv.PID())
	at := "?namespace=" + s.Namespace + "&name=web"
	var tabs []*Tab
	for _, view := range []struct{ path, shows string }{{"/ui/pods?namespace=" + s.Namespace, "201 pods"}, {"/ui/pod" + at, "Conditions"},
		{"/ui/pod/logs" + at, "hello"}, {"/ui/nodes", "Since"}, {"/ui/workloads?namespace=" + s.Namespace, "pod-000"}} {
		tab := newTab(t)
		tab.Expect("status of 401|closed before|favicon|HTTP Authentication failed")
		tab.Go(s.Config.Host + view.path)
		tab.ClickOn(`document.querySelector("#token")`)
		tab.Keys(token + "\r")
		tab.Sees(view.shows)
		tabs = append(tabs, tab)
	}
	open := least(t, srv.PID())
	for _, tab := range tabs {
		tab.Do(chromedp.Navigate("about:blank"))
	}
	after := least(t, srv.PID())
	t.Logf("the server: %d MB at rest with 201 pods, %+d MB with five pages open, %+d MB after they were closed", before, open-before, after-before)
	if open-before > mostMemory {
		t.Errorf("five pages take %d MB in the server, and may take %d", open-before, mostMemory)
	}
	if after-before > mostMemory/4 {
		t.Errorf("%d MB are left of five pages that were closed", after-before)
	}
}

// anonymous finds memory that is of no file in what Linux tells of a process.
var anonymous = regexp.MustCompile(`(?m)^Anonymous:\s+(\d+) kB$`)

// least is the least memory of its own that a process had in use for a while, in MB.
func least(t *testing.T, pid int) int {
	t.Helper()
	out := 1 << 30
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < settles; <-tick.C {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			t.Fatal(err)
		}
		figure := anonymous.FindSubmatch(text)
		if figure == nil {
			t.Fatalf("/proc/%d/smaps_rollup has no Anonymous: in kB:\n%s", pid, text)
		}
		kb, err := strconv.Atoi(string(figure[1]))
		if err != nil {
			t.Fatal(err)
		}
		out = min(out, kb/1024)
	}
	return out
}
