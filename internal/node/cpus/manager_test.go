// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/podspec"
)

// runtime has containers, by POD/CONTAINER, on CPUs.
type runtime struct {
	mu    sync.Mutex
	on    map[string]string
	fails int
	moved []string
}

func (r *runtime) Running(context.Context) (out []Running, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for who := range r.on {
		pod, c, _ := strings.Cut(who, "/")
		out = append(out, Running{types.UID(pod), c, who})
	}
	return out, nil
}

func (r *runtime) SetCPUs(_ context.Context, id, cpus string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails > 0 {
		r.fails--
		return errors.New("busy")
	}
	r.on[id] = cpus
	r.moved = append(r.moved, id)
	return nil
}

func (r *runtime) has(t *testing.T, want map[string]string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !maps.Equal(r.on, want) {
		t.Errorf("containers run on %v, want %v", r.on, want)
	}
}

type world struct {
	t       *testing.T
	dir     string
	runtime *runtime
	retried []types.UID
	*Manager
	end func()
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), runtime: &runtime{on: map[string]string{}}}
	for _, pod := range []string{"one", "two", "loose"} {
		if err := os.Mkdir(filepath.Join(w.dir, pod), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.begin(false)
	return w
}

// begin starts a process on four CPUs, of which the first is reserved.
func (w *world) begin(off bool) {
	w.t.Helper()
	machine := pin.Machine{{ID: 0}, {ID: 1, Core: 1}, {ID: 2, Core: 2}, {ID: 3, Core: 3}}
	m, err := New(Config{Policy: pin.Policy{Machine: machine, Reserved: cpuset.New(0)}, Off: off, PodsFolder: w.dir,
		Runtime: w.runtime, Retry: func(uid types.UID) { w.retried = append(w.retried, uid) },
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	w.Manager, w.end = m, func() { cancel(); <-done }
}

func podOf(uid, cpu string) *corev1.Pod {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("1Mi")}
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
		Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}}}
	p.UID = types.UID(uid)
	return p
}

// starts has a container made and run.
func (w *world) starts(p *corev1.Pod) error {
	cpus, _, err := w.Give(p, &p.Spec.Containers[0], podspec.Main)
	if err != nil {
		return err
	}
	id := string(p.UID) + "/c"
	w.Made(id, cpus)
	w.runtime.mu.Lock()
	w.runtime.on[id] = cpus
	w.runtime.mu.Unlock()
	w.Started(p.UID, "c", id)
	return nil
}

// PL-33: others are moved off CPUs that somebody gets to himself, and back when he has ended; all of it is as it was
// after a restart, and taken back when the policy is none.
func TestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		w.runtime.on["/debug"] = "0-3" // of no pod that is known
		must(w.starts(podOf("loose", "500m")))
		w.runtime.has(t, map[string]string{"loose/c": "0-3", "/debug": "0-3"})
		must(w.starts(podOf("one", "2")))
		w.runtime.has(t, map[string]string{"loose/c": "0,3", "/debug": "0,3", "one/c": "1-2"})
		if err := w.starts(podOf("two", "2")); err == nil ||
			err.Error() != "not enough cpus available to satisfy request: requested=2, available=1; the container waits until some come free" {
			t.Errorf("%v", err)
		}
		w.end()
		w.runtime.moved = nil
		w.begin(false)
		w.runtime.has(t, map[string]string{"loose/c": "0,3", "/debug": "0,3", "one/c": "1-2"})
		if got := w.Of("one")["c"]; !got.Equals(cpuset.New(1, 2)) {
			t.Errorf("after a restart: %v", got)
		}
		if err := w.starts(podOf("two", "2")); err == nil {
			t.Error("the same CPUs were given twice after a restart")
		}
		must(w.starts(podOf("one", "2"))) // restarted
		w.runtime.fails = 1
		delete(w.runtime.on, "one/c")
		w.Release("one")
		w.runtime.has(t, w.runtime.on) // once it failed
		time.Sleep(movePause)
		w.runtime.has(t, map[string]string{"loose/c": "0-3", "/debug": "0-3"})
		if len(w.retried) != 1 || w.retried[0] != "two" {
			t.Errorf("told: %v", w.retried)
		}
		must(w.starts(podOf("two", "2")))
		w.runtime.has(t, map[string]string{"loose/c": "0,3", "/debug": "0,3", "two/c": "1-2"})
		w.end()
		w.begin(true)
		w.runtime.has(t, map[string]string{"loose/c": "0-3", "/debug": "0-3", "two/c": "0-3"})
		if cpus, _, err := w.Give(podOf("one", "2"), &podOf("one", "2").Spec.Containers[0], podspec.Main); cpus != "" ||
			err != nil {
			t.Errorf("with policy none: %q, %v", cpus, err)
		}
		w.end()
		w.runtime.moved = nil
		w.begin(true)
		synctest.Wait()
		if len(w.runtime.moved) > 0 {
			t.Errorf("with nothing to take back containers were moved: %v", w.runtime.moved)
		}
		w.end()
	})
}

