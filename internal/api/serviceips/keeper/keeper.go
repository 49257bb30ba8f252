// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/api/serviceips/ranges"
)

const (
	patience   = 10 * time.Second       // for one object
	firstRetry = 100 * time.Millisecond // after a failure; it doubles
	lastRetry  = 30 * time.Second       // up to this
)

// loadPatience is how long a write waits for Load, which takes no part of a second.
const loadPatience = 10 * time.Second

// Store is where objects of a kind are; see [registry.REST].
type Store interface {
	rest.Getter
	rest.Lister
	rest.Creater
	rest.Updater
	rest.GracefulDeleter
	// Within is ctx as if a request for this kind had come.
	Within(ctx context.Context, namespace string) context.Context
}

// Config is what a Keeper needs of the server.
type Config struct {
	Addresses *serviceips.Addresses
	NodePorts *serviceips.NodePorts
	Services  Store
	Objects   Store         // IPAddresses
	Ranges    Store         // ServiceCIDRs
	Status    rest.Updater  // of these
	Firsts    *firsts.Board // hears of every write of a ServiceCIDR
	Log       *slog.Logger
}

// Keeper keeps the objects.
type Keeper struct {
	config Config
	life   context.Context //nolint:containedctx // of writes whose request has none, and of the goroutine
	end    context.CancelFunc
	leave  func()        // the board
	loaded chan struct{} // closed by Load

	mu        sync.Mutex
	addresses map[netip.Addr]bool // to be looked at
	ranges    map[string]bool     // likewise
	working   bool
	work      sync.WaitGroup
}

// New makes a keeper, which hears of every write from now on. Nothing runs yet.
func New(c Config) *Keeper {
	k := &Keeper{config: c, addresses: map[netip.Addr]bool{}, ranges: map[string]bool{}, loaded: make(chan struct{})}
	k.life, k.end = context.WithCancel(context.Background())
	c.Addresses.Tell(serviceips.Told{
		Settled: k.settle,
		Astray:  func(ip netip.Addr) { k.later([]netip.Addr{ip}, nil) },
		Freed:   func() { k.later(nil, c.Addresses.Leaving()) },
		Made:    k.settleMade,
		// A new range may let others go.
		Range: func(name string) { k.later(nil, append(c.Addresses.Leaving(), name)) },
	})
	k.leave = c.Firsts.Await(firsts.Wait{Kind: networking.Resource("servicecidrs"), Keep: true,
		Then: func(schema.GroupResource) {},
		If: func(_ schema.GroupResource, obj runtime.Object) bool {
			if o, ok := obj.(*networking.ServiceCIDR); ok {
				c.Addresses.PutRange(ranges.Of(o, registry.VersionOf(o.ResourceVersion)))
			}
			return false
		}})
	return k
}

// Close ends what runs. What is not done yet is found by the next start.
func (k *Keeper) Close() {
	k.leave()
	k.mu.Lock() // nothing begins after this
	k.end()
	k.mu.Unlock()
	k.work.Wait()
}

// Load reads what is stored, by which it is known what is taken, and has what is not as it should be made so: that of a
// server that was killed, or of a version that made no such objects. It is called once.
func (k *Keeper) Load(ctx context.Context) error {
	c := k.config
	services, err := list[*corev1.ServiceList](ctx, c.Services, "services")
	if err != nil {
		return err
	}
	c.NodePorts.Load(services.Items)
	c.Addresses.Load(services.Items)
	cidrs, err := list[*networking.ServiceCIDRList](ctx, c.Ranges, "ServiceCIDRs")
	if err != nil {
		return err
	}
	for i := range cidrs.Items {
		o := &cidrs.Items[i]
		c.Addresses.PutRange(ranges.Of(o, registry.VersionOf(o.ResourceVersion)))
		if own := c.Addresses.Range().String(); o.Name == "kubernetes" && !slices.Contains(o.Spec.CIDRs, own) {
			c.Log.Warn("the server was started with another range of services' addresses before: that stays too, as ServiceCIDR kubernetes",
				"service-cidr", own, "servicecidr", strings.Join(o.Spec.CIDRs, ","))
		}
	}
	objects, err := list[*networking.IPAddressList](ctx, c.Objects, "IPAddresses")
	if err != nil {
		return err
	}
	astray := c.Addresses.LoadObjects(objects.Items)
	close(k.loaded)
	k.later(astray, nil)
	return nil
}

