// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/wherryproject/wherry/internal/manifest"
)

// safe is a buffer that several goroutines write and the test reads.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// world is an API server without a node; the test plays the node.
type world struct {
	t          *testing.T
	client     *fake.Clientset
	out, err   safe
	interrupts chan os.Signal
	created    chan *corev1.Pod
	watched    chan struct{}
}

func newWorld(t *testing.T, there ...runtime.Object) *world {
	w := &world{t: t, client: fake.NewClientset(there...), interrupts: make(chan os.Signal, 2), created: make(chan *corev1.Pod, 8), watched: make(chan struct{}, 8)}
	// The fake stores dry runs; a server does not.
	w.client.PrependReactor("create", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		c := a.(k8stesting.CreateActionImpl)
		if len(c.CreateOptions.DryRun) > 0 {
			return true, c.Object, nil
		}
		if pod, ok := c.Object.(*corev1.Pod); ok {
			pod.ResourceVersion = "1" // which the fake does not give
			defer func() { w.created <- pod }()
		}
		return false, nil, nil
	})
	w.client.PrependReactor("patch", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		return len(a.(k8stesting.PatchActionImpl).PatchOptions.DryRun) > 0, nil, nil
	})
	// Nor does it replay what happened before a watch began, so the node waits for the watch.
	w.client.PrependWatchReactor("pods", func(a k8stesting.Action) (bool, watch.Interface, error) {
		defer func() { w.watched <- struct{}{} }()
		stream, err := w.client.Tracker().Watch(a.GetResource(), a.GetNamespace())
		return true, stream, err
	})
	return w
}

// running waits until the pod is created and followed.
func (w *world) running() {
	<-w.created
	<-w.watched
}

func (w *world) run(opts Options, text string) <-chan string {
	w.t.Helper()
	objects, err := manifest.Decode("f.yaml", []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	if opts.Namespace == "" {
		opts.Namespace = "default"
	}
	r := &Runner{Client: w.client, Options: opts, Interrupts: w.interrupts, Screen: &Screen{Out: &w.out, Err: &w.err, Start: time.Now()}}
	end := make(chan string, 1)
	go func() {
		result, err := r.Run(context.Background(), objects)
		end <- fmt.Sprintf("%d %v", result.Code, err)
	}()
	return end
}

// status is the node's report.
func (w *world) status(edit func(*corev1.PodStatus)) {
	w.t.Helper()
	pod, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	edit(&pod.Status)
	if _, err := w.client.CoreV1().Pods("default").UpdateStatus(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) expect(end <-chan string, want string) {
	w.t.Helper()
	select {
	case got := <-end:
		if !strings.Contains(got, want) {
			w.t.Errorf("ended with %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		w.t.Fatalf("did not end; said:\n%s", w.err.String())
	}
}

func (w *world) pods() int {
	l, err := w.client.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(l.Items)
}

const web = `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: i}]}}
`

func exits(code int32, phase corev1.PodPhase) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.Phase = phase
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
	}
}

func TestExitCodeIsThePods(t *testing.T) {
	for code, phase := range map[int32]corev1.PodPhase{0: corev1.PodSucceeded, 42: corev1.PodFailed} {
		w := newWorld(t)
		end := w.run(Options{}, web)
		w.running()
		w.status(exits(code, phase))
		w.expect(end, fmt.Sprintf("%d <nil>", code))
		if w.out.String() != "fake logs" || strings.Contains(w.err.String(), "fake logs") { // once: the fake tells no streams apart
			t.Errorf("the log is %q, %q", w.out.String(), w.err.String())
		}
		if !strings.Contains(w.err.String(), "pod default/web created") {
			t.Errorf("said %q", w.err.String())
		}
		if w.pods() != 1 {
			t.Error("the pod is gone without --rm")
		}
	}
}

// What is running is told and its log shown before the end.
func TestRemove(t *testing.T) {
	w := newWorld(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: "default"}})
	end := w.run(Options{Remove: true}, web+"---\n{apiVersion: v1, kind: Secret, metadata: {name: new}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: old}, data: {a: b}}\n")
	w.running()
	w.status(exits(3, corev1.PodFailed))
	w.expect(end, "3 <nil>")
	if w.pods() != 0 {
		t.Error("--rm left the pod")
	}
	if _, err := w.client.CoreV1().Secrets("default").Get(t.Context(), "new", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("--rm left the secret it made: %v", err)
	}
	cm, err := w.client.CoreV1().ConfigMaps("default").Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil || cm.Data["a"] != "b" {
		t.Errorf("the config map that was there before: %v, %v", cm, err)
	}
}