// A container that was made while its CPUs were given away is moved.
func TestGivenAwayMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		loose, one := podOf("loose", "500m"), podOf("one", "1")
		cpus, _, err := w.Give(loose, &loose.Spec.Containers[0], podspec.Main)
		if err != nil || cpus != "0-3" {
			t.Fatal(cpus, err)
		}
		w.Made("loose/c", cpus) // it does not run yet: nobody moves it
		if err := w.starts(one); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.runtime.mu.Lock()
		w.runtime.on["loose/c"] = cpus
		w.runtime.mu.Unlock()
		w.Started("loose", "c", "loose/c")
		w.runtime.has(t, map[string]string{"one/c": "1", "loose/c": "0,2-3"})
		if cpus, _, err := w.Give(one, &one.Spec.Containers[0], podspec.Ephemeral); err != nil || cpus != "0,2-3" {
			t.Errorf("a debug container: %q, %v", cpus, err)
		}
		w.end()
	})
}

// FuzzRead: whatever the file of a pod holds, it is read or refused, and what is read is the same when it is written
// again.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"c":"0-1,4"}`, `{"c":""}`, `{"c":"9-1"}`, `{"c":"0-99999999"}`, `{`, `null`, `[]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), FileName)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		held, err := read(file)
		if err != nil {
			return
		}
		if err := write(file, held); err != nil {
			t.Fatal(err)
		}
		again, err := read(file)
		if err != nil || !maps.EqualFunc(held, again, cpuset.CPUSet.Equals) {
			t.Errorf("%q: %v, %v", text, again, err)
		}
	})
}

// The kernel's words for a machine, and those of one that says nothing of cores.
func TestReadMachine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadMachine(dir, filepath.Join(dir, "nodes")); err == nil {
		t.Error("no machine is one")
	}
	file("online", "0-1,3\n")
	file("cpu0/topology/core_id", "7\n")
	file("cpu0/topology/physical_package_id", "1\n")
	file("cpu1/topology/core_id", "-1\n")
	file("cpu1/cache/index2/level", "2\n")
	file("cpu1/cache/index2/shared_cpu_list", "0-1\n")
	file("cpu1/cache/index3/level", "3\n")
	file("cpu1/cache/index3/shared_cpu_list", "1,5\n")
	file("nodes/node2/cpulist", "1\n")
	file("nodes/node3/cpulist", "\n") // memory alone
	m, err := ReadMachine(dir, filepath.Join(dir, "nodes"))
	want := pin.Machine{{ID: 0, Core: 7, Socket: 1}, {ID: 1, Core: 1, Node: 2, Cache: 1}, {ID: 3, Core: 3}}
	if err != nil || len(m) != 3 || m[0] != want[0] || m[1] != want[1] || m[2] != want[2] {
		t.Errorf("%+v, %v", m, err)
	}
	file("online", "x")
	if _, err := ReadMachine(dir, filepath.Join(dir, "nodes")); err == nil ||
		!strings.Contains(err.Error(), "which CPUs are online") {
		t.Errorf("%v", err)
	}
	if real, err := ReadMachine(SystemFolder, NodesFolder); err != nil || real.ThreadsPerCore() < 1 {
		t.Errorf("this machine: %+v, %v", real, err)
	}
}
