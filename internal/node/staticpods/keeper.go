// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/static"
)

// Defaults of Config, as the kubelet has them.
const (
	DefaultFolderEvery = 20 * time.Second
	DefaultURLEvery    = 20 * time.Second
)

// Host is the agent. It is called by one goroutine, and must not block for long.
type Host interface {
	// BeginStatic is given a pod that begins, or goes on after a restart of the agent; it may be ending.
	BeginStatic(ctx context.Context, pod *corev1.Pod)
	// EndStatic is given a pod that is to end from now on.
	EndStatic(ctx context.Context, pod *corev1.Pod)
	// LeftStatic is called when nothing is left of a pod. Another of its name may begin then.
	LeftStatic(pod *corev1.Pod)
	// StaticTrouble is called once with what is wrong with a manifest.
	StaticTrouble(place, message string)
	// StaticChanged is called when the set of static pods, or the status of one, has changed. It must not block, and
	// may ask for the pods.
	StaticChanged()
}

// Config of a Keeper. Node, State and Host are required.
type Config struct {
	Node        string
	Folder      string // of manifests, or a single one; "": none
	FolderEvery time.Duration
	URL         string // of a manifest; "": none
	URLHeader   http.Header
	URLEvery    time.Duration
	State       string // folder of what is remembered
	Host        Host
	Logger      *slog.Logger
}

// Keeper keeps the static pods of a node. Make it with New, Start it, then Run it.
type Keeper struct {
	cfg     Config
	folder  folder
	fetched chan reading
	left    chan struct{} // holds one token when a pod has gone

	// What follows belongs to the goroutine that starts and runs it.
	manifests map[string]*pods                // by place
	doubts    map[string]string               // faults of files that were seen once
	faults    map[string]string               // by place, as reported
	again     map[types.UID]bool              // taken away and put back
	last      map[types.UID]*corev1.PodStatus // of those, when they have ended
	doubled   map[string]bool

	mu    sync.Mutex
	there map[string]*state // by key: pods that the agent has, also those that end
	gone  []*corev1.Pod     // of which nothing is left, not reported yet
}

// pods are what a manifest holds.
type pods struct {
	source static.Source
	list   []*corev1.Pod
}

// New takes up what an earlier agent has remembered.
func New(cfg Config) (*Keeper, error) {
	if cfg.FolderEvery <= 0 {
		cfg.FolderEvery = DefaultFolderEvery
	}
	if cfg.URLEvery <= 0 {
		cfg.URLEvery = DefaultURLEvery
	}
	k := &Keeper{cfg: cfg, folder: folder{path: cfg.Folder, stamps: map[string]stamp{}, again: map[string]bool{}},
		doubts: map[string]string{}, fetched: make(chan reading),
		left: make(chan struct{}, 1), manifests: map[string]*pods{}, faults: map[string]string{},
		again: map[types.UID]bool{}, last: map[types.UID]*corev1.PodStatus{}, doubled: map[string]bool{},
		there: map[string]*state{}}
	all, bad, err := load(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("static pods: %w", err)
	}
	for _, name := range bad {
		cfg.Logger.Warn("the saved status of a static pod cannot be read; it starts with an empty one", "file", name)
	}
	for _, s := range all {
		// Ended by the machine's going down: it is up again, and no controller makes a static pod anew.
		if s.Pod.Status.Reason == plan.ReasonTerminated {
			s.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}
		if k.there[static.Key(s.Pod)] != nil {
			cfg.Logger.Warn("two static pods of one name are remembered; one is forgotten", "pod", static.Key(s.Pod))
			_ = os.Remove(stateFile(cfg.State, s.Pod.UID)) // what runs of it is ended as a pod without a record
			continue
		}
		k.there[static.Key(s.Pod)] = s
		if s.Pod.DeletionTimestamp != nil {
			continue
		}
		if k.manifests[s.Place] == nil {
			k.manifests[s.Place] = &pods{source: static.Source(s.Pod.Annotations[static.SourceAnnotation])}
		}
		m := k.manifests[s.Place]
		m.list = append(m.list, s.Pod) // until its manifest is read
	}
	return k, nil
}

// Idle reports whether there is nothing to keep, and never will be.
func (k *Keeper) Idle() bool { return k.cfg.Folder == "" && k.cfg.URL == "" && len(k.there) == 0 }

// Start reads the folder and hands over the pods. What is behind the URL comes later: that server may be away.
func (k *Keeper) Start(ctx context.Context) error {
	if k.Idle() {
		return nil
	}
	if err := os.MkdirAll(k.cfg.State, 0o700); err != nil {
		return fmt.Errorf("static pods: %w", err)
	}
	if k.cfg.URL == "" {
		k.drop(static.HTTP)
	} else {
		maps.DeleteFunc(k.manifests, func(place string, p *pods) bool {
			return p.source == static.HTTP && place != k.cfg.URL
		})
	}
	k.look(nil, nil)
	for _, p := range k.Pods() {
		k.cfg.Host.BeginStatic(ctx, p)
	}
	k.adjust(ctx)
	return nil
}