// What somebody else has made anew under a name of the manifest's is not the run's to remove.
func TestRemoveLeavesWhatIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.client.PrependReactor("create", "persistentvolumeclaims", func(a k8stesting.Action) (bool, runtime.Object, error) {
		a.(k8stesting.CreateActionImpl).Object.(*corev1.PersistentVolumeClaim).UID = "first"
		return false, nil, nil
	})
	w.client.PrependReactor("delete", "persistentvolumeclaims", func(a k8stesting.Action) (bool, runtime.Object, error) {
		d := a.(k8stesting.DeleteActionImpl)
		if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "first" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(d.GetResource().GroupResource(), "data", errors.New("another UID"))
	})
	end := w.run(Options{Remove: true}, web+"---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}\n")
	w.running()
	w.status(exits(3, corev1.PodFailed))
	w.expect(end, "3 <nil>")
	_, err := w.client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "data", metav1.GetOptions{})
	if said := w.err.String(); err != nil || strings.Contains(said, "data removed") ||
		!strings.Contains(said, "persistentvolumeclaim data is left alone") {
		t.Errorf("%v; said:\n%s", err, said)
	}
}

func TestDetachReturnsWhenReady(t *testing.T) {
	w := newWorld(t)
	end := w.run(Options{Detach: true}, web)
	w.running()
	w.status(func(s *corev1.PodStatus) {
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	w.expect(end, "0 <nil>")
	if w.pods() != 1 {
		t.Error("the detached pod is gone")
	}
}

func TestInterruptDeletes(t *testing.T) {
	w := newWorld(t)
	end := w.run(Options{}, web)
	w.running()
	w.interrupts <- os.Interrupt
	w.expect(end, "130 <nil>")
	if w.pods() != 0 || !strings.Contains(w.err.String(), "press Ctrl-C again to kill at once") {
		t.Errorf("%d pods left; said %q", w.pods(), w.err.String())
	}
}

// A second interrupt deletes with no grace; until then a pod that takes its time is waited for.
func TestSecondInterruptKills(t *testing.T) {
	w := newWorld(t)
	deletes := make(chan *int64, 4)
	w.client.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		grace := a.(k8stesting.DeleteActionImpl).DeleteOptions.GracePeriodSeconds
		deletes <- grace
		return grace == nil, nil, nil // only a kill takes effect
	})
	end := w.run(Options{}, web)
	w.running()
	w.interrupts <- os.Interrupt
	if g := <-deletes; g != nil {
		t.Errorf("first interrupt: grace %d", *g)
	}
	w.interrupts <- os.Interrupt
	if g := <-deletes; g == nil || *g != 0 {
		t.Errorf("second interrupt: grace %v", g)
	}
	w.expect(end, "130 <nil>")
}

// Only --rm deletes: what a run gives up is what somebody wants to look into.
func TestTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		opts Options
		want string
		left int
	}{
		"left":     {Options{}, "124 not finished after 50ms\npod default/web was not deleted: debug it (wherry debug web), or delete it (wherry kubectl delete pod web)", 1},
		"detached": {Options{Detach: true}, "124 not ready after 50ms\npod default/web was not deleted", 1},
		"removed":  {Options{Remove: true}, "124 not finished after 50ms", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c.opts.Timeout = 50 * time.Millisecond
				w.expect(w.run(c.opts, web), c.want)
				if w.pods() != c.left {
					t.Errorf("%d pods are left, want %d", w.pods(), c.left)
				}
			})
		})
	}
}

