// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/netpolicy/tables"
)

const (
	firstRetry = 100 * time.Millisecond // after a failure; it doubles
	lastRetry  = 10 * time.Second       // up to this
)

// Kernel is where policies are enforced: a [tables.Host].
type Kernel interface {
	Read() (tables.State, error)
	Make(have tables.State, want decide.Tables, touched *decide.Touched) (tables.State, decide.Change, error)
	Forget(is func(tables.Flow) bool) error
	Remove() error
	Watch(ctx context.Context) (<-chan struct{}, <-chan error, error)
}

// Config says whose policies are enforced where.
type Config struct {
	Host      Kernel
	Node      string
	Networks  []netip.Prefix // of the node's pods
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory // of pods and namespaces others have some; they are shared
	// Firsts signals the first policy; nil where the API server is another process, whose policies are followed.
	Firsts *firsts.Board
	// Names is where the name server is, nil if there is none of ours; NamesMoved signals that it is elsewhere.
	Names      func() *decide.Names
	NamesMoved <-chan struct{}
	Log        *slog.Logger
}

// Enforcer enforces policies on one node.
type Enforcer struct {
	config  Config
	first   chan struct{} // the first policy is stored
	problem atomic.Pointer[string]
	started bool // objects are followed
	leave   func()
	synced  map[string]cache.InformerSynced // of what is followed, by kind

	mu    sync.Mutex
	dirty map[object]bool
	wake  chan struct{} // holds a token while there are some

	// of Start, and then of Run alone
	objects listers
	world   *decide.World
	have    tables.State
	known   bool             // have is what the kernel has
	forget  bool             // there may be flows that are forbidden now
	refused map[object]error // policies that are not understood
	failing error            // why the last pass failed
	changed <-chan struct{}
	failed  <-chan error
}

// New makes an enforcer.
func New(c Config) *Enforcer {
	return &Enforcer{config: c, first: make(chan struct{}, 1), dirty: map[object]bool{}, wake: make(chan struct{}, 1),
		world: decide.NewOn(c.Node, c.Networks), refused: map[object]error{},
		synced: map[string]cache.InformerSynced{}, leave: func() {},
		forget: true} // a server before may have ended between its rules and this
}

// Problem says why policies are not enforced; empty if they are.
func (e *Enforcer) Problem() string {
	if p := e.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// Start enforces what policies there are. It fails only with its context, or if they cannot be asked for: what the
// kernel refuses is logged, and tried again by Run. After a failure what a process before has enforced stays so, and
// Start may be called again. Following ends with life.
func (e *Enforcer) Start(ctx, life context.Context) error {
	there, err := e.anyPolicy(ctx, life)
	if err != nil {
		return err
	}
	if there {
		if err := e.follow(ctx, life); err != nil {
			return err
		}
	}
	e.failing = e.pass(life)
	e.tell(e.failing)
	return ctx.Err()
}

// anyPolicy reports whether there are policies, and has the first one signalled.
func (e *Enforcer) anyPolicy(ctx, life context.Context) (bool, error) {
	if e.config.Firsts == nil {
		return e.followFirst(ctx, life)
	}
	kind := networkingv1.SchemeGroupVersion.WithResource("networkpolicies").GroupResource()
	e.leave = e.config.Firsts.Await(firsts.Wait{Kind: kind, Then: func(schema.GroupResource) { e.tellFirst() }})
	there, err := e.config.Client.NetworkingV1().NetworkPolicies("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("network policies: %w", err)
	}
	return len(there.Items) > 0, nil
}

// tellFirst says that there is a policy.
func (e *Enforcer) tellFirst() {
	select {
	case e.first <- struct{}{}:
	default:
	}
}

// tell logs what is wrong, once: what failed, and for as long as they are there policies that are not understood.
func (e *Enforcer) tell(err error) {
	var errs []error
	for _, o := range slices.SortedFunc(maps.Keys(e.refused), object.compare) {
		errs = append(errs, e.refused[o])
	}
	if err = errors.Join(append(errs, err)...); err == nil {
		e.problem.Store(nil)
		return
	}
	text := err.Error()
	if was := e.problem.Swap(&text); was == nil || *was != text {
		e.config.Log.Error("network policies are not enforced as they should be", "err", err)
	}
}

// Run works until ctx ends. It is called once, after Start.
func (e *Enforcer) Run(ctx context.Context) error {
	defer e.leave()
	retry := firstRetry
	var again <-chan time.Time
	if e.failing != nil {
		again = time.After(retry)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.first:
			if e.started {
				continue
			}
			if err := e.follow(ctx, ctx); err != nil {
				return err
			}
		case <-e.wake:
		case <-again:
		case <-e.config.NamesMoved:
		case <-e.changed:
			e.known = false
			e.config.Log.Debug("somebody has changed the rules of network policies")
		case err := <-e.failed:
			if ctx.Err() == nil {
				e.config.Log.Warn("rules of network policies that somebody removes are no longer made again by themselves",
					"err", err)
			}
			e.changed, e.failed = nil, nil
			continue
		}
		if !e.started && e.failing == nil { // there are no policies
			continue
		}
		again = nil
		e.failing = e.pass(ctx)
		if ctx.Err() != nil {
			return nil
		}
		e.tell(e.failing)
		if e.failing == nil {
			retry = firstRetry
			continue
		}
		again = time.After(retry)
		retry = min(2*retry, lastRetry)
	}
}

// pass takes in what has changed and makes the kernel equal to it.
func (e *Enforcer) pass(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err() // what is known may be of the middle of a start
	}
	if !e.started {
		return e.config.Host.Remove() // there are no policies: what a server before has made for some
	}
	e.takeIn()
	touched := e.world.Touched()
	if !e.known {
		have, err := e.config.Host.Read()
		if err != nil {
			return err
		}
		e.have, touched = have, nil
	}
	have, change, err := e.config.Host.Make(e.have, e.world.Tables(), touched)
	e.forget = e.forget || err != nil || !change.Empty()
	e.known = err == nil // else what was touched is found by comparing all
	if err != nil {
		return err
	}
	e.have = have
	if !e.forget || !have.Table {
		return nil
	}
	if err := e.config.Host.Forget(e.forbidden); err != nil {
		return err
	}
	e.forget = false
	return nil
}

// forbidden returns the flows of UDP that policies forbid: those end by being forgotten, as their answers would go on.
func (e *Enforcer) forbidden(f tables.Flow) bool {
	c := decide.Connection{From: f.From, To: f.To.Addr(), Proto: decide.UDP, Port: f.To.Port()}
	if n := e.config.Names(); n != nil && f.To == n.Listen {
		c.To, c.Port = n.Asked.Addr(), n.Asked.Port()
	}
	return !e.world.Judge(c).Allowed
}
