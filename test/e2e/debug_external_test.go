// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/test/images"
)

// TestDebugOnExternalRuntime: kubectl debug on a runtime that is not the embedded one, containerd 1.6: a shell beside the target,
// once, also when the server is killed (EC-27, EC-11, PID-07).
func TestDebugOnExternalRuntime(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	d := StartContainerd(t)
	d.Load(t, world(t))
	srv := own(t, ServerOptions{NoImages: true, Args: []string{"--container-runtime-endpoint", "unix://" + d.socket, "--debug-memory-limit", "32Mi"}})
	k := inDefault(t, srv)
	k.up(`
metadata: {name: web}
spec: {hostNetwork: true, containers: [{name: main, image: tool, args: [sleep]}]}
`)
	c := k.console(nil, pty.Winsize{Rows: 30, Cols: 120}, "debug", "web", "-it", "--image="+images.BusyboxRef, "--target=main", "-c", "shell", "--", "sh")
	c.Await("command prompt")
	c.typed("\recho target-$(cat /proc/1/comm)-$((40+2))\r")
	c.Await("target-tool-42")
	c.typed("exit 3\r")
	if code := c.code(); code != 0 {
		t.Errorf("EC-27 kubectl ended with %d; it showed\n%s", code, c.Text())
	}
	k.addDebug("web", debugger("idle", "", Sh(Idle)), debugger("greedy", "", Tool("alloc", "100")))
	k.waitDebug("web", "idle", "running", isRunning)
	if end := k.waitDebug("web", "greedy", "ended", hasEnded).State.Terminated; end.Reason != "OOMKilled" {
		t.Errorf("EC-19 beyond the cap it ended as %+v", end)
	}
	if end := k.waitDebug("web", "shell", "ended", hasEnded).State.Terminated; end.ExitCode != 3 {
		t.Errorf("EC-10 it ended as %+v", end)
	}
	k.wherry(nil, "debug", "web", "-m", images.BusyboxRef, "-c", "mine", "--", "sh", "-c", "exit 5").exits(5)
	before := facts(k.Get("web")) + "\n" + debugFacts(k.Get("web"))
	srv.Kill()
	k.must(srv.Start(context.Background()))
	k.says("web", "idle", "echo here", "here")
	if after := facts(k.Get("web")) + "\n" + debugFacts(k.Get("web")); after != before {
		t.Errorf("EC-11 after kill -9 the pod is\n%s\nand was\n%s", after, before)
	}
}