func list[L runtime.Object](ctx context.Context, from Store, what string) (all L, err error) {
	obj, err := from.List(from.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return all, fmt.Errorf("read the %s: %w", what, err)
	}
	all, ok := obj.(L)
	if !ok {
		return all, fmt.Errorf("read the %s: the store returned a %T", what, obj)
	}
	return all, nil
}

// Loaded waits for Load; an error is for the client, which may try again.
func (k *Keeper) Loaded() error {
	select {
	case <-k.loaded:
		return nil
	default:
	}
	wait := time.NewTimer(loadPatience)
	defer wait.Stop()
	select {
	case <-k.loaded:
		return nil
	case <-wait.C:
		return apierrors.NewServiceUnavailable("the server is starting: try again")
	}
}

// settle makes the object of an address right, now if that is possible.
func (k *Keeper) settle(ip netip.Addr) {
	ctx, cancel := context.WithTimeout(k.life, patience)
	defer cancel()
	if err := k.address(ctx, ip); err != nil {
		k.config.Log.Warn("the IPAddress of a service cannot be written, it is tried again", "address", ip, "err", err)
		k.later([]netip.Addr{ip}, nil)
	}
}

// settleMade has a new ServiceCIDR say that it is ready, now if that is possible.
func (k *Keeper) settleMade(name string) {
	ctx, cancel := context.WithTimeout(k.life, patience)
	defer cancel()
	if err := k.oneRange(ctx, name); err != nil {
		k.config.Log.Warn("the status of a ServiceCIDR cannot be written, it is tried again", "servicecidr", name,
			"err", err)
		k.later(nil, []string{name})
	}
}

// later has addresses and ranges looked at soon.
func (k *Keeper) later(addresses []netip.Addr, names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ip := range addresses {
		k.addresses[ip] = true
	}
	for _, name := range names {
		k.ranges[name] = true
	}
	if !k.working && k.life.Err() == nil && len(k.addresses)+len(k.ranges) > 0 {
		k.working = true
		k.work.Go(k.run)
	}
}

// take is what is to be looked at; false if there is nothing, which ends the work.
func (k *Keeper) take() (addresses []netip.Addr, names []string, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	addresses = slices.SortedFunc(maps.Keys(k.addresses), netip.Addr.Compare)
	names = slices.Sorted(maps.Keys(k.ranges))
	clear(k.addresses)
	clear(k.ranges)
	k.working = len(addresses)+len(names) > 0 && k.life.Err() == nil
	return addresses, names, k.working
}

// run looks at everything that is to be looked at, and ends.
func (k *Keeper) run() {
	retry := firstRetry
	for {
		addresses, names, more := k.take()
		if !more {
			return
		}
		var failed error
		try := func(do func(context.Context) error, again func()) {
			ctx, cancel := context.WithTimeout(k.life, patience)
			defer cancel()
			if err := do(ctx); err != nil {
				failed = err
				again()
			}
		}
		for _, ip := range addresses {
			try(func(ctx context.Context) error { return k.address(ctx, ip) },
				func() { k.later([]netip.Addr{ip}, nil) })
		}
		for _, name := range names {
			try(func(ctx context.Context) error { return k.oneRange(ctx, name) },
				func() { k.later(nil, []string{name}) })
		}
		if failed == nil {
			retry = firstRetry
			continue
		}
		if k.life.Err() == nil {
			k.config.Log.Warn("objects of services' addresses cannot be written, they are tried again", "err", failed,
				"next-try", retry)
		}
		wait := time.NewTimer(retry)
		select {
		case <-k.life.Done():
		case <-wait.C:
		}
		wait.Stop()
		retry = min(2*retry, lastRetry)
	}
}
