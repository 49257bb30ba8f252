// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
)

// PL-06, PL-12: a pod that another containerd puts on a bridge of its own reaches the API server with InClusterConfig, if the server is told
// which bridge that is, and so does one on the host's network; also after the server was killed and is back. Purge leaves nothing of the
// rules, and leaves the bridge alone.
func TestExternalInCluster(t *testing.T) {
	t.Parallel()
	var id [3]byte
	_, _ = rand.Read(id[:])
	bridge := fmt.Sprintf("wx%x", id)
	d := StartContainerd(t)
	d.Bridge(t, bridge, fmt.Sprintf("10.%d.%d.0/24", 64+id[0]%32, id[1]))
	d.Load(t, world(t))
	s := own(t, ServerOptions{NoImages: true, Args: append(d.Flags(), "--bridge-name", bridge, "--service-cidr", "10.98.78.0/24", "--bind-address", "127.0.0.1")})
	k := inDefault(t, s)
	d.Import(t, inClusterArchive(k))
	k.letView()
	lists := func(name, network string) {
		t.Helper()
		pod := k.lists(name, network, inClusterRef)
		if onBridge := strings.HasPrefix(pod.Status.PodIP, fmt.Sprintf("10.%d.%d.", 64+id[0]%32, id[1])); onBridge != (network == "false") {
			t.Errorf("%s has the address %s", name, pod.Status.PodIP)
		}
	}
	lists("bridge", "false")
	lists("host", "true")
	s.Kill()
	k.must(s.Start(context.Background()))
	lists("bridge-again", "false")
	lists("host-again", "true")
}
