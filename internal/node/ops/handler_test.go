// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/node/plan"
)

// TestRuntimeClass proves PL-15: a pod's sandbox is made by the handler of its runtime class, and where that cannot be, the error,
// which becomes the pod's status, names class and handler.
func TestRuntimeClass(t *testing.T) {
	handlers := func(_ context.Context, class string) (string, error) {
		if class != "boxed" {
			return "", errors.New("RuntimeClass " + class + " not found")
		}
		return "runsc", nil
	}
	box := plan.Op{Verb: plan.RunSandbox}
	of := func(class *string) *bench {
		b := newBench(t, func(p *corev1.Pod) { p.Spec.RuntimeClassName = class })
		b.HandlerOf = handlers
		return b
	}
	for class, want := range map[string]string{"-": "", "": "", "boxed": "runsc"} {
		b := of(&class)
		if class == "-" {
			b = of(nil)
		}
		if err := b.Do(context.Background(), b.task(box)); err != nil {
			t.Fatal(err)
		}
		made, err := b.CRI.Runtime.ListPodSandbox(context.Background(), &runtimeapi.ListPodSandboxRequest{})
		if err != nil || len(made.GetItems()) != 1 || made.GetItems()[0].GetRuntimeHandler() != want {
			t.Errorf("PL-15 class %q: %v, %v", class, made, err)
		}
	}
	refused := func(b *bench, want string) {
		t.Helper()
		err := b.Do(context.Background(), b.task(box))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(strings.Join(b.events, "\n"), want) {
			t.Errorf("PL-15 %v, events %v, want %q", err, b.events, want)
		}
	}
	refused(of(new("gone")), "RuntimeClass gone not found")
	b := of(new("boxed"))
	b.fake.Fault(func(c critest.Call) error {
		if c.Method == "RunPodSandbox" {
			return errors.New(`no runtime for "runsc" is configured`)
		}
		return nil
	})
	refused(b, `runtime class "boxed", handler "runsc": no runtime for "runsc" is configured`)
	b = of(new("boxed"))
	b.HandlerOf = nil
	refused(b, `runtime class "boxed": this node cannot look runtime classes up`)
}

// PL-15: why a sandbox cannot be made is said without the runtime's ids, which are others at each try: the same fault is one event that is
// counted, and one line of wherry run.
func TestSandboxFaultIsTheSameEachTime(t *testing.T) {
	for said, want := range map[string]string{
		`failed to start sandbox "ID": failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: failed to write sysctl x: invalid argument: unknown`: "failed to write sysctl x: invalid argument",
		`failed to start sandbox "ID": failed to start sandbox container task "ID": out of memory`: "out of memory",
		`failed to create sandbox "ID": no space left on device`:                                   "no space left on device",
		`failed to setup network for sandbox "ID": plugin type="wherry" failed (add): no address`:  `failed to set up the network: plugin type="wherry" failed (add): no address`,
		`failed to reserve sandbox name "web_default_1": name is reserved`:                         `failed to reserve sandbox name "web_default_1": name is reserved`,
	} {
		b := newBench(t, func(*corev1.Pod) {})
		for _, id := range []string{"2ac13a5d", "5e6a589a"} {
			b.fake.Fault(func(c critest.Call) error {
				if c.Method == "RunPodSandbox" {
					return errors.New(strings.ReplaceAll(said, "ID", id))
				}
				return nil
			})
			want := strings.ReplaceAll(want, "ID", id)
			err := b.Do(context.Background(), b.task(plan.Op{Verb: plan.RunSandbox}))
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if all := strings.Join(b.events, "\n"); !strings.Contains(all, "Failed to create pod sandbox: "+want) {
				t.Errorf("events %v lack %q", b.events, want)
			}
		}
	}
}

// PL-15: so is why a container cannot be started.
func TestStartFaultIsTheSameEachTime(t *testing.T) {
	const said = `OCI runtime create failed: runc run failed: exec: "/nothing": no such file or directory`
	for _, id := range []string{"2ac13a5d", "5e6a589a"} {
		b := newBench(t, func(*corev1.Pod) {})
		b.must(plan.Op{Verb: plan.PrepareVolumes})
		b.must(plan.Op{Verb: plan.RunSandbox})
		b.must(plan.Op{Verb: plan.PullImage, Container: "main"})
		b.fake.Fault(func(c critest.Call) error {
			if c.Method == "StartContainer" {
				return errors.New(`failed to start containerd task "` + id + `": ` + said)
			}
			return nil
		})
		err := b.Do(context.Background(), b.task(plan.Op{Verb: plan.StartContainer, Container: "main"}))
		if err == nil || err.Error() != said {
			t.Errorf("got  %v\nwant %s", err, said)
		}
		if all := strings.Join(b.events, "\n"); !strings.Contains(all, "Error: "+said) || strings.Contains(all, id) {
			t.Errorf("events %v", b.events)
		}
	}
}
