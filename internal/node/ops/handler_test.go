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
