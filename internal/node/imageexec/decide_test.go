// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func testPod(change ...func(*corev1.Pod)) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "ns", UID: "uid-1"}}
	p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	for _, f := range change {
		f(p)
	}
	return p
}

// running and exited make attempts of a container; made is one that was only created.
func made(id, name string, attempt uint32) plan.Container {
	return plan.Container{ID: id, Name: name, Attempt: attempt, SandboxID: "box", CreatedAt: noon}
}

func running(id, name string, attempt uint32) plan.Container {
	c := made(id, name, attempt)
	c.StartedAt = noon
	return c
}

func exited(id, name string, attempt uint32, code int32) plan.Container {
	c := running(id, name, attempt)
	c.FinishedAt, c.ExitCode = noon.Add(time.Minute), code
	return c
}

// TestParse: IX-01: what a request may be.
func TestParse(t *testing.T) {
	for query, want := range map[string]any{
		"image=a&command=ls&command=-l&output=1&error=1&container=main&writable=1": Request{Image: "a", Policy: corev1.PullIfNotPresent,
			Command: []string{"ls", "-l"}, Container: "main", Writable: true, Stdout: true, Stderr: true},
		"image=a&input=1&output=1&error=1&tty=1&pullPolicy=Always": Request{Image: "a", Policy: corev1.PullAlways, Stdin: true, Stdout: true, TTY: true},
		"image=wherry.dev/toolbox&output=1&pullPolicy=Always":      Request{Image: "wherry.dev/toolbox", Policy: corev1.PullNever, Stdout: true},
		"command=ls&output=1":                    "image: you must specify",
		"image=a&command=ls":                     "at least 1 of stdin, stdout, stderr",
		"image=a&output=1&pullPolicy=Sometimes":  `pullPolicy: "Sometimes"`,
		"image=a&output=1&writable=yes":          `writable: "yes"`,
		"image=a&output=1&command=&command=left": "first word is empty",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(q)
		if text, bad := want.(string); bad {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", query, err)
			}
		} else if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", query, got, err)
		}
	}
}

// TestChoose: IX-04, IX-09: of each container the newest attempt that was started; IX-10: those without one, and why.
func TestChoose(t *testing.T) {
	ended := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	}
	unstarted := made("m0", "main", 0)
	unstarted.FinishedAt, unstarted.Reason = noon, "StartError"
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		seen []plan.Container
		show []string
		left []string
	}{
		"all": {testPod(), []plan.Container{exited("i0", "init", 0, 0), running("s0", "side", 0), running("m0", "main", 0), exited("d0", "debug", 0, 1)},
			[]string{"i0", "s0", "m0", "d0"}, nil},
		"the newest that was started": {testPod(), []plan.Container{exited("i0", "init", 0, 0), running("s0", "side", 0), exited("m3", "main", 3, 1), exited("m4", "main", 4, 1), made("m5", "main", 5), running("d1", "debug", 1)},
			[]string{"i0", "s0", "m4", "d1"}, nil},
		"one that could not be started has files": {testPod(), []plan.Container{unstarted}, []string{"m0"}, []string{
			"container init is left out: it has not run yet", "container side is left out: it has not run yet", "container debug is left out: it has not run yet"}},
		"left out": {testPod(ended), []plan.Container{made("s0", "side", 0)}, nil, []string{"container init is left out: its remains have been removed",
			"container side is left out: it was created but has not started", "container main is left out: it has not run yet (ImagePullBackOff)", "container debug is left out: it has not run yet"}},
	} {
		show, left := choose(c.pod, plan.Seen{Containers: c.seen})
		var ids []string
		for _, s := range show {
			ids = append(ids, s.ID)
		}
		if !reflect.DeepEqual(ids, c.show) || !reflect.DeepEqual(left, c.left) {
			t.Errorf("%s: got %q, left out %q", name, ids, left)
		}
	}
}

