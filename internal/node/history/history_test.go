// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/leaktest"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/timeline"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func after(s float64) time.Time { return noon.Add(time.Duration(s * 1e9)) }

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "page"}},
			Containers: []corev1.Container{{Name: "web"}}}}
}

// recorder runs until the test ends or stop is called.
func recorder(t *testing.T, dir string, now time.Time, change ...func(*Config)) (r *Recorder, stop func()) {
	t.Helper()
	c := Config{Dir: dir, Node: "node-1"}
	for _, f := range change {
		f(&c)
	}
	r, err := New(c, now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return r, stop
}

func op(at float64, verb plan.Verb, container string, attempt uint32) work.Event {
	return work.Event{At: after(at), Op: plan.Op{Verb: verb, Container: container, Attempt: attempt}}
}

func done(e work.Event, at float64, err error) work.Event {
	e.At, e.Returned, e.Err = after(at), true, err
	return e
}

// words are a history's moments in short.
func words(h timeline.History) string {
	var out []string
	for _, m := range h.Moments {
		out = append(out, timeline.Subject(m)+" "+timeline.Describe(m))
	}
	return strings.Join(out, "\n")
}

func find(t *testing.T, r *Recorder, name string) timeline.History {
	t.Helper()
	h, _, ok := r.Find("default", name, "", after(100))
	if !ok {
		t.Fatalf("no history of %s", name)
	}
	return h
}

type reasonedError struct{ error }

func (reasonedError) Reason() string { return "ErrImagePull" }

// live lets a pod start, fail and leave.
func live(r *Recorder, p *corev1.Pod) {
	r.Pod(p, after(0))
	pull := op(0.1, plan.PullImage, "web", 0)
	r.Trace(p, pull)
	r.Trace(p, done(pull, 0.2, reasonedError{errors.New("no route to host")}))
	start := op(0.3, plan.StartContainer, "web", 0)
	r.Trace(p, start)
	r.Trace(p, done(start, 0.4, nil))
	seen := &plan.Seen{Sandboxes: []plan.Sandbox{{Ready: true}},
		Containers: []plan.Container{{Name: "web", CreatedAt: after(0.33), StartedAt: after(0.37)}}}
	r.Trace(p, work.Event{At: after(0.4), Seen: seen})
	r.Trace(p, work.Event{At: after(0.5), Seen: seen})
	on := true
	running := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
		Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Started: &on, Ready: true}}}
	r.StatusChanged(p, &corev1.PodStatus{}, &running, after(0.5))
	seen = &plan.Seen{Containers: []plan.Container{{Name: "web", CreatedAt: after(0.33), StartedAt: after(0.37),
		FinishedAt: after(3), ExitCode: 137, Reason: "OOMKilled"}},
		Sandboxes: []plan.Sandbox{{}}}
	r.Trace(p, work.Event{At: after(3.01), Seen: seen})
	waiting := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "web",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
			Message: "back-off 10s"}}}}}
	r.StatusChanged(p, &running, &waiting, after(3.02))
}

const lived = `pod was seen by the node
web is pulling its image
web is pulling its image: failed: ErrImagePull: no route to host
web is being created and started
web start completed
web created
web runs
web has started
web ready
pod ready
pod is now: Running
pod its sandbox has died
web exit 137: OOMKilled
web not ready
web waits: CrashLoopBackOff: back-off 10s
pod not ready`

// What operations, looks at the node and statuses tell becomes moments, each once.
func TestMoments(t *testing.T) {
	r, _ := recorder(t, t.TempDir(), noon)
	p := pod("web")
	live(r, p)
	r.Pod(p, after(4))
	if got := words(find(t, r, "web")); got != lived {
		t.Errorf("got\n%s\nwant\n%s", got, lived)
	}
}

// A restarted agent goes on where the one before stopped, says so, and notes nothing twice.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	r, stop := recorder(t, dir, noon)
	live(r, pod("web"))
	stop()
	r, stop = recorder(t, dir, after(10))
	p := pod("web")
	r.Pod(p, after(10))
	r.Trace(p, work.Event{At: after(10), Seen: &plan.Seen{Containers: []plan.Container{{Name: "web",
		CreatedAt: after(0.33), StartedAt: after(0.37), FinishedAt: after(3), ExitCode: 137, Reason: "OOMKilled"}}}})
	if got, want := words(find(t, r, "web")), lived+"\npod the node's agent was restarted"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	stop()
	for range 3 { // an agent that does not get far is one line
		_, stop = recorder(t, dir, after(11))
		stop()
	}
	r, _ = recorder(t, dir, after(12))
	h := find(t, r, "web")
	if last := h.Moments[len(h.Moments)-1]; last.What != timeline.Agent || last.Times != 5 {
		t.Errorf("the last moment is %+v", last)
	}
}

