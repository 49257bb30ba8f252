// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
	"github.com/wherryproject/wherry/internal/serviceproxy/tables"
)

const (
	firstRetry = 100 * time.Millisecond // after a failure; it doubles
	lastRetry  = 10 * time.Second       // up to this
	busyRetry  = 30 * time.Second       // while something listens where a service is to
)

// Config says whose services are carried where.
type Config struct {
	Node string // its name
	Pods []netip.Prefix
	// Reserved tells the networks of services and of the pods of all nodes, as far as they are known.
	Reserved func() []netip.Prefix
	// Seen hears of the address of each service that is new or has changed.
	Seen func(netip.Addr)
	// Busy says who takes what comes to a port of this machine already; "": nobody. An address that is not specified
	// stands for all.
	Busy   func(at netip.AddrPort, proto string) string
	Host   tables.Host
	Client kubernetes.Interface
	// keeps connections to the health check ports of services within limits; nil: there are none
	Conns *connlimit.Limiter
	// Healthz and Metrics are where the proxy answers as a kube-proxy does at its ports 10256 and 10249; nil: nowhere.
	// Run closes them.
	Healthz, Metrics net.Listener
	Log              *slog.Logger
}

// Proxy carries services on one node.
type Proxy struct {
	config   Config
	services corelisters.ServiceLister
	slices   cache.Indexer // nil before there is a service
	health   *health

	measures *measures // nil: nobody asks

	mu       sync.Mutex
	dirty    map[string]bool // services of which something has changed, as namespace/name
	wake     chan struct{}   // holds a token while there are some
	node     nodeSeen
	progress progress

	// of Run alone
	facts    decide.Facts
	parts    map[string]*decide.Part
	have     tables.State
	known    bool          // have is what the kernel has
	owed     *decide.Flows // to be forgotten yet
	patience time.Duration // how long it is until that is tried again
	swept    bool          // all flows have been looked at since the start, and since a pass failed
	tuned    bool          // the kernel's times for connections have been seen to
	lost     map[decide.Loss]bool

	refused map[decide.Refusal]bool
	events  *loop.Recorder
}

// New makes a proxy.
func New(c Config) *Proxy {
	p := &Proxy{config: c, dirty: map[string]bool{}, wake: make(chan struct{}, 1), parts: map[string]*decide.Part{},
		health: newHealth(c.Conns, c.Log), lost: map[decide.Loss]bool{}, refused: map[decide.Refusal]bool{},
		events: loop.NewRecorder(c.Client, "service-proxy")}
	if c.Metrics != nil {
		p.measures = newMeasures()
	}
	p.health.well = func() bool {
		r, _ := p.report()
		return r.Healthy
	}
	return p
}

// ofService is the index of slices by their service.
const ofService = "service"

// Run works until ctx ends. It is called once.
func (p *Proxy) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(p.config.Client, 0, informers.WithTransform(slim))
	defer factory.Shutdown()
	node := p.nodeOnly()
	defer node.Shutdown()
	defer p.health.close()
	defer cancel()
	defer p.serveOwn()()
	if p.config.Healthz != nil {
		if err := p.followNode(ctx, node); err != nil {
			return err
		}
	}
	services := factory.Core().V1().Services()
	p.services = services.Lister()
	defer p.events.Send()()
	if err := follow(ctx, factory, services.Informer(), p.serviceChanged); err != nil {
		return err
	}
	var changed <-chan struct{}
	var failed <-chan error
	retry := firstRetry
	for {
		if p.slices == nil && p.anyCarried() {
			err := p.followSlices(ctx, factory, node)
			if err != nil {
				return err
			}
			if changed, failed, err = p.config.Host.Watch(ctx); err != nil {
				p.config.Log.Warn("rules of services that somebody removes are not made again by themselves", "err",
					err)
			}
		}
		var again <-chan time.Time
		if err := p.timedPass(ctx); err == nil {
			retry = firstRetry
		} else if ctx.Err() == nil {
			p.config.Log.Warn("the rules of services could not be made equal to the objects", "err", err, "next-try",
				retry)
			p.known, p.swept = false, false
			again = time.After(retry)
			retry = min(2*retry, lastRetry)
		}
		if again == nil && p.owed != nil {
			again = time.After(p.patience)
			p.patience = min(2*p.patience, busyRetry)
		}
		if again == nil && len(p.refused) > 0 {
			again = time.After(busyRetry) // nothing notifies of a program's end
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-again:
		case <-changed:
			p.known = false
			p.config.Log.Debug("somebody has changed the rules of services")
		case err := <-failed:
			if ctx.Err() == nil {
				p.config.Log.Warn("rules of services that somebody removes are no longer made again by themselves",
					"err", err)
			}
			changed, failed = nil, nil
		}
	}
}

// followSlices starts to follow endpoint slices, and the node, once there is a service that needs them.
func (p *Proxy) followSlices(ctx context.Context, factory, node informers.SharedInformerFactory) error {
	if p.config.Healthz == nil { // else it is followed already
		if err := p.followNode(ctx, node); err != nil {
			return err
		}
	}
	informer := factory.Discovery().V1().EndpointSlices().Informer()
	if err := informer.AddIndexers(cache.Indexers{ofService: serviceOf}); err != nil {
		return fmt.Errorf("service proxy: %w", err)
	}
	if err := follow(ctx, factory, informer, p.sliceChanged); err != nil {
		return err
	}
	p.slices = informer.GetIndexer()
	return nil
}

