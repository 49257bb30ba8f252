// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server that keeps its objects in an etcd of its own process, behind TLS with client certificates, runs pods like any other,
// also after it was killed; and without that etcd it says what it cannot reach.
// ATTACK C35.
func TestExternalEtcd(t *testing.T) {
	t.Parallel()
	world(t)
	etcd := StartEtcd(t)
	srv := own(t, ServerOptions{Args: append(etcd.Flags, "--etcd-prefix", "/elsewhere")})
	k := inDefault(t, srv)
	before := k.up("metadata: {name: kept}\nspec: {containers: [{name: c, image: tool, args: [sleep]}]}")
	if _, err := os.Stat(filepath.Join(srv.DataDir, "etcd")); !os.IsNotExist(err) {
		t.Errorf("the data folder has an etcd of its own: %v", err)
	}
	srv.Kill()
	k.must(srv.Start(t.Context()))
	if now := k.Get("kept"); facts(now) != facts(before) {
		t.Errorf("the pod is %s; it was %s", facts(now), facts(before))
	}
	k.Delete("kept")
	k.WaitGone(before)
	k.must(srv.Stop())
	etcd.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	out, err := srv.Wherry(ctx, append([]string{"server", "--data-dir", srv.DataDir, "--secure-port", "0", "--kubelet-port", "0"}, etcd.Flags...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "error: etcd at "+etcd.endpoint+" does not answer") || !strings.Contains(string(out), "--etcd-servers") {
		t.Errorf("without its etcd: %v: %s", err, out)
	}
	etcd.Start() // for what purges
}