func (k *Keeper) drop(source static.Source) {
	maps.DeleteFunc(k.manifests, func(_ string, p *pods) bool { return p.source == source })
}

// Run follows folder and URL until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if k.Idle() {
		return
	}
	var fetcher sync.WaitGroup
	defer fetcher.Wait()
	if k.cfg.URL != "" {
		fetcher.Go(func() { k.fetchAll(ctx) })
	}
	var tick <-chan time.Time
	if k.cfg.Folder != "" {
		t := time.NewTicker(k.cfg.FolderEvery)
		defer t.Stop()
		tick = t.C
	}
	w := k.watch()
	defer func() {
		if w != nil {
			w.close()
		}
	}()
	k.lookWith(w) // what has happened since Start
	for {
		k.adjust(ctx)
		var doubts <-chan time.Time
		if len(k.doubts) > 0 {
			doubts = time.After(secondLook)
		}
		var signal chan struct{}
		var ended chan struct{}
		if w != nil {
			signal, ended = w.signal, w.ended
		}
		select {
		case <-ctx.Done():
			return
		case <-k.left:
		case r := <-k.fetched:
			k.take(r, static.HTTP)
		case <-doubts:
			k.lookWith(w)
		case <-signal:
			k.lookWith(w)
		case <-ended:
			k.lookWith(w)
			w.close()
			w = nil
		case <-tick:
			if w == nil {
				w = k.watch()
			}
			k.lookWith(w)
		}
	}
}

// secondLook is when a file is looked at again that cannot be used: its writer may not be done with it.
const secondLook = 200 * time.Millisecond

// watch watches the folder if that can be; if not, it is looked through now and then.
func (k *Keeper) watch() *watch {
	if k.cfg.Folder == "" {
		return nil
	}
	w, err := watchFolder(k.cfg.Folder)
	if err != nil {
		k.trouble(k.cfg.Folder, fmt.Sprintf("cannot be watched, so changes are seen late: %v", err))
		return nil
	}
	k.trouble(k.cfg.Folder, "")
	return w
}

func (k *Keeper) lookWith(w *watch) {
	if w == nil {
		k.look(nil, nil)
		return
	}
	again, busy := w.take()
	k.look(again, busy)
}

// look takes in what the folder holds.
func (k *Keeper) look(again, busy map[string]bool) {
	if k.cfg.Folder == "" {
		k.drop(static.File)
		return
	}
	present, changed, err := k.folder.look(again, busy)
	if err != nil {
		k.trouble(k.cfg.Folder, err.Error())
		return
	}
	maps.DeleteFunc(k.manifests, func(place string, p *pods) bool {
		return p.source == static.File && !slices.Contains(present, place)
	})
	for place := range k.faults {
		if place != k.cfg.Folder && place != k.cfg.URL && !slices.Contains(present, place) {
			delete(k.faults, place)
		}
	}
	maps.DeleteFunc(k.doubts, func(place, _ string) bool { return !slices.Contains(present, place) })
	for _, r := range changed {
		k.take(r, static.File)
	}
}

// take takes in a manifest. One that cannot be read leaves what it held before.
func (k *Keeper) take(r reading, source static.Source) {
	var list []*corev1.Pod
	err := r.err
	if err == nil {
		list, err = static.Parse(static.Origin{Source: source, Place: r.place, Node: k.cfg.Node}, r.text)
	}
	if err != nil {
		if source == static.File && k.doubts[r.place] != err.Error() {
			k.doubts[r.place] = err.Error() // it may be half written
			k.folder.doubted(r.place)
			return
		}
		delete(k.doubts, r.place)
		k.trouble(r.place, err.Error())
		return
	}
	delete(k.doubts, r.place)
	k.folder.understood(r.place)
	k.trouble(r.place, "")
	k.manifests[r.place] = &pods{source, list}
	if r.again {
		for _, p := range list {
			k.again[p.UID] = true
		}
	}
}

// trouble logs and reports what is wrong with a manifest, once; an empty message means that it is well again.
func (k *Keeper) trouble(place, message string) {
	if k.faults[place] == message {
		return
	}
	if message == "" {
		delete(k.faults, place)
		k.cfg.Logger.Info("manifest of static pods is well again", "place", place)
		return
	}
	k.faults[place] = message
	k.cfg.Logger.Warn("manifest of static pods cannot be used; pods that it held before go on", "place", place, "err",
		message)
	k.cfg.Host.StaticTrouble(place, message)
}
