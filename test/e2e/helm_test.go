// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHelm: Helm installs a chart of what such charts mostly have, with hooks and a test, upgrades it, gives up a
// broken upgrade and goes back, and leaves nothing when it is uninstalled. (WL-01, WL-02, WL-03, WL-04, WL-15)
func TestHelm(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	program, err := filepath.Abs("../../bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("Helm is not here: run make bin/helm")
	}
	k := newKit(t)
	home := t.TempDir()
	try := func(args ...string) (string, error) {
		cmd := exec.CommandContext(k.ctx(), program, append(args, "--kubeconfig", k.Kubeconfig, "--namespace",
			k.Namespace)...)
		cmd.Env = append(os.Environ(), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home,
			"HELM_DATA_HOME="+home)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	helm := func(args ...string) string {
		t.Helper()
		out, err := try(args...)
		if err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	chart := "../helm/chart"
	greets := func(want string) {
		t.Helper()
		// helm does not wait after it has given up
		k.Kubectl("rollout", "status", "statefulset/shop-store", "--timeout=60s")
		k.says("shop-store-0", "store", "wget -qO- http://shop-web/env/GREETING", want)
		helm("test", "shop", "--timeout", "60s")
	}

	helm("install", "shop", chart, "--wait", "--timeout", "90s")
	greets("one")
	helm("upgrade", "shop", chart, "--set", "greeting=two,replicas=3", "--wait", "--timeout", "90s")
	greets("two")
	if out := k.Kubectl("get", "deployment", "shop-web").Out; !strings.Contains(out, "3/3") {
		t.Errorf("after the upgrade: %s", out)
	}
	if out, err := try("upgrade", "shop", chart, "--set", "broken=true", "--wait", "--rollback-on-failure", "--timeout",
		"8s"); err == nil {
		t.Errorf("an upgrade whose pods are never ready went well: %s", out)
	}
	greets("two")
	helm("rollback", "shop", "1", "--wait", "--timeout", "90s")
	greets("one")
	if out := k.sh("shop-store-0", "store", "cat /data/starts"); strings.TrimSpace(out) != "one\ntwo\none\ntwo\none" {
		t.Errorf("the store was started with %q, which is not what each change gave it", out)
	}
	if out := helm("list", "-o", "json"); !strings.Contains(out, `"status":"deployed"`) {
		t.Errorf("helm list: %s", out)
	}
	// Helm's wait for a deletion ends at once, with "still exists", when all that it has heard of by then is gone: what
	// is still to go is waited for here.
	if out, err := try("uninstall", "shop", "--wait", "--cascade", "foreground", "--timeout", "180s"); err != nil {
		if !strings.Contains(out, "still exists. status: Terminating") {
			t.Fatalf("helm uninstall: %v\n%s", err, out)
		}
		k.Kubectl("wait", "--for=delete", "deployment/shop-web", "statefulset/shop-store", "--timeout=180s")
	}
	if out := k.Kubectl("get", "all,ingresses,poddisruptionbudgets,secrets", "-o",
		"name").Out; strings.TrimSpace(out) != "pod/shop-test" && strings.TrimSpace(out) != "service/kubernetes" {
		t.Errorf("left of it: %s", out)
	}
}
