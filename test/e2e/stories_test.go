// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestStories runs the scripts of examples/debugging against pods of images that hold one static program each (DC-16, IX-11, EC-28).
func TestStories(t *testing.T) {
	t.Parallel()
	s := shared(t)
	folder := "../../examples/debugging"
	archives, err := filepath.Glob("../../bin/images/first-light-*.tar")
	if err != nil || len(archives) != 2 {
		t.Fatalf("the examples' images are not built (%v, %v): run `make test-e2e`", archives, err)
	}
	if out, err := s.Wherry(s.Context(), append([]string{"image", "import"}, archives...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.Kubectl("apply", "-f", filepath.Join(folder, "pods.yaml"))
	before := s.WaitReady("neato")
	s.Wait("broken", "be in a crash loop", func(p *corev1.Pod) bool {
		c := Status(p, "web")
		return c != nil && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
	})
	run := func(t *testing.T, code int, script string, args ...string) Result {
		t.Helper()
		cmd := exec.CommandContext(s.Context(), filepath.Join(folder, script), args...)
		cmd.Env = append(os.Environ(), "WHERRY="+s.World.Wherry, "NAMESPACE="+s.Namespace, "KUBECONFIG="+s.Kubeconfig, "HOME="+t.TempDir())
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		got, err := exitCode(cmd.Run())
		if err != nil {
			t.Fatal(err)
		}
		r := Result{T: t, Line: script, Out: out.String(), Err: errs.String(), Code: got}
		return r.exits(code)
	}
	t.Run("DC-16 Jonas", func(t *testing.T) {
		run(t, 0, "1-inspect.sh").Has("/web", "index.html", "nameserver", ":8080", "First light of pod neato")
	})
	t.Run("DC-16 Thurston", func(t *testing.T) {
		run(t, 0, "2-trace.sh").Has("inside its mount namespace", "/web")
	})
	t.Run("DC-16 IX-11 Ginger and Abe", func(t *testing.T) {
		run(t, 0, "3-audit.sh").Has("  /c/neato\n", "  /c/page\n", "pod/neato: 0", "  /c/web\n", "pod/broken: 0")
	})
	t.Run("DC-16 Roy, the dead", func(t *testing.T) {
		if r := run(t, 0, "4-diagnose.sh", "broken").Has("container web is dead", `"exitCode": 1`, "/site/index.html").HasNot("container notes"); strings.Contains(r.Err, "status.json") {
			t.Errorf("it complains: %s", r.Err)
		}
	})
	t.Run("DC-16 Roy, the living", func(t *testing.T) {
		run(t, 0, "4-diagnose.sh", "neato").Has(":8080", "processes:")
	})
	if now := s.Get("neato"); facts(now) != facts(before) {
		t.Errorf("EC-28 the pod is %s; it was %s", facts(now), facts(before))
	}
}
