// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// host is an agent that writes down what it is told.
type host struct {
	events chan string
	keeper atomic.Pointer[Keeper]
}

func (h *host) BeginStatic(_ context.Context, p *corev1.Pod) {
	word := "begin"
	if p.DeletionTimestamp != nil {
		word = "ending"
	}
	h.events <- fmt.Sprintf("%s %s %s %d", word, p.Name, p.Spec.Containers[0].Image, len(p.Status.ContainerStatuses))
}
func (h *host) EndStatic(_ context.Context, p *corev1.Pod) { h.events <- "end " + p.Name }
func (h *host) LeftStatic(p *corev1.Pod)                   { h.events <- "left " + p.Name }
func (h *host) StaticTrouble(place, message string) {
	h.events <- "trouble " + filepath.Base(place) + ": " + message
}
func (h *host) StaticChanged() {
	if k := h.keeper.Load(); k != nil {
		k.Pods()
	}
}

// world is a keeper with its folders.
type world struct {
	*testing.T
	host   *host
	config Config
	keeper *Keeper
	stop   func()
}

func newWorld(t *testing.T, change func(*Config)) *world {
	h := &host{events: make(chan string, 100)}
	w := &world{T: t, host: h, config: Config{Node: "n", Folder: t.TempDir(),
		State: filepath.Join(t.TempDir(), "state"), Host: h, FolderEvery: time.Hour, URLEvery: time.Millisecond,
		Logger: slog.New(slog.DiscardHandler)}}
	if change != nil {
		change(&w.config)
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start() {
	w.Helper()
	k, err := New(w.config)
	if err != nil {
		w.Fatal(err)
	}
	w.host.keeper.Store(k)
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // outlives the test's own, to be stopped in order
	if err := k.Start(ctx); err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	w.keeper, w.stop = k, func() { cancel(); <-done }
}

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.config.Folder, name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.Helper()
	if err := os.Remove(filepath.Join(w.config.Folder, name)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) hears(want ...string) {
	w.Helper()
	for _, s := range want {
		select {
		case got := <-w.host.events:
			if !strings.HasPrefix(got, s) {
				w.Fatalf("heard %q, want %q", got, s)
			}
		case <-time.After(20 * time.Second):
			w.Fatalf("heard nothing, want %q", s)
		}
	}
}

func (w *world) silent() {
	w.Helper()
	select {
	case got := <-w.host.events:
		w.Fatalf("heard %q", got)
	default:
	}
}

// uid is that of the pod of a name.
func (w *world) uid(name string) types.UID {
	w.Helper()
	p := w.keeper.Pod("default/" + name)
	if p == nil {
		w.Fatalf("no pod %s", name)
	}
	return p.UID
}

func (w *world) ends(name string) {
	w.Helper()
	if err := w.keeper.Forget(w.uid(name)); err != nil {
		w.Fatal(err)
	}
}

func podYAML(name, image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers: [{name: c, image: '" +
		image + "'}]\n"
}

// PL-12 PL-31: a pod begins with its file, another takes its place when it has ended, and it ends with its file.
func TestFiles(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.yaml", podYAML("a", "i:1"))
	w.hears("begin a-n i:1 0")
	w.write("a.yaml", podYAML("a", "i:2"))
	w.hears("end a-n")
	w.write("a.yaml", podYAML("a", "i:3"))
	w.write("b.yaml", podYAML("b", "i:1")) // told when all before it is known
	w.hears("begin b-n")
	w.ends("a-n")
	w.hears("left a-n", "begin a-n i:3")
	w.write(".hidden.yaml", podYAML("h", "i:1"))
	if err := os.Rename(filepath.Join(w.config.Folder, "a.yaml"),
		filepath.Join(w.config.Folder, "z.yaml")); err != nil {
		t.Fatal(err)
	}
	w.remove("b.yaml")
	w.hears("end b-n") // and not a, whose file has another name only
	w.ends("b-n")
	w.hears("left b-n")
	w.silent()
}

// PL-12: a file that is taken away and put back is a pod that ends and begins anew, with the past of the first.
func TestPutBack(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.yaml", podYAML("a", "i:1"))
	w.hears("begin a-n i:1 0")
	if err := w.keeper.Save(w.uid("a-n"),
		&corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}}); err != nil {
		t.Fatal(err)
	}
	w.remove("a.yaml")
	w.write("a.yaml", podYAML("a", "i:1"))
	w.hears("end a-n")
	w.write("b.yaml", podYAML("b", "i:1"))
	w.hears("begin b-n")
	w.ends("a-n")
	w.hears("left a-n", "begin a-n i:1 1")
}

// PL-12: what is wrong with a file is told once and changes nothing; when it is mended it counts.
func TestTrouble(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.yaml", podYAML("a", "i:1"))
	w.hears("begin a-n")
	w.write("a.yaml", podYAML("a", "i:1")[:50])
	w.hears("trouble a.yaml: ")
	w.write("a.yaml", podYAML("a", "i:1")[:50])
	w.write("b.yaml", podYAML("a", "i:5"))
	w.hears("trouble b.yaml: pod default/a-n is in more than one manifest")
	w.remove("b.yaml")
	w.write("a.yaml", podYAML("a", "i:2"))
	w.hears("end a-n")
	if err := os.Mkdir(filepath.Join(w.config.Folder, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.hears("trouble sub: is a folder")
}

// PL-12: a file that somebody still writes is read when he has closed it.
func TestHalfWritten(t *testing.T) {
	w := newWorld(t, nil)
	w.write("0.yaml", podYAML("first", "i:1"))
	w.hears("begin first-n") // the folder is watched
	f, err := os.Create(filepath.Join(w.config.Folder, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, podYAML("a", "i:1"))
	w.write("b.yaml", podYAML("b", "i:1"))
	w.hears("begin b-n")
	fmt.Fprint(f, "---\n"+podYAML("c", "i:1"))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w.hears("begin a-n", "begin c-n")
}

// PL-31: an agent that starts again goes on with what is there, ends what has lost its file, and lets what cannot be
// read run on.
func TestStartsAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.yaml", podYAML("a", "i:1"))
	w.hears("begin a-n")
	w.write("b.yaml", podYAML("b", "i:1"))
	w.hears("begin b-n")
	w.write("c.yaml", podYAML("c", "i:1"))
	w.hears("begin c-n")
	if err := w.keeper.Save(w.uid("a-n"),
		&corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}}); err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.remove("b.yaml")
	w.write("c.yaml", "{")
	if err := os.WriteFile(filepath.Join(w.config.State, "junk.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.hears("begin a-n i:1 1", "begin b-n", "begin c-n", "end b-n", "trouble c.yaml")
	w.stop()
	w.start()
	w.hears("begin a-n", "ending b-n", "begin c-n", "trouble c.yaml")
	w.ends("b-n")
	w.hears("left b-n")
	w.stop()
	w.config.Folder = ""
	w.start()
	w.hears("begin a-n", "begin c-n", "end a-n", "end c-n")
	uids, err := UIDs(w.config.State)
	if err != nil || len(uids) != 2 || !uids[w.uid("a-n")] {
		t.Errorf("remembered are %v, %v", uids, err)
	}
}

// PL-12: the folder may come later, and go.
func TestNoFolder(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Folder = filepath.Join(c.Folder, "later")
		c.FolderEvery = 20 * time.Millisecond
	})
	w.hears("trouble later: cannot be watched")
	if err := os.Mkdir(w.config.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("a.yaml", podYAML("a", "i:1"))
	w.hears("begin a-n")
	if err := os.RemoveAll(w.config.Folder); err != nil {
		t.Fatal(err)
	}
	w.hears("end a-n")
}

// PL-12: pods from a URL, with a header; a server that fails changes nothing.
func TestURL(t *testing.T) {
	var text atomic.Value
	text.Store(podYAML("a", "i:1"))
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" || text.Load() == "" {
			http.Error(rw, "no", http.StatusForbidden)
			return
		}
		fmt.Fprint(rw, text.Load())
	}))
	defer srv.Close()
	w := newWorld(t, func(c *Config) {
		c.Folder, c.URL, c.URLHeader = "", srv.URL, http.Header{"X-Key": {"k"}}
	})
	w.hears("begin a-n i:1")
	text.Store("")
	w.hears("trouble ")
	text.Store(podYAML("a", "i:2"))
	w.hears("end a-n")
	w.ends("a-n")
	w.hears("left a-n", "begin a-n i:2")
	w.stop()
	text.Store("")
	w.start() // the server is of no use: what is remembered goes on
	w.hears("begin a-n i:2", "trouble ")
	text.Store(`{"apiVersion":"v1","kind":"PodList","items":[]}`)
	w.hears("end a-n")
}

// FuzzState: whatever lies in the state folder, nothing is taken for another pod.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"place":"a","pod":{"metadata":{"name":"a","uid":"u"}}}`))
	f.Add([]byte(`{"pod":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseState(text, "u")
		if err == nil && (s.Pod == nil || s.Pod.UID != "u") {
			t.Errorf("%+v", s)
		}
	})
}

// PL-32: a pod that the machine's going down has ended begins anew with the agent; one that has failed by itself stays so.
func TestDownAndUp(t *testing.T) {
	w := newWorld(t, nil)
	w.write("a.yaml", podYAML("a", "i:1"))
	w.hears("begin a-n")
	w.write("b.yaml", podYAML("b", "i:1"))
	w.hears("begin b-n")
	for name, reason := range map[string]string{"a-n": "Terminated", "b-n": "Evicted"} {
		if err := w.keeper.Save(w.uid(name), &corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}}); err != nil {
			t.Fatal(err)
		}
	}
	w.stop()
	w.start()
	w.hears("begin a-n i:1 0", "begin b-n i:1 1")
}
