// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/wherryproject/wherry/test/images"
)

// debugStatus is the status of an ephemeral container, nil if there is none yet.
func debugStatus(p *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range p.Status.EphemeralContainerStatuses {
		if s := &p.Status.EphemeralContainerStatuses[i]; s.Name == name {
			return s
		}
	}
	return nil
}

// waitDebug waits until an ephemeral container is as until says.
func (s *Space) waitDebug(pod, name, what string, until func(*corev1.ContainerStatus) bool) *corev1.ContainerStatus {
	s.T.Helper()
	p := s.Wait(pod, "have debug container "+name+" "+what, func(p *corev1.Pod) bool {
		c := debugStatus(p, name)
		return c != nil && until(c)
	})
	return debugStatus(p, name)
}

func isRunning(c *corev1.ContainerStatus) bool { return c.State.Running != nil }
func hasEnded(c *corev1.ContainerStatus) bool  { return c.State.Terminated != nil }

// waitsFor tells whether a container waits for this reason.
func waitsFor(reason string) func(*corev1.ContainerStatus) bool {
	return func(c *corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == reason
	}
}

// allKubectls are the kubectls of the world, and the one in the program itself, which goes by its name.
func allKubectls(t *testing.T, w *World) []Kubectl {
	t.Helper()
	own := filepath.Join(t.TempDir(), "kubectl")
	if err := os.Symlink(w.Wherry, own); err != nil {
		t.Fatal(err)
	}
	return append(append([]Kubectl{}, w.Kubectls...), Kubectl{"wherry-kubectl", own})
}

// TestKubectlDebugTerminal: kubectl debug -it is a shell in the pod that sees the target's processes and leaves the pod as it is
// (EC-27, EC-12, EC-28, PID-07).
func TestKubectlDebugTerminal(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Tool("http"), Tool("sleep")))
	before := s.WaitReady("web")
	for _, kubectl := range allKubectls(t, s.World) {
		t.Run(kubectl.Name, func(t *testing.T) {
			s := s.With(t).Using(kubectl)
			name := "shell-" + kubectl.Name
			c := s.console(nil, pty.Winsize{Rows: 30, Cols: 120}, "debug", "web", "-it", "--image="+images.BusyboxRef, "--target=main", "-c", name, "--", "sh")
			c.Await("command prompt")
			c.typed("\recho target-$(cat /proc/1/comm)-$((40+2)); tty -s && echo a-$((1+1))-tty\r")
			c.Await("target-tool-42")
			c.Await("a-2-tty")
			c.typed("exit 3\r")
			if code := c.code(); code != 0 {
				t.Errorf("EC-27 kubectl ended with %d; it showed\n%s", code, c.Text())
			}
			if end := s.waitDebug("web", name, "ended", hasEnded).State.Terminated; end.ExitCode != 3 {
				t.Errorf("EC-10 it ended as %+v", end)
			}
		})
	}
	after := s.Get("web")
	if a, b := facts(before), facts(after); a != b {
		t.Errorf("EC-12 EC-28 the pod was\n%s\nand is\n%s", a, b)
	}
	if before.Status.QOSClass != after.Status.QOSClass {
		t.Errorf("EC-12 the QoS class went from %s to %s", before.Status.QOSClass, after.Status.QOSClass)
	}
	for i := range before.Status.ContainerStatuses {
		if a, b := before.Status.ContainerStatuses[i].ImageID, after.Status.ContainerStatuses[i].ImageID; a != b {
			t.Errorf("EC-28 the image went from %s to %s", a, b)
		}
	}
}

// capabilities of Linux that profiles give.
const (
	capNetAdmin  = 1 << 12
	capSysPtrace = 1 << 19
	capSysAdmin  = 1 << 21
)