// TestPlaceOf: IX-03: the pod's sandbox and the target's processes; IX-09: a temporary sandbox once the pod's is gone.
func TestPlaceOf(t *testing.T) {
	box := []plan.Sandbox{{ID: "box", Attempt: 1, Ready: true}, {ID: "old", Attempt: 0}}
	gone := []plan.Sandbox{{ID: "old", Attempt: 0}}
	main := running("m0", "main", 0)
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	over := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	share := func(p *corev1.Pod) { yes := true; p.Spec.ShareProcessNamespace = &yes }
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		seen   plan.Seen
		target string

		box, id string
		note    string
		status  int
	}{
		"in the pod":               {pod: testPod(), seen: plan.Seen{Sandboxes: box, Containers: []plan.Container{main}}, box: "box"},
		"with a target":            {pod: testPod(), seen: plan.Seen{Sandboxes: box, Containers: []plan.Container{main}}, target: "main", box: "box", id: "m0"},
		"processes shared":         {pod: testPod(share), seen: plan.Seen{Sandboxes: box, Containers: []plan.Container{main}}, target: "main", box: "box"},
		"a target that has ended":  {pod: testPod(), seen: plan.Seen{Sandboxes: box, Containers: []plan.Container{exited("m0", "main", 0, 1)}}, target: "main", box: "box", note: "main is not running"},
		"no such target":           {pod: testPod(), seen: plan.Seen{Sandboxes: box}, target: "nobody", status: http.StatusNotFound},
		"being deleted, still up":  {pod: testPod(deleted), seen: plan.Seen{Sandboxes: box, Containers: []plan.Container{main}}, box: "box"},
		"being deleted, down":      {pod: testPod(deleted), seen: plan.Seen{Sandboxes: gone, Containers: []plan.Container{exited("m0", "main", 0, 1)}}, status: http.StatusConflict},
		"ended":                    {pod: testPod(), seen: plan.Seen{Sandboxes: gone, Containers: []plan.Container{exited("m0", "main", 0, 1)}}, note: "sandbox is gone"},
		"ended, still up":          {pod: testPod(over), seen: plan.Seen{Sandboxes: box, Containers: []plan.Container{exited("m0", "main", 0, 1)}}, note: "sandbox is gone"},
		"ended, but one runs":      {pod: testPod(over), seen: plan.Seen{Sandboxes: box, Containers: []plan.Container{main}}, box: "box"},
		"ended, with a target":     {pod: testPod(), seen: plan.Seen{Sandboxes: gone, Containers: []plan.Container{exited("m0", "main", 0, 1)}}, target: "main", note: "main is not running"},
		"nothing was ever there":   {pod: testPod(), status: http.StatusConflict},
		"up but nothing has run":   {pod: testPod(), seen: plan.Seen{Sandboxes: box}, box: "box"},
		"a target in an older one": {pod: testPod(), seen: plan.Seen{Sandboxes: []plan.Sandbox{{ID: "new", Attempt: 2, Ready: true}}, Containers: []plan.Container{main}}, target: "main", box: "new", note: "is not running"},
		"only records, no sandbox": {pod: testPod(), seen: plan.Seen{Containers: []plan.Container{exited("m0", "main", 0, 1)}}, note: "sandbox is gone"},
		"a sandbox that has died":  {pod: testPod(), seen: plan.Seen{Sandboxes: gone}, status: http.StatusConflict},
	} {
		p, err := placeOf(c.pod, c.seen, c.target)
		if c.status != 0 {
			if e := (*Error)(nil); !errors.As(err, &e) || e.Status != c.status {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got := ""
		if p.Sandbox != nil {
			got = p.Sandbox.ID
		}
		notes := strings.Join(p.Notes, "\n")
		if err != nil || got != c.box || p.Target != c.id || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// TestConfig: IX-03, IX-06: the command's container belongs to nobody, and runs as root unless the pod must do without.
func TestConfig(t *testing.T) {
	command := []string{"sh", "-c", "echo $$ $(HOME)"}
	image := &runtimeapi.Image{Id: "sha256:1", Uid: &runtimeapi.Int64Value{Value: 7}}
	make := func(p *corev1.Pod, pl place) (*runtimeapi.ContainerConfig, error) {
		return containerConfig(Request{Image: "tools", Command: command, Stdin: true}, "0123456789abcdef", p, pl, ops.Node{}, image, nil, "/s/c", "/s/hosts")
	}
	c, err := make(testPod(), place{Target: "m0"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Labels[cri.LabelContainerType] != "EXEC" || c.Labels[labelSession] != "0123456789abcdef" || c.LogPath != "" || c.Metadata.Name != "exec-01234567" {
		t.Errorf("not an image exec's: %v %q %v", c.Labels, c.LogPath, c.Metadata)
	}
	if !c.Stdin || !c.StdinOnce {
		t.Error("the end of stdin would not be handed on")
	}
	s := c.GetLinux().GetSecurityContext()
	if ns := s.GetNamespaceOptions(); ns.GetPid() != runtimeapi.NamespaceMode_TARGET || ns.GetTargetId() != "m0" || ns.GetNetwork() != runtimeapi.NamespaceMode_POD {
		t.Errorf("namespaces: %v", ns)
	}
	if s.GetRunAsUser().GetValue() != 0 || s.GetPrivileged() || s.GetCapabilities() != nil {
		t.Errorf("not root with what the runtime gives: %v", s)
	}
	if m := c.Mounts[0]; m.ContainerPath != "/c" || m.HostPath != "/s/c" || !m.Readonly {
		t.Errorf("mounts: %v", c.Mounts)
	}
	if !reflect.DeepEqual(c.Command, command) || c.Args != nil {
		t.Errorf("not the command as it was given: %v %v", c.Command, c.Args)
	}
}

// TestSecurity: a pod that must run without root is looked at without root.
func TestSecurity(t *testing.T) {
	yes, no, user := true, false, int64(1234)
	podLevel := func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user}
	}
	each := func(nonRoot *bool) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := range p.Spec.InitContainers {
				p.Spec.InitContainers[i].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: &yes}
			}
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: nonRoot, RunAsUser: &user}
		}
	}
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		forced bool
		user   *int64
	}{
		"a pod that says nothing":           {testPod(), false, nil},
		"the pod says so":                   {testPod(podLevel), true, &user},
		"each container says so":            {testPod(each(&yes)), true, &user},
		"one container does not":            {testPod(each(&no)), false, nil},
		"the pod says so, and names nobody": {testPod(func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes} }), true, nil},
	} {
		sc, forced := podspec.ImageExecSecurity(c.pod, nil, "")
		if forced != c.forced {
			t.Errorf("%s: forced %t", name, forced)
		}
		if !c.forced {
			if *sc.RunAsUser != 0 || sc.Capabilities != nil {
				t.Errorf("%s: %+v", name, sc)
			}
			continue
		}
		if !reflect.DeepEqual(sc.RunAsUser, c.user) || !*sc.RunAsNonRoot || *sc.AllowPrivilegeEscalation || sc.Capabilities.Drop[0] != "ALL" ||
			sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: %+v", name, sc)
		}
	}
}

