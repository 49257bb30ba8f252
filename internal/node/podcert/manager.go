// SPDX-License-Identifier: Apache-2.0

package podcert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Config of a Manager. Client and Node are required.
type Config struct {
	Client kubernetes.Interface
	Node   string
	// Changed is called when a certificate of the pod has come, or has been refused. It must not block.
	Changed func(types.UID)
	// Event records an event of the pod.
	Event  func(pod *corev1.Pod, eventType, reason, message string)
	Logger *slog.Logger
	// Patience is how long Get waits at most; 0 means 10 s.
	Patience time.Duration
	// Wall is the time of day; nil: this machine's.
	Wall func() time.Time
}

// Manager gets the certificates of pods. Safe for concurrent use.
type Manager struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // ends with Close; the goroutines' of all certificates
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	certs map[place]*certificate
}

// place is where a pod asks for a certificate.
type place struct {
	pod    types.UID
	volume string
	source int
}

// New makes a Manager; Close ends it.
func New(cfg Config) *Manager {
	if cfg.Wall == nil {
		cfg.Wall = func() time.Time { return time.Now().Round(0) }
	}
	if cfg.Patience == 0 {
		cfg.Patience = 10 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Manager{cfg: cfg, ctx: ctx, cancel: cancel, certs: map[place]*certificate{}}
}

// Close ends all and waits for it.
func (m *Manager) Close() {
	m.cancel()
	m.wg.Wait()
}

// Register begins to ask for the pod's certificates. A pod that is registered already goes on as it is.
func (m *Manager) Register(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		p := pod.Spec.Volumes[i].Projected
		if p == nil {
			continue
		}
		for n := range p.Sources {
			if want := p.Sources[n].PodCertificate; want != nil {
				m.begin(pod, place{pod.UID, pod.Spec.Volumes[i].Name, n}, want)
			}
		}
	}
}

func (m *Manager) begin(pod *corev1.Pod, at place, want *corev1.PodCertificateProjection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.certs[at] != nil || m.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(m.ctx)
	c := &certificate{m: m, pod: pod, want: want, cancel: cancel, answered: make(chan struct{})}
	m.certs[at] = c
	m.wg.Go(func() { c.run(ctx) })
}

// Unregister forgets the pod's certificates.
func (m *Manager) Unregister(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, c := range m.certs {
		if at.pod == uid {
			c.cancel()
			delete(m.certs, at)
		}
	}
}

// Get gives the key and the chain of certificates that a source of a volume shows, both in PEM. With wait it waits a
// while for the first one. The error says why there is none.
func (m *Manager) Get(ctx context.Context, pod types.UID, volume string, source int,
	wait bool) (key, chain []byte, err error) {
	m.mu.Lock()
	c := m.certs[place{pod, volume, source}]
	m.mu.Unlock()
	if c == nil {
		return nil, nil, errors.New("pod certificates cannot be had: the pod is not known")
	}
	if wait {
		patience := time.NewTimer(m.cfg.Patience)
		defer patience.Stop()
		select {
		case <-c.answered:
		case <-ctx.Done():
		case <-m.ctx.Done():
		case <-patience.C:
		}
	}
	return c.get()
}

// shown is what a certificate's readers see.
type shown struct {
	key, chain []byte
	err        error
}

var errNotYet = errors.New("credential bundle is not issued yet")

func (c *certificate) get() (key, chain []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown.key == nil && c.shown.err == nil {
		if c.trouble != nil {
			return nil, nil, fmt.Errorf("%w: %w", errNotYet, c.trouble)
		}
		return nil, nil, errNotYet
	}
	return c.shown.key, c.shown.chain, c.shown.err
}

// show has readers see something else from now on.
func (c *certificate) show(s shown) {
	c.mu.Lock()
	c.shown, c.trouble = s, nil
	c.mu.Unlock()
	c.once.Do(func() { close(c.answered) })
	c.m.cfg.Changed(c.pod.UID)
}

// fail has those who wait know why.
func (c *certificate) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
}
