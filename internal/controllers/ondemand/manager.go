// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/firsts"
)

// Config is what a Manager needs of the server.
type Config struct {
	As        func(user string) (*rest.Config, error)
	Looking   Looking // for objects that are there at the start
	Informers informers.SharedInformerFactory
	Firsts    *firsts.Board
	Crashes   *Crashes // nil: a panic in a goroutine that a controller has started ends the process
	Log       *slog.Logger
}

// Manager runs controllers.
type Manager struct {
	config  Config
	rows    []Controller
	crashes *Crashes
	log     *slog.Logger

	wanted chan Controller
	end    context.Context //nolint:containedctx // the informers', whose starts come from many places

	mu      sync.Mutex
	started map[string]bool
}

// New makes a manager of the rows. Nothing is started, and nothing asked of the informers.
func New(rows []Controller, c Config) *Manager {
	return &Manager{config: c, rows: rows, crashes: c.Crashes, log: c.Log,
		wanted: make(chan Controller, len(rows)), started: map[string]bool{}}
}

// Run works until ctx is done, and then waits for all controllers. It is called once.
func (m *Manager) Run(ctx context.Context) error {
	m.end = ctx
	for _, row := range m.rows {
		for _, start := range row.Starts {
			defer m.config.Firsts.Await(firsts.Wait{Kind: start.Kind.GroupResource(), If: start.If,
				Then: func(schema.GroupResource) { m.want(row) }})()
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { m.look(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case row := <-m.wanted:
			g := &guard{row: row, manager: m, crashed: make(chan struct{}, 1)}
			running.Go(func() { g.run(ctx) })
		}
	}
}

// Started reports whether a controller has been started.
func (m *Manager) Started(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started[name]
}

// want has a row started, once.
func (m *Manager) want(row Controller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.started[row.Name] {
		m.started[row.Name] = true
		m.wanted <- row // there is room for all rows
	}
}

// retryLook is the pause after a question that was not answered.
const retryLook = time.Second

// look starts what there are objects for already.
func (m *Manager) look(ctx context.Context) {
	for _, row := range m.rows {
		for _, start := range row.Starts {
			for !m.Started(row.Name) {
				there, err := m.there(ctx, start)
				if there {
					m.want(row)
				}
				if err == nil || ctx.Err() != nil {
					break
				}
				m.log.Warn("controller cannot learn whether it is needed, it will ask again", "controller", row.Name,
					"kind", start.Kind.GroupResource().String(), "err", err)
				wait := time.NewTimer(retryLook)
				select {
				case <-ctx.Done():
				case <-wait.C:
				}
				wait.Stop()
			}
		}
	}
}

func (m *Manager) there(ctx context.Context, s Start) (bool, error) {
	if s.There != nil {
		return s.There(ctx, m.config.Looking)
	}
	return m.config.Looking.Any(ctx, s.Kind)
}

func (m *Manager) kit(row Controller, v *view) (*Kit, error) {
	config, err := m.config.As(row.Name)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Kit{Client: client, Config: config, Informers: v, Firsts: m.config.Firsts,
		Log: m.log.With("controller", row.Name)}, nil
}

// startInformers starts those that were asked for and do not run yet. They are nobody's: they go on when the controller
// that asked has ended.
func (m *Manager) startInformers() { m.config.Informers.StartWithContext(m.end) }