func waits(reason, message string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.Phase = corev1.PodPending
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

// PL-03, PL-15: an image that cannot be had is told; what no time heals ends the run, the rest with --fail-fast.
func TestImageErrors(t *testing.T) {
	for reason, failFast := range map[string]bool{"ErrImageNeverPull": false, "ErrImagePull": true} {
		for _, remove := range []bool{false, true} {
			w := newWorld(t)
			end := w.run(Options{FailFast: failFast, Remove: remove}, web)
			w.running()
			w.status(waits(reason, "no such image"))
			w.expect(end, "125 container main: "+reason+": no such image")
			if left := w.pods() > 0; left == remove {
				t.Errorf("--rm %v: the pod is left: %v", remove, left)
			}
		}
	}
	w := newWorld(t)
	end := w.run(Options{}, web)
	w.running()
	w.status(waits("ErrImagePull", "no such image"))
	w.status(exits(0, corev1.PodSucceeded)) // the registry is back
	w.expect(end, "0 <nil>")
}

// PL-15: what keeps a pod from being begun is told, once, though it is tried again; --fail-fast does not wait for it.
func TestCannotStart(t *testing.T) {
	const cause = `MountVolume.SetUp failed for volume "v" : secret "nosuch" not found`
	w := newWorld(t)
	end := w.run(Options{}, web)
	w.running()
	for range 3 {
		w.status(waits("ContainerCreating", cause))
		w.status(waits("ContainerCreating", ""))
	}
	w.status(exits(0, corev1.PodSucceeded)) // the secret came
	w.expect(end, "0 <nil>")
	if n := strings.Count(w.err.String(), "cannot start yet: "+cause); n != 1 {
		t.Errorf("told %d times:\n%s", n, w.err.String())
	}
	w = newWorld(t)
	end = w.run(Options{FailFast: true}, web)
	w.running()
	w.status(waits("ContainerCreating", cause))
	w.expect(end, "125 cannot start: "+cause)
}

// A crash ends a run that fails fast with the container's own exit code.
func TestCrashKeepsItsCode(t *testing.T) {
	w := newWorld(t)
	end := w.run(Options{FailFast: true}, web)
	w.running()
	w.status(func(s *corev1.PodStatus) {
		waits("CrashLoopBackOff", "back-off")(s)
		s.ContainerStatuses[0].RestartCount = 1
		s.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 9}
	})
	w.expect(end, "9 container main: CrashLoopBackOff")
	if w.pods() != 1 {
		t.Error("the pod is gone without --rm")
	}
}

// A signal's number makes the exit code, and the end of the terminal or of the output's reader, which may be told twice, does not hurry.
func TestSignals(t *testing.T) {
	for signal, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGPIPE: 141} {
		w := newWorld(t)
		end := w.run(Options{Remove: true}, web)
		w.running()
		w.interrupts <- signal
		w.expect(end, fmt.Sprintf("%d <nil>", code))
		if w.pods() != 0 {
			t.Errorf("%s: the pod is left", signal)
		}
	}
	if hurries(syscall.SIGHUP) || hurries(syscall.SIGPIPE) || !hurries(syscall.SIGINT) || !hurries(syscall.SIGTERM) {
		t.Error("only what a person sends again asks for haste")
	}
}

func TestDeletedByAnother(t *testing.T) {
	w := newWorld(t)
	end := w.run(Options{}, web)
	w.running()
	if err := w.client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expect(end, "pod default/web was deleted by someone else")
}

// Nothing is half done: a manifest with one bad object creates none.
func TestBadManifestsCreateNothing(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no pod":           {"{apiVersion: v1, kind: Secret, metadata: {name: s}}", "there is no pod in the manifest"},
		"a kind not taken": {web + "---\n{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: d}}", "f.yaml:2: wherry run does not support Lease: the server does not have this kind: leave it out"},
		"pod exists":       {"{apiVersion: v1, kind: Secret, metadata: {name: s}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: there}, spec: {}}", "f.yaml:2: pod default/there already exists"},
		"server refuses":   {"{apiVersion: v1, kind: Secret, metadata: {name: s}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: bad}, spec: {}}", "f.yaml:2: spec.containers: Required value"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
				switch a.(k8stesting.CreateAction).GetObject().(*corev1.Pod).Name {
				case "there":
					return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "there")
				case "bad":
					err := apierrors.NewBadRequest("invalid")
					err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.containers", Message: "Required value"}}}
					return true, nil, err
				}
				return false, nil, nil
			})
			w.expect(w.run(Options{}, c.text), c.want)
			l, err := w.client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(l.Items) > 0 || w.pods() > 0 {
				t.Errorf("created %d secrets and %d pods (%v)", len(l.Items), w.pods(), err)
			}
		})
	}
}
