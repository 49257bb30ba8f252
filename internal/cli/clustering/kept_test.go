// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/cluster/manifest"
)

// keeps proves that what was chosen at earlier calls is kept, and said, until something else is chosen or the defaults
// are wanted. Before it, --max-ttl was given.
func (c *cluster) keeps(t *testing.T) {
	t.Helper()
	is := func(args []string, kept string, want ...string) {
		t.Helper()
		_, errs, err := call(t, nil, append([]string{"install", "--kubeconfig", c.admin, "--wait=false"}, args...)...)
		line := ""
		for l := range strings.Lines(errs) {
			if strings.Contains(l, "kept") {
				line = strings.TrimSpace(l)
			}
		}
		if err != nil || line != kept {
			t.Errorf("%q: %v, %q", args, err, line)
		}
		d, err := c.AppsV1().Deployments("wherry-debug").Get(t.Context(), apiName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.AppsV1().DaemonSets("wherry-debug").Get(t.Context(), agentName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := append(d.Spec.Template.Spec.Containers[0].Args, a.Spec.Template.Spec.Containers[0].Args...)
		for k, v := range a.Spec.Template.Spec.NodeSelector {
			got = append(got, k+"="+v)
		}
		for _, w := range want {
			if not, is := strings.CutPrefix(w, "no "); slices.Contains(got, not) == is {
				t.Errorf("%q: %q, want %s", args, got, w)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "values")
	if err := os.WriteFile(file, []byte("agent: {nodeSelector: {pool: apps}, tolerations: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	is([]string{"--cri-socket", "/x.sock", "-f", file}, "kept from the earlier installation: limits.maxTTL=1h (--reset-values: the defaults)",
		"--max-ttl=1h", "--cri-socket=/x.sock", "pool=apps")
	is(nil, "kept from the earlier installation: agent.criSocket=/x.sock, agent.nodeSelector.pool=apps, agent.tolerations=[], limits.maxTTL=1h "+
		"(--reset-values: the defaults)", "--max-ttl=1h", "--cri-socket=/x.sock", "pool=apps", "kubernetes.io/os=linux")
	is([]string{"--max-ttl", "2h", "--node-selector", "disk=fast"},
		"kept from the earlier installation: agent.criSocket=/x.sock, agent.tolerations=[] (--reset-values: the defaults)",
		"--max-ttl=2h", "disk=fast", "no pool=apps")
	patch := `{"metadata":{"annotations":{"` + manifest.ChoicesAt + `":"{"}}}`
	if _, err := c.objects.Resource(apiServices()).Patch(t.Context(), registrationName, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := call(t, nil, "install", "--kubeconfig", c.admin); err == nil || !strings.Contains(err.Error(), "--reset-values") {
		t.Errorf("what was chosen cannot be read: %v", err)
	}
	is([]string{"--reset-values", "--force-conflicts"}, "", "--max-ttl=8h", "no --cri-socket=/x.sock", "no disk=fast")
	is(nil, "", "--max-ttl=8h")
}
