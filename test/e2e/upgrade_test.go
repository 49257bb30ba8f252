// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgrade: RS-07, RS-09, SC-19, pods that the release before has started (tools/release-before.sh builds it) are taken over by this
// program as its own, with the store, the images and the network; and back by the release before, as the folder's format allows it; and
// once more by this one. Nothing restarts, and everything can be used and deleted.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	before, err := filepath.Abs("../../bin/.before/wherry")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(before); err != nil {
		t.Skipf("the release before is not built: run tools/release-before.sh, in a clone with its history (%v)", err)
	}
	now := world(t)
	then := *now
	then.Wherry = before
	srv, err := NewServer(context.Background(), &then, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.World = now
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	k := kitOn(t, srv)
	dir := t.TempDir()
	var names []string
	for _, text := range strings.Split(strings.ReplaceAll(shapes, "DIR", dir), "---\n") {
		names = append(names, k.pod(text).Name)
	}
	k.configMap("kept", map[string]string{"a": "b"})
	was := map[string]string{}
	for _, name := range names {
		was[name] = facts(k.Wait(name, "come to rest", atRest))
	}
	for _, by := range []struct {
		name  string
		world *World
	}{{"this program", now}, {"the release before", &then}, {"this program again", now}} {
		k.must(srv.Stop())
		srv.World = by.world
		k.again()
		for _, name := range names {
			if name == "crashing" {
				continue
			}
			if is := facts(k.Wait(name, "be at rest", atRest)); is != was[name] {
				t.Errorf("RS-07 taken over by %s pod %s is\n  %s\nit was\n  %s", by.name, name, is, was[name])
			}
		}
		k.says("plain", "c", "echo still here", "still here")
		if got := k.log("done", "c"); got != "the end\n" {
			t.Errorf("RS-07 taken over by %s: the log of an ended pod is %q", by.name, got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("SC-19 the inits wrote %q (%v), want each one line", text, err)
	}
	k.up(`
metadata: {name: late}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.says("late", "c", "wget -qO- http://"+k.Get("inits").Status.PodIP+":8080/hostname", "inits")
	for _, name := range append(names, "late") {
		pod := k.Get(name)
		k.Delete(name)
		k.must(k.awaitGone(k.ctx(), "pods", k.Namespace, name))
		k.AwaitNoTrace(pod)
	}
}