// A file that was cut off in the middle of a line gives all lines before, and what comes later is not lost in it.
func TestCutOffFile(t *testing.T) {
	dir := t.TempDir()
	r, stop := recorder(t, dir, noon)
	live(r, pod("web"))
	stop()
	file := filepath.Join(dir, "uid-web.jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(data) - 1; cut > bytes.IndexByte(data, '\n')+200; cut -= 37 {
		if err := os.WriteFile(file, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		r, stop := recorder(t, dir, after(20))
		before := len(find(t, r, "web").Moments)
		r.Trace(pod("web"), op(21, plan.StopSandbox, "", 0))
		stop()
		r, stop = recorder(t, dir, after(22))
		h := find(t, r, "web")
		whole := bytes.Count(data[:cut], []byte("\n")) - 1
		if before < whole || len(h.Moments) != before+2 {
			t.Fatalf("cut at %d of %d: %d of %d whole moments, then %d", cut, len(data), before, whole, len(h.Moments))
		}
		stop()
	}
}

// A pod that crashes for ever stays within its bounds, in memory and on disk, also when messages are long.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	r, stop := recorder(t, dir, noon)
	p := pod("web")
	r.Pod(p, noon)
	long := errors.New(strings.Repeat("€", 5000))
	for n := range uint32(3000) {
		start := op(float64(n), plan.StartContainer, "web", n)
		r.Trace(p, start)
		r.Trace(p, done(start, float64(n)+0.5, long))
	}
	h := find(t, r, "web")
	data, _ := json.Marshal(h.Moments)
	if len(h.Moments) > MaxMoments || len(data) > MaxBytes {
		t.Errorf("%d moments of %d bytes", len(h.Moments), len(data))
	}
	if h.Moments[0].What != timeline.Seen || h.Moments[len(h.Moments)-1].Attempt != 2999 {
		t.Errorf("the beginning or the end is lost: %d, %+v, %+v", len(h.Moments), h.Moments[0],
			h.Moments[len(h.Moments)-1])
	}
	probe := work.Event{At: after(4000), Returned: true, Op: plan.Op{Verb: plan.Probe, Container: "web", Attempt: 2999,
		Probe: plan.LivenessProbe},
		Err: &work.ProbeFailure{Message: "HTTP 500"}}
	for range 100_000 {
		r.Trace(p, probe)
	}
	stop()
	if s, err := os.Stat(filepath.Join(dir, "uid-web.jsonl")); err != nil || s.Size() > MaxBytes {
		t.Errorf("file: %v, %v", s.Size(), err)
	}
	h = find(t, r, "web")
	if last := h.Moments[len(h.Moments)-1]; last.Times != 100_000 || last.Text != "HTTP 500" {
		t.Errorf("the last moment is %+v", last)
	}
}

// PL-04: of probes, what counts is told: each failure, and the first success; not early tries that failed.
func TestProbes(t *testing.T) {
	r, _ := recorder(t, t.TempDir(), noon)
	p := pod("web")
	try := func(err error, early bool) {
		r.Trace(p, work.Event{At: noon, Op: plan.Op{Verb: plan.Probe, Container: "web", Probe: plan.StartupProbe,
			Early: early}})
		r.Trace(p, work.Event{At: noon, Returned: true, Op: plan.Op{Verb: plan.Probe, Container: "web",
			Probe: plan.StartupProbe, Early: early}, Err: err})
	}
	no := &work.ProbeFailure{Message: "no"}
	try(no, true)
	try(no, false)
	try(no, false)
	try(errors.New("the runtime is away"), false)
	try(nil, true)
	try(nil, false)
	try(no, false)
	want := "web startup probe failed (2 times): no\nweb startup probe passed\nweb startup probe failed: no"
	if got := words(find(t, r, "web")); got != want {
		t.Errorf("got\n%s", got)
	}
}

