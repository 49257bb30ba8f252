// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/images"
)

// TestDockerPIDModes: on Docker, by cri-dockerd, HostConfig.PidMode of sandboxes, containers and debug containers with and without a target
// is what the two tables of the document on shared PID namespaces say (PID-10), and kubectl debug --target sees its target (PID-07, EC-27).
func TestDockerPIDModes(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	docker := StartDocker(t, StartContainerd(t))
	docker.Load(t, world(t))
	srv := own(t, ServerOptions{NoImages: true, Args: []string{"--container-runtime-endpoint", docker.CRI(t)}})
	k := inDefault(t, srv)
	for name, c := range map[string]struct {
		field                             string
		sandbox, container, beside, joins string // SANDBOX and TARGET are ids
	}{
		"own":    {"", "", "", "", "container:TARGET"},
		"shared": {"shareProcessNamespace: true, ", "", "container:SANDBOX", "container:SANDBOX", "container:SANDBOX"},
		"host":   {"hostPID: true, ", "host", "host", "host", "host"},
	} {
		k.up(fmt.Sprintf(`
metadata: {name: %s}
spec: {%shostNetwork: true, containers: [{name: main, command: [sh, -c, "echo up; IDLE"]}]}
`, name, c.field))
		if got := k.awaitLog(name, "main", "up\n"); got != "up\n" {
			t.Errorf("%s: the log is %q", name, got)
		}
		k.says(name, "main", "echo hello", "hello")
		k.addDebug(name, debugger("beside", "", Sh(Idle)), debugger("joins", "main", Sh(Idle)))
		k.waitDebug(name, "beside", "running", isRunning)
		k.waitDebug(name, "joins", "running", isRunning)
		pod := k.Get(name)
		id := func(of string) string { _, id, _ := strings.Cut(of, "docker://"); return id }
		target, sandbox := id(pod.Status.ContainerStatuses[0].ContainerID), docker.Sandbox(t, string(pod.UID))
		have := map[string]string{"sandbox": sandbox, "container": target}
		for _, e := range pod.Status.EphemeralContainerStatuses {
			have[e.Name] = id(e.ContainerID)
		}
		for what, want := range map[string]string{"sandbox": c.sandbox, "container": c.container, "beside": c.beside, "joins": c.joins} {
			want = strings.NewReplacer("SANDBOX", sandbox, "TARGET", target).Replace(want)
			if got := docker.PIDMode(t, have[what]); got != want {
				t.Errorf("PID-10 %s, %s: PidMode %q, not %q", name, what, got, want)
			}
		}
	}
	k.Kubectl("debug", "own", "--image="+images.BusyboxRef, "--target=main", "-c", "looks", "--", "sh", "-c", "ps; exit 4").exits(0)
	if end := k.waitDebug("own", "looks", "ended", hasEnded).State.Terminated; end.ExitCode != 4 {
		t.Errorf("EC-27 it ended as %+v", end)
	}
	if text := k.log("own", "looks"); !strings.Contains(text, "echo up") {
		t.Errorf("PID-07 the target is not among what it sees:\n%s", text)
	}
	for _, name := range []string{"own", "shared", "host"} {
		k.Delete(name)
	}
	for _, name := range []string{"own", "shared", "host"} {
		k.must(k.awaitGone(k.ctx(), "pods", "default", name))
	}
	if left := strings.TrimSpace(docker.Run(t, "ps", "--all", "--quiet")); left != "" {
		t.Errorf("PL-10 left of the pods: %s", docker.Run(t, "ps", "--all"))
	}
}
