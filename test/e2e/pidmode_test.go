// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestTargetNamespace: a debug container with a target is in the namespace that its target is in, whichever that is: the target's
// own, the pod's, or the node's (PID-07). It sees the target's process there, and no others than its neighbours there see.
func TestTargetNamespace(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	k := &kit{Space: s, t: t}
	host, err := os.Readlink("/proc/self/ns/pid")
	k.must(err)
	for _, c := range []struct {
		mode   string
		change func(*corev1.PodSpec)
		first  string // the namespace's PID 1
		others bool   // whether the other container is seen
	}{
		{"container", func(*corev1.PodSpec) {}, "sh", false},
		{"pod", func(p *corev1.PodSpec) { p.ShareProcessNamespace = ptr.To(true) }, "pause", true},
		{"node", func(p *corev1.PodSpec) { p.HostPID = true }, "", true},
	} {
		t.Run("PID-07 "+c.mode, func(t *testing.T) {
			t.Parallel()
			k := &kit{Space: s.With(t), t: t}
			marked := func(name string) corev1.Container { // its command line tells it from all others
				m := Named(name, Sh(Idle))
				m.Command = append(m.Command, "mark-"+c.mode+"-"+name)
				return m
			}
			p := NewPod(c.mode, marked("target"), marked("other"))
			c.change(&p.Spec)
			k.Create(p)
			k.WaitReady(c.mode)
			k.addDebug(c.mode, debugger("d", "target", Sh(Idle)))
			k.waitDebug(c.mode, "d", "running", func(s *corev1.ContainerStatus) bool { return s.State.Running != nil })
			ns := k.sh(c.mode, "d", "readlink /proc/self/ns/pid")
			if of := k.sh(c.mode, "target", "readlink /proc/self/ns/pid"); ns != of {
				t.Errorf("the debug container is in %s, its target in %s", ns, of)
			}
			if (ns == host) != (c.mode == "node") {
				t.Errorf("it is in %s; the node's is %s", ns, host)
			}
			if got := k.sh(c.mode, "d", "cat /proc/1/comm"); c.first != "" && got != c.first {
				t.Errorf("PID 1 is %q, want %q", got, c.first)
			}
			sees := func(name string) bool {
				return k.sh(c.mode, "d", "grep -l '[m]ark-"+c.mode+"-"+name+"' /proc/[0-9]*/cmdline 2>/dev/null | wc -l") != "0"
			}
			if !sees("target") || sees("other") != c.others {
				t.Errorf("it sees the target: %v, the other: %v", sees("target"), sees("other"))
			}
			if got := k.Get(c.mode); Status(got, "target").RestartCount != 0 {
				t.Errorf("PID-07 the target was touched: %s", summary(got))
			}
		})
	}
}
