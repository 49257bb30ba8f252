// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
)

const (
	defaultPatience  = 10 * time.Second
	defaultRepublish = time.Minute
	// callTimeout is how long a driver may take to answer; it is the kubelet's.
	callTimeout = 2 * time.Minute
)

// Config is what a Manager works with. All but Patience and Republish is required.
type Config struct {
	NodeName string
	// Folder is the kubelet's, below which drivers look for sockets and volumes. "": there are no drivers.
	Folder     string
	PodsFolder string // holds one folder for each pod
	Boot       string // another one each time the machine starts
	Client     kubernetes.Interface
	// Token gives a token of the pod's service account, as for a projected volume.
	Token func(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (string, time.Time, error)
	// InUse has the node's status show [Manager.InUse], and returns the node as it is then.
	InUse func(context.Context) (*corev1.Node, error)
	// Changed is called when a volume is not in use any more, Retry when a volume of the pod may be made or unmade now
	// that could not be. Neither may block.
	Changed func()
	Retry   func(types.UID)
	Event   func(pod *corev1.Pod, kind, reason, message string)
	// Patience is how long is waited for what is about to come: drivers after a start of the agent, attachments. 0: 10
	// s.
	Patience time.Duration
	// Republish is how often drivers that want it are asked again. 0: one minute, as the kubelet does it.
	Republish time.Duration
	Logger    *slog.Logger
}

// Manager has the CSI drivers of a node make volumes. Safe for concurrent use.
type Manager struct {
	cfg     Config
	paths   terms.Paths
	started time.Time
	turns   turns

	ctx     context.Context // ends with Run
	end     context.CancelFunc
	running context.Context // Run's own, which ends before
	loops   sync.WaitGroup
	writing sync.Mutex // held while the node's objects are written

	mu      sync.Mutex
	drivers map[string]*driver
	gone    map[string]bool // drivers that have left and are not taken out of the node's objects yet
	uses    map[types.UID]uses
	tended  map[place]context.CancelFunc
	waiting map[types.UID]bool // pods whose volumes could not be made or unmade
	news    chan struct{}      // closed when a driver has come or the node has changed
}

// place is one volume of a pod.
type place struct {
	uid    types.UID
	volume string
}

// New makes a Manager, with what an earlier process has written down.
func New(c Config) (*Manager, error) {
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	c.Republish = cmp.Or(c.Republish, defaultRepublish)
	m := &Manager{cfg: c, paths: terms.Paths{Folder: c.Folder}, started: time.Now(),
		turns: turns{held: map[corev1.UniqueVolumeName]chan struct{}{}}, drivers: map[string]*driver{},
		gone: map[string]bool{}, uses: map[types.UID]uses{}, tended: map[place]context.CancelFunc{},
		waiting: map[types.UID]bool{}, news: make(chan struct{})}
	m.ctx, m.end = context.WithCancel(context.Background())
	return m, m.readAll()
}

// InUse are the volumes that pods of the node have, or may have, and that somebody attaches: as long as one is here, it
// is not detached.
func (m *Manager) InUse() []corev1.UniqueVolumeName {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[corev1.UniqueVolumeName]bool{}
	for _, s := range m.uses {
		for _, u := range s {
			if u.Attach {
				all[u.unique()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// NodeChanged is called when the node's object has changed: something may be attached now.
func (m *Manager) NodeChanged(was, now *corev1.Node) {
	attached := func(n *corev1.Node) map[corev1.UniqueVolumeName]bool {
		out := map[corev1.UniqueVolumeName]bool{}
		if n != nil {
			for _, v := range n.Status.VolumesAttached {
				out[v.Name] = true
			}
		}
		return out
	}
	if !maps.Equal(attached(was), attached(now)) {
		m.wakeWaiting()
	}
}

// wakeWaiting has those who wait look again.
func (m *Manager) wakeWaiting() {
	m.mu.Lock()
	close(m.news)
	m.news = make(chan struct{})
	waiting := slices.Collect(maps.Keys(m.waiting))
	clear(m.waiting)
	m.mu.Unlock()
	for _, uid := range waiting {
		m.cfg.Retry(uid)
	}
}

// wait remembers a pod that waits for news.
func (m *Manager) wait(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting[uid] = true
}

// connected is a driver that has registered; shortly after the agent's start it is waited for.
func (m *Manager) connected(ctx context.Context, name string) (*driver, error) {
	over := time.NewTimer(time.Until(m.started.Add(m.cfg.Patience)))
	defer over.Stop()
	for {
		m.mu.Lock()
		d, news, here := m.drivers[name], m.news, slices.Collect(maps.Keys(m.drivers))
		m.mu.Unlock()
		if d != nil {
			return d, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over.C:
			if m.cfg.Folder == "" {
				return nil, errNoFolder
			}
			return nil, terms.Missing(name, here)
		case <-news:
		}
	}
}

// turns let one at a time have a volume staged, published and the reverse.
type turns struct {
	mu   sync.Mutex
	held map[corev1.UniqueVolumeName]chan struct{}
}

// take waits for the turn and returns what gives it back.
func (t *turns) take(ctx context.Context, name corev1.UniqueVolumeName) (release func(), err error) {
	for {
		t.mu.Lock()
		before := t.held[name]
		if before == nil {
			mine := make(chan struct{})
			t.held[name] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.held, name)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-before:
		}
	}
}