// The timeline of a pod that is gone is kept for a while: the newest ones, and none for too long.
func TestGone(t *testing.T) {
	dir := t.TempDir()
	on := sync.Map{}
	has := func(c *Config) { c.Has = func(uid string) bool { _, ok := on.Load(uid); return ok } }
	r, stop := recorder(t, dir, noon, has)
	for n := range KeepGone + 5 {
		p := pod(fmt.Sprint("p", n))
		r.Pod(p, after(float64(n)))
		r.Trace(p, work.Event{At: after(float64(n) + 0.1), Left: true})
		r.Removed(p, after(float64(n)+0.2))
	}
	on.Store("uid-stays", true)
	r.Pod(pod("stays"), noon)
	r.Pod(pod("lost"), noon)
	stop()
	r.Sweep(after(1000))
	count := func() int { files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")); return len(files) }
	if n := count(); n != KeepGone+2 {
		t.Errorf("%d files", n)
	}
	if h := find(t, r, "p204"); !h.Gone {
		t.Error("a pod that has left and has no record is not gone")
	}
	r.Sweep(after(1060)) // nobody spoke of it twice
	if !find(t, r, "lost").Gone || find(t, r, "stays").Gone {
		t.Error("what is on the node and what is not was not told apart")
	}
	r, stop = recorder(t, dir, after(1100), has)
	stop()
	if !find(t, r, "p204").Gone || strings.Contains(words(find(t, r, "p204")), "anew") {
		t.Error("a restart brought a pod back that is gone")
	}
	r.Sweep(after(8000))
	if n := count(); n != 1 {
		t.Errorf("%d files after hours", n)
	}
}

// Of several pods of one name the one on the node is meant, else the newest.
func TestFind(t *testing.T) {
	r, _ := recorder(t, t.TempDir(), noon)
	for n, uid := range []types.UID{"a", "b", "c"} {
		p := pod("web")
		p.UID = uid
		r.Pod(p, after(float64(n)))
		if uid != "a" {
			r.Trace(p, work.Event{At: after(float64(n)), Left: true})
			r.Removed(p, after(float64(n)))
		}
	}
	if h := find(t, r, "web"); h.UID != "a" {
		t.Errorf("found %s", h.UID)
	}
	if h, _, ok := r.Find("default", "web", "b", noon); !ok || h.UID != "b" {
		t.Errorf("found %s by uid b", h.UID)
	}
	if _, _, ok := r.Find("other", "web", "", noon); ok {
		t.Error("found in another namespace")
	}
}

func serve(t *testing.T, r *Recorder) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /timeline/{namespace}/{pod}", r)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestServe(t *testing.T) {
	r, _ := recorder(t, t.TempDir(), noon)
	live(r, pod("web"))
	s := serve(t, r)
	resp, err := http.Get(s.URL + "/timeline/default/web")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var h timeline.History
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil || words(h) != lived || h.Node != "node-1" ||
		h.Now.IsZero() {
		t.Errorf("%v: %+v", err, h)
	}
	missing, err := http.Get(s.URL + "/timeline/default/none")
	if err != nil {
		t.Fatal(err)
	}
	defer missing.Body.Close()
	if missing.StatusCode != http.StatusNotFound {
		t.Errorf("status %d for a pod that is not known", missing.StatusCode)
	}
}

// A stream begins with the whole, goes on with what changes, and ends when the pod is gone.
func TestServeWatch(t *testing.T) {
	r, _ := recorder(t, t.TempDir(), noon)
	p := pod("web")
	r.Pod(p, noon)
	resp, err := http.Get(serve(t, r).URL + "/timeline/default/web?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := json.NewDecoder(resp.Body)
	var h, part timeline.History
	if err := in.Decode(&h); err != nil || h.UID != "uid-web" || len(h.Moments) != 1 {
		t.Fatalf("%v: %+v", err, h)
	}
	live(r, p)
	r.Trace(p, work.Event{At: after(5), Left: true})
	r.Removed(p, after(6))
	for !h.Gone {
		part = timeline.History{}
		if err := in.Decode(&part); err != nil {
			t.Fatal(err)
		}
		h.Merge(part)
	}
	want := lived + "\npod has left the node\npod is gone from the API server"
	if got := words(h); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := in.Decode(&part); err == nil {
		t.Error("the stream goes on after the end")
	}
}

// Whatever a file holds, reading it ends, and what is read can be kept and drawn.
func FuzzRead(f *testing.F) {
	h := timeline.History{Pod: timeline.Pod{Name: "web", UID: "u"},
		Moments: []timeline.Moment{{Seq: 1, At: noon, What: timeline.Seen},
			{Seq: 2, At: after(1), What: timeline.Exited, Code: 3}}}
	f.Add(whole(&h))
	f.Add(whole(&h)[:60])
	f.Add([]byte("{}\n\x00\n{\"moment\":{\"seq\":-1,\"at\":\"2026-01-01T00:00:00Z\"}}\n"))
	f.Add(bytes.Repeat([]byte("x"), 3*maxLine))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		p := restored(h, noon)
		again, err := Read(bytes.NewReader(whole(&p.h)))
		if err != nil || len(again.Moments) != len(p.h.Moments) {
			t.Fatalf("%d moments written, %d read: %v", len(p.h.Moments), len(again.Moments), err)
		}
		if len(p.h.Moments) < 300 {
			_ = timeline.Text(h, timeline.Options{Moments: true})
		}
	})
}
