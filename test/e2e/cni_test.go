// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
)

// PL-37: pods are on the network of CNI plug-ins that the cluster installs, as Calico, Cilium and flannel do from pods on the host's network:
// the node says that it has none yet, those pods run, and once the plug-in's file is there the node is ready and other pods are on its network;
// with --bridge-name they reach the API server by its service's address. Purge has the plug-in give back what it gave.
func TestCNIPlugins(t *testing.T) {
	t.Parallel()
	plugins, err := filepath.Abs("../../bin/debian/usr/lib/cni")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(plugins, "bridge")); err != nil {
		t.Skipf("Debian's CNI plug-ins are not here: run tools/setup.sh containerd (%v)", err)
	}
	var id [3]byte
	_, _ = rand.Read(id[:])
	bridge, prefix := fmt.Sprintf("wc%x", id), fmt.Sprintf("10.%d.%d.", 96+id[0]%32, id[1])
	link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf, leases := filepath.Join(dir, "net.d"), filepath.Join(dir, "leases")
	s := own(t, ServerOptions{Unready: true, Args: []string{"--cni-conf-dir", conf, "--cni-bin-dir", plugins, "--bridge-name", bridge, "--service-cidr", "10.98.79.0/24"}})
	t.Cleanup(func() { // runs before the server is purged
		if err := netlink.LinkDel(link); err != nil {
			t.Error(err)
		}
	})
	k := inDefault(t, s)
	ready := func(is corev1.ConditionStatus, why string) {
		t.Helper()
		k.nodeUntil("is ready: "+string(is)+" "+why, func(n *corev1.Node) bool {
			return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == is && strings.Contains(c.Message, why)
			})
		})
	}
	ready(corev1.ConditionFalse, "cni plugin not initialized")
	k.pod("metadata: {name: installer}\nspec: {hostNetwork: true, tolerations: [{operator: Exists}], containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.WaitReady("installer")
	text := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "bridge", "bridge": %q, "isGateway": true,
		"ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "%s0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		{"type": "portmap", "capabilities": {"portMappings": true}}]}`, bridge, leases, prefix)
	if err := os.WriteFile(filepath.Join(conf, "10-other.conflist"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ready(corev1.ConditionTrue, "")
	k.letView()
	pod := k.lists("lists", "false", inClusterImage(k))
	if !strings.HasPrefix(pod.Status.PodIP, prefix) {
		t.Errorf("PL-37 the pod has the address %s, which is not of %s0/24", pod.Status.PodIP, prefix)
	}
	k.must(s.Purge(t.Context()))
	given, err := filepath.Glob(filepath.Join(leases, "other", "10.*"))
	if err != nil || len(given) > 0 {
		t.Errorf("PL-37 of the plug-in's addresses are left: %v %v", given, err)
	}
}
