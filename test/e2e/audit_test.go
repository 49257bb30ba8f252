// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/images"
)

// audit is `wherry audit` of the space's namespace, on the server's own log.
func (s *Space) audit(args ...string) Result {
	s.T.Helper()
	return s.wherry(nil, append([]string{"audit", "--data-dir", s.DataDir}, args...)...)
}

// TestAuditCommand: what people did to a pod is told with user, image, command, container and result (EC-22, DC-03, IX-07), what
// was refused too, and -f tells what comes.
func TestAuditCommand(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Sh("sleep 1000")))
	s.WaitReady("web")
	s.Kubectl("exec", "web", "--", "sh", "-c", "exit 0")
	if r := s.KubectlFails("exec", "web", "--", "sh", "-c", "exit 3"); r.Code != 3 {
		t.Errorf("exec ended with %d", r.Code)
	}
	s.Kubectl("debug", "web", "--image="+images.BusyboxRef, "--target=main", "-c", "dbg", "--", "sleep", "1")
	if r := s.wherry(strings.NewReader(""), "exec", "-m", images.BusyboxRef, "web", "--", "ls", "/c/main"); r.Code != 0 {
		t.Errorf("image exec: %d %s", r.Code, r.Err)
	}
	if r := s.wherry(strings.NewReader(""), "debug", "web", "--", "sh", "-c", "exit 4"); r.Code != 4 {
		t.Errorf("debug: %d %s", r.Code, r.Err)
	}
	s.KubectlFails("--as", "eve", "exec", "web", "--", "id")
	s.KubectlFails("--as", "eve", "get", "secrets")

	s.audit("web").Has("create pods/web", "exec in pods/web -c main: sh -c 'exit 0'", "exit 3",
		"add debug container to pods/web: dbg of image "+images.BusyboxRef+", target main: sleep 1",
		"image exec in pods/web: image "+images.BusyboxRef+": ls /c/main", "exit 0", "101 exit 4", "as eve", "403 Forbidden")
	s.audit("web", "--user", "eve").Has("get pods/web", "403 Forbidden").HasNot("exit 3") // kubectl looks at the pod first
	s.audit("--refused", "-o", "wide").Has("list secrets", "cannot list resource")
	s.audit("web", "-o", "json").Has(`"kind":"Event"`, `"debug.wherry.dev/image":"`+images.BusyboxRef+`"`)

	follow := s.command("audit", "--data-dir", s.DataDir, "-f", "--since", "1s", "--verb", "delete")
	defer follow.cancel()
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	s.Delete("web")
	told := false
	for lines := bufio.NewScanner(out); !told && lines.Scan(); {
		told = strings.Contains(lines.Text(), "delete pods/web")
	}
	if !told {
		t.Error("the deletion was not told")
	}
	follow.cancel()
	_ = follow.Wait() // it was ended
}
