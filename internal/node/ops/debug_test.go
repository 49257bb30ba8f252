// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// withDebug adds an ephemeral container with main as its target.
func withDebug(change func(*corev1.EphemeralContainer)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		e := corev1.EphemeralContainer{TargetContainerName: "main", EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "tools/debug"}}
		if change != nil {
			change(&e)
		}
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, e)
		podspec.SetDefaults(p)
	}
}

// failing runs an operation that must fail and returns the reason and the message that the status would show.
func (b *bench) failing(op plan.Op) (reason, message string) {
	b.t.Helper()
	err := b.Do(context.Background(), b.task(op))
	var r interface{ Reason() string }
	if !errors.As(err, &r) {
		b.t.Fatalf("%v %s: %v has no reason", op.Verb, op.Container, err)
	}
	return r.Reason(), err.Error()
}

// TestDebugTarget: a debug container that cannot join its target's processes says so, in words that name what is missing, and
// nothing else of the pod is touched.
func TestDebugTarget(t *testing.T) {
	pull, start := plan.Op{Verb: plan.PullImage, Container: "debug"}, plan.Op{Verb: plan.StartContainer, Container: "debug"}
	t.Run("EC-25 a runtime without TARGET", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, withDebug(nil))
			b.up()
			b.must(pull)
			b.fake.Fault(func(c critest.Call) error {
				if c.Method == "CreateContainer" {
					return status.Error(codes.Unknown, "unsupported namespace mode 3")
				}
				return nil
			})
			if reason, message := b.failing(start); reason != reasonCreate || !strings.Contains(message, "TARGET") || !strings.Contains(message, `"main"`) || !strings.Contains(message, "unsupported namespace mode 3") {
				t.Errorf("%s: %s", reason, message)
			}
			if s := b.see(); len(s.Containers) != 1 || !s.Containers[0].Running() {
				t.Errorf("the rest of the pod was touched: %+v", s.Containers)
			}
		})
	})
	t.Run("PID-07 the target has ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, withDebug(nil))
			b.up()
			b.must(pull)
			if err := b.fake.Exit(b.see().Containers[0].ID, 1); err != nil {
				t.Fatal(err)
			}
			if reason, message := b.failing(start); reason != reasonCreate || !strings.Contains(message, `target container "main" is not running`) {
				t.Errorf("%s: %s", reason, message)
			}
		})
	})
	t.Run("PID-07 nobody has to run where processes are shared", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(p *corev1.Pod) { withDebug(nil)(p); p.Spec.ShareProcessNamespace = ptr(true) })
			b.up()
			b.must(pull)
			if err := b.fake.Exit(b.see().Containers[0].ID, 1); err != nil {
				t.Fatal(err)
			}
			b.must(start)
		})
	})
}

// TestDebugImageNotAllowed proves DC-13: an image that is not on the list is refused with the flag and its patterns, and the
// registry is not asked. Other containers are not meant.
func TestDebugImageNotAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, withDebug(nil))
		b.Node.DebugImages = []string{"other/*"}
		b.up()
		pulls := func() (n int) {
			for _, c := range b.fake.Calls() {
				if c.Method == "PullImage" || c.Method == "ImageStatus" {
					n++
				}
			}
			return n
		}
		before := pulls()
		reason, message := b.failing(plan.Op{Verb: plan.PullImage, Container: "debug"})
		if reason != "ImageNotAllowed" || !strings.Contains(message, "tools/debug") || !strings.Contains(message, "--debug-image-allow") || !strings.Contains(message, "other/*") {
			t.Errorf("%s: %s", reason, message)
		}
		if n := pulls(); n != before {
			t.Errorf("the runtime was asked for an image that is refused")
		}
		b.Node.DebugImages = []string{"other/*", "tools/*"}
		b.must(plan.Op{Verb: plan.PullImage, Container: "debug"})
	})
}

// TestDebugCap proves EC-19: a debug container has the node's cap, the pod's other containers do not.
func TestDebugCap(t *testing.T) {
	p := basePod(withDebug(nil))
	node := Node{Cgroup: cgroup.Node{Debug: cgroup.Cap{MilliCPU: 500, Memory: 64 << 20}}}
	resources := func(c *corev1.Container, k podspec.Kind) *runtimeapi.LinuxContainerResources {
		config, err := ContainerConfig(ContainerInput{Pod: p, Container: c, Kind: k, Node: node, Image: &runtimeapi.Image{}})
		if err != nil {
			t.Fatal(err)
		}
		return config.GetLinux().GetResources()
	}
	if r := resources(podspec.AsContainer(&p.Spec.EphemeralContainers[0]), podspec.Ephemeral); r.GetCpuQuota() != 50000 || r.GetMemoryLimitInBytes() != 64<<20 {
		t.Errorf("debug container: %v", r)
	}
	if r := resources(&p.Spec.Containers[0], podspec.Main); r.GetCpuQuota() != 0 || r.GetMemoryLimitInBytes() != 0 {
		t.Errorf("main container: %v", r)
	}
}

// TestDebugUserAdvice: a debug container that may not run as root is told as whom it could.
func TestDebugUserAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"nobody when the pod's containers name no user": {func(*corev1.Pod) {}, "runAsUser 65534"},
		"the user of a container that does": {func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr(int64(1234))}
		}, "runAsUser 1234"},
	} {
		p := basePod(func(p *corev1.Pod) {
			withDebug(func(e *corev1.EphemeralContainer) {
				e.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr(true)}
			})(p)
			c.change(p)
		})
		_, err := containerSecurity(ContainerInput{Pod: p, Container: podspec.AsContainer(&p.Spec.EphemeralContainers[0]), Kind: podspec.Ephemeral, Image: &runtimeapi.Image{}})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "image will run as root") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