// follow starts an informer and waits until what there is has been handed to changed.
func follow(ctx context.Context, factory informers.SharedInformerFactory, informer cache.SharedIndexInformer,
	changed func(any)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: func(obj any) { changed(loop.Gone(obj)) },
	})
	if err != nil {
		return fmt.Errorf("service proxy: %w", err)
	}
	factory.Start(ctx.Done())
	cache.WaitFor(ctx, "", registration.HasSyncedChecker()) // only the end of ctx ends the wait, which Run sees
	return nil
}

// slim takes away what nobody here reads.
func slim(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
		o.SetAnnotations(nil)
	}
	return obj, nil
}

func serviceOf(obj any) ([]string, error) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
}

func (p *Proxy) serviceChanged(obj any) {
	if s, ok := obj.(*corev1.Service); ok {
		if a, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
			p.config.Seen(a)
		}
		p.mark(s.Namespace + "/" + s.Name)
	}
}

func (p *Proxy) sliceChanged(obj any) {
	if names, _ := serviceOf(obj); len(names) == 1 {
		p.mark(names[0])
	}
}

func (p *Proxy) mark(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty[name] = true
	now := time.Now()
	p.progress.changed(now)
	p.measures.changed(now)
	p.nudge()
}

// nudge has Run look at what has changed.
func (p *Proxy) nudge() {
	select {
	case p.wake <- struct{}{}:
	default: // one waits to be taken, and will be after this
	}
}

func (p *Proxy) anyCarried() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.dirty {
		if s := p.service(name); s != nil {
			return true
		}
	}
	return false
}

// service is one that is carried; nil if there is none of the name.
func (p *Proxy) service(name string) *corev1.Service {
	namespace, short, err := cache.SplitMetaNamespaceKey(name)
	if err != nil {
		return nil
	}
	s, err := p.services.Services(namespace).Get(short)
	if apierrors.IsNotFound(err) || err != nil || !decide.Carried(s) {
		return nil
	}
	return s
}

// timedPass makes a pass and notes how it went.
func (p *Proxy) timedPass(ctx context.Context) error {
	began := time.Now()
	err := p.pass(ctx)
	ended := time.Now()
	p.measures.passed(began, ended, err)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.progress.equal(ended, len(p.dirty) > 0)
	}
	return err
}

// pass takes in what has changed and makes the kernel equal to it.
func (p *Proxy) pass(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err() // what is known may be of the middle of a start
	}
	if err := p.takeIn(); err != nil {
		return err
	}
	if !p.known {
		have, err := p.config.Host.Read()
		if err != nil {
			return err
		}
		p.have, p.known = have, true
	}
	parts := slices.Collect(maps.Values(p.parts))
	want := decide.Merge(parts)
	refused := want.Yield(p.facts, parts, p.have.Keys, func(k decide.Key) string {
		return p.config.Busy(netip.AddrPortFrom(at(k), k.Port), k.Proto.String())
	})
	have, change, err := p.config.Host.Make(p.have, want)
	if err != nil {
		return err
	}
	p.have = have
	p.tune(!want.Empty())
	p.health.serve(parts)
	p.tellLost(parts)
	p.tellRefused(refused)
	p.forget(change, want)
	return nil
}

// takeIn decides anew about services of which something has changed, or about all if the machine has.
func (p *Proxy) takeIn() error {
	p.mu.Lock()
	dirty, zone := p.dirty, p.node.zone
	p.dirty = map[string]bool{}
	p.mu.Unlock()
	facts, err := p.look()
	facts.Zone = zone
	if err == nil && !reflect.DeepEqual(facts, p.facts) {
		p.facts = facts
		for name := range p.parts {
			dirty[name] = true
		}
	}
	for name := range dirty {
		s := p.service(name)
		if s == nil {
			delete(p.parts, name)
			continue
		}
		if p.slices == nil { // the first service has come since it was asked for: Run follows its endpoints first
			p.mark(name)
			continue
		}
		var ends []*discoveryv1.EndpointSlice
		found, ierr := p.slices.ByIndex(ofService, name)
		err = errors.Join(err, ierr)
		for _, obj := range found {
			ends = append(ends, obj.(*discoveryv1.EndpointSlice))
		}
		p.parts[name] = decide.Of(p.facts, s, ends)
	}
	return err
}

// look reads the facts. Addresses of the machine come and go with networks that it joins.
func (p *Proxy) look() (decide.Facts, error) {
	f := decide.Facts{Node: p.config.Node, Pods: p.config.Pods, Reserved: p.config.Reserved(),
		Rules: p.config.Host.Rules()}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return f, fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(ip.IP); ok {
				f.Machine = append(f.Machine, addr.Unmap())
			}
		}
	}
	slices.SortFunc(f.Machine, netip.Addr.Compare)
	return f, nil
}