// IX-03: in a pod without root the command is whom the client names, or the user that its container was found to have; the client is
// told of the latter. Root is refused whoever names it.
func TestUser(t *testing.T) {
	yes, other := true, int64(1234)
	rootless := testPod(func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes} })
	rootless.Spec.Containers = append(rootless.Spec.Containers, corev1.Container{Name: "other", SecurityContext: &corev1.SecurityContext{RunAsUser: &other}})
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		asked  string
		userOf string
		found  *ops.User
		user   int64
		group  int64 // -1: none
		note   bool
		fails  string
	}{
		"root":                          {pod: testPod(), user: 0},
		"somebody":                      {pod: testPod(), asked: "7:8", user: 7, group: 8},
		"no group":                      {pod: testPod(), asked: "7", user: 7, group: -1},
		"without root, nobody is known": {pod: rootless, userOf: "main", fails: "image will run as root"},
		"the advice":                    {pod: rootless, userOf: "main", fails: "--user 65534"},
		"without root, found":           {pod: rootless, userOf: "main", found: &ops.User{ID: 65532, Group: new(int64(3))}, user: 65532, group: 3, note: true},
		"without root, by the spec":     {pod: rootless, userOf: "other", found: &ops.User{ID: 65532}, user: other, group: -1, note: true},
		"without root, asked":           {pod: rootless, asked: "7", found: &ops.User{ID: 65532}, user: 7, group: -1},
		"root is asked for":             {pod: rootless, asked: "0", found: &ops.User{ID: 65532}, fails: "breaks non-root policy"},
	} {
		asked, err := debugask.ParseUser(c.asked)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Image: "tools", User: asked, UserOf: c.userOf}
		config, err := containerConfig(r, "0123456789", c.pod, place{}, ops.Node{}, &runtimeapi.Image{}, c.found, "", "")
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		sc := config.GetLinux().GetSecurityContext()
		group := int64(-1)
		if sc.GetRunAsGroup() != nil {
			group = sc.GetRunAsGroup().GetValue()
		}
		if err != nil || sc.GetRunAsUser().GetValue() != c.user || group != c.group {
			t.Errorf("%s: user %v, group %v, %v", name, sc.GetRunAsUser(), sc.GetRunAsGroup(), err)
		}
		if note := userNote(r, c.pod, config); (note != "") != c.note || c.note && !strings.Contains(note, fmt.Sprintf("user %d ", c.user)) {
			t.Errorf("%s: note %q", name, note)
		}
	}
}

// TestStandIn: IX-09: what stands in for an ended pod is not taken for it, and takes no port of the node.
func TestStandIn(t *testing.T) {
	pod := testPod()
	c := sandboxConfig(standIn(pod, "session-1"), "session-1", ops.Node{}, "/parent")
	if len(c.PortMappings) > 0 || c.Metadata.Uid != "session-1" || c.Labels[cri.LabelPodUID] != "session-1" || c.Labels[cri.LabelContainerType] != "EXEC" {
		t.Errorf("%+v", c)
	}
	if pod.UID != "uid-1" || pod.Spec.Containers[0].Ports == nil {
		t.Error("the pod itself was changed")
	}
}

// TestStartCode: IX-05: how a shell tells that a command cannot be run.
func TestStartCode(t *testing.T) {
	for text, want := range map[string]int{
		`failed to create containerd task: runc create failed: unable to start container process: error during container init: exec: "nosuch": executable file not found in $PATH: unknown`: 127,
		`runc create failed: unable to start container process: error during container init: exec: "/no/such": stat /no/such: no such file or directory: unknown`:                           127,
		`runc create failed: unable to start container process: error during container init: exec: "/etc/passwd": permission denied: unknown`:                                               126,
		`runc create failed: unable to start container process: error mounting "/x" to rootfs at "/c": no such file or directory`:                                                           0,
	} {
		if got := startCode(text); got != want {
			t.Errorf("%d for %s", got, text)
		}
	}
	if got := innermost(`runc: init: exec: "nosuch": executable file not found in $PATH: unknown`); got != `"nosuch": executable file not found in $PATH` {
		t.Error(got)
	}
}