// TestKubectlDebugProfiles: every --profile gives what it says (EC-27, DC-14), also with --custom; one that forbids root says as
// whom to run where the image would be root.
func TestKubectlDebugProfiles(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	custom := filepath.Join(t.TempDir(), "custom.json")
	if err := os.WriteFile(custom, []byte(`{"securityContext": {"runAsUser": 65534}, "env": [{"name": "CUSTOM", "value": "yes"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `echo "uid=$(id -u) custom=$CUSTOM cap=$(awk '/CapEff/ {print $2}' /proc/self/status)"`
	rows := []struct {
		profile     string
		with, lacks uint64 // capabilities
		uid         string
		args        []string
	}{
		{profile: "legacy", lacks: capSysPtrace | capSysAdmin | capNetAdmin, uid: "0"},
		{profile: "general", with: capSysPtrace, lacks: capSysAdmin, uid: "0"},
		{profile: "baseline", lacks: capSysPtrace | capSysAdmin | capNetAdmin, uid: "0"},
		{profile: "netadmin", with: capNetAdmin, lacks: capSysAdmin, uid: "0"},
		{profile: "sysadmin", with: capSysAdmin | capSysPtrace | capNetAdmin, uid: "0"},
		{profile: "restricted", lacks: ^uint64(0), uid: "65534", args: []string{"--custom=" + custom}},
	}
	for _, row := range rows {
		args := append([]string{"debug", "web", "--image=" + images.BusyboxRef, "--profile=" + row.profile, "-c", row.profile}, row.args...)
		s.Kubectl(append(args, "--", "sh", "-c", script)...)
	}
	s.Kubectl("debug", "web", "--image="+images.BusyboxRef, "--profile=restricted", "-c", "root", "--", "true")
	for _, row := range rows {
		if end := s.waitDebug("web", row.profile, "ended", hasEnded).State.Terminated; end.ExitCode != 0 {
			t.Errorf("EC-27 %s: it ended as %+v", row.profile, end)
			continue
		}
		out := s.Kubectl("logs", "web", "-c", row.profile).Out
		m := regexp.MustCompile(`uid=(\d+) custom=(\w*) cap=([0-9a-f]{16})`).FindStringSubmatch(out)
		if m == nil {
			t.Errorf("EC-27 %s printed %q", row.profile, out)
			continue
		}
		caps, err := strconv.ParseUint(m[3], 16, 64)
		if err != nil || caps&row.with != row.with || caps&row.lacks != 0 || m[1] != row.uid || (m[2] == "yes") != (row.args != nil) {
			t.Errorf("EC-27 DC-14 %s printed %q", row.profile, out)
		}
	}
	w := s.waitDebug("web", "root", "refused", waitsFor("CreateContainerConfigError")).State.Waiting
	if !strings.Contains(w.Message, "image will run as root") || !strings.Contains(w.Message, "runAsUser 65534") || !strings.Contains(w.Message, "--custom") {
		t.Errorf("the refusal of root does not say what to do: %s", w.Message)
	}
}

// TestKubectlDebugCopy: --copy-to makes a copy of the pod to debug, with another command, image, or shared processes (EC-27).
func TestKubectlDebugCopy(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep", "3600s"), Tool("sleep")))
	s.WaitReady("web")
	s.Kubectl("debug", "web", "--copy-to=shared", "--share-processes", "--image="+images.BusyboxRef, "-c", "shell", "--", "sh", "-c", Idle)
	s.Kubectl("debug", "web", "--copy-to=other", "--set-image=main="+images.BusyboxRef, "--same-node")
	s.Kubectl("debug", "web", "--copy-to=command", "-c", "main", "--", "/tool", "http")

	s.WaitReady("shared")
	// What a container runs is known to the others when it has begun to run it, which is after it is said to run.
	s.Kubectl("exec", "shared", "-c", "shell", "--", "sh", "-c", "until [ $(pidof tool | wc -w) = 2 ]; do usleep 50000; done; cat /proc/1/comm").Is("pause")
	other := s.Wait("other", "run", func(p *corev1.Pod) bool {
		c := Status(p, "main")
		return c != nil && (c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0)
	})
	if got := other.Spec.Containers[0].Image; got != images.BusyboxRef || other.Spec.NodeName != s.NodeName {
		t.Errorf("EC-27 --set-image: main has %s on %s", got, other.Spec.NodeName)
	}
	if got := Status(other, "main").ImageID; got == Status(s.Get("web"), "main").ImageID {
		t.Errorf("EC-27 --set-image: main runs the old image %s", got)
	}
	s.WaitReady("command")
	s.Kubectl("get", "--raw", "/api/v1/namespaces/"+s.Namespace+"/pods/command:8080/proxy/hostname").Is("command")
}

// TestKubectlDebugNode: kubectl debug node/NAME is a pod with the machine's namespaces and its files below /host (EC-27).
func TestKubectlDebugNode(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	marker := filepath.Join(t.TempDir(), "marker")
	if err := os.WriteFile(marker, []byte("of the machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := s.Kubectl("debug", "node/"+s.NodeName, "--image="+images.BusyboxRef, "--", "sh", "-c",
		"cat /host"+marker+"; echo; for n in pid net ipc; do readlink /proc/self/ns/$n; done")
	m := regexp.MustCompile(`node-debugger-\S+`).FindString(out.Out + out.Err)
	if m == "" {
		t.Fatalf("kubectl debug node does not name its pod: %s%s", out.Out, out.Err)
	}
	s.WaitPhase(m, corev1.PodSucceeded)
	want := []string{"of the machine"}
	for _, ns := range []string{"pid", "net", "ipc"} {
		link, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, link)
	}
	s.Kubectl("logs", m).Is(strings.Join(want, "\n"))
}

// addDebug adds ephemeral containers through their subresource.
func (s *Space) addDebug(pod string, list ...corev1.EphemeralContainer) *corev1.Pod {
	s.T.Helper()
	var p *corev1.Pod
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) { // its status changes meanwhile
		p = s.Get(pod)
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, list...)
		p, err = s.Client.CoreV1().Pods(s.Namespace).UpdateEphemeralContainers(s.ctx, pod, p, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		s.T.Fatalf("add debug containers to pod %s: %v", pod, err)
	}
	return p
}

// debugger makes an ephemeral container of an ordinary one, with a target or "".
func debugger(name, target string, c corev1.Container) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{TargetContainerName: target, EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: name, Image: c.Image, Command: c.Command, Args: c.Args}}
}
