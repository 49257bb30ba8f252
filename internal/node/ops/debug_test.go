// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/debug/debugask"
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

// DC-14 IX-07: a debugger that may not be root is whom it would look at: by the runtime's word, by the spec's, else another container of
// the pod; never root.
func TestDebugUser(t *testing.T) {
	group := ptr(int64(5))
	p := basePod(func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr(true)}
		p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "named", SecurityContext: &corev1.SecurityContext{RunAsUser: ptr(int64(1234)), RunAsGroup: group}},
			corev1.Container{Name: "last"})
	})
	for name, c := range map[string]struct {
		target string
		known  map[string]User
		image  string
		want   *User
	}{
		"the target's":              {"last", map[string]User{"main": {ID: 1}, "last": {65532, group}}, "i", &User{65532, group}},
		"the target's by the spec":  {"named", map[string]User{"main": {ID: 1}}, "i", &User{1234, group}},
		"no target":                 {"", map[string]User{"main": {ID: 1}, "last": {ID: 2}}, "i", &User{ID: 1}},
		"the target's is not known": {"last", nil, "i", &User{1234, group}},
		"the target is root":        {"last", map[string]User{"last": {ID: 0}, "main": {ID: 9}}, "i", &User{ID: 9}},
		"an init's before nobody's": {"", map[string]User{"init": {ID: 3}}, "i", &User{1234, group}},
	} {
		if got := ofUser(p, c.target, c.known, c.image); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	plain := basePod(func(*corev1.Pod) {})
	if got := ofUser(plain, "", nil, "tools"); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
	if got := ofUser(plain, "", nil, "wherry.dev/toolbox"); got == nil || got.ID != anyUser {
		t.Errorf("the toolbox, of nothing: %+v", got)
	}
}

// DC-14: a debug container without a user of its own runs as its target where the pod allows no root, whatever its profile is; one whose
// image names a user by number, or that names one itself, is left alone.
func TestDebugRunsAsTarget(t *testing.T) {
	root, numbered, named := &runtimeapi.Image{}, &runtimeapi.Image{Uid: &runtimeapi.Int64Value{Value: 7}}, &runtimeapi.Image{Username: "tool"}
	for name, c := range map[string]struct {
		profile  string
		asked    string
		image    *runtimeapi.Image
		rootless bool
		user     int64
		fails    string
	}{
		"general":                      {"", "", root, true, 65532, ""},
		"restricted":                   {"restricted", "", root, true, 65532, ""},
		"sysadmin":                     {"sysadmin", "", root, true, 65532, ""},
		"an image with a name":         {"baseline", "", named, true, 65532, ""},
		"an image with a number":       {"", "", numbered, true, 7, ""},
		"asked for":                    {"", "1000", root, true, 1000, ""},
		"asked for, restricted":        {"restricted", "1000", root, true, 1000, ""},
		"root asked for":               {"", "0", root, true, 0, "breaks non-root policy"},
		"a pod that allows root":       {"", "", root, false, 0, ""},
		"restricted where root may be": {"restricted", "", root, false, 65532, ""},
	} {
		p := basePod(func(p *corev1.Pod) {
			if c.rootless {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr(true)}
			}
		})
		asked, err := debugask.ParseUser(c.asked)
		if err != nil {
			t.Fatal(err)
		}
		e, err := podspec.NewDebugContainer(p, podspec.DebugContainer{Name: "d", Image: "i", Profile: c.profile, User: asked})
		if err != nil {
			t.Fatal(err)
		}
		got, err := containerSecurity(ContainerInput{Pod: p, Container: podspec.AsContainer(&e), Kind: podspec.Ephemeral, Image: c.image, User: &User{ID: 65532}})
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.GetRunAsUser().GetValue() != c.user {
			t.Errorf("%s: %v, %v", name, got.GetRunAsUser(), err)
		}
	}
	p := basePod(func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr(true)} })
	if _, err := containerSecurity(ContainerInput{Pod: p, Container: &p.Spec.Containers[0], Image: root, User: &User{ID: 65532}}); err == nil {
		t.Error("a main container is given a user")
	}
}
