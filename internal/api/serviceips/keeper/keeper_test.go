// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/api/serviceips/ranges"
)

// objects are IPAddresses in memory, written as through the library's store, with its hooks.
type objects struct {
	rest.StandardStorage // of which only what follows is used
	hooks                *genericregistry.Store
	fails                atomic.Int32 // how many of a hundred writes fail
	tries                atomic.Int32

	mu    sync.Mutex
	uids  int
	there map[string]*networking.IPAddress
}

// Within implements Store.
func (*objects) Within(ctx context.Context, _ string) context.Context { return ctx }

func (s *objects) trouble() error {
	s.tries.Add(1)
	if rand.Int32N(100) < s.fails.Load() {
		return errors.New("the store is in trouble")
	}
	return nil
}

// Get implements rest.Getter.
func (s *objects) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.there[name]; o != nil {
		return o.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(networking.Resource("ipaddresses"), name)
}

// Create implements rest.Creater.
func (s *objects) Create(ctx context.Context, obj runtime.Object, _ rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	o := obj.(*networking.IPAddress).DeepCopy()
	s.mu.Lock()
	s.uids++
	o.UID = types.UID(fmt.Sprint(s.uids))
	s.mu.Unlock()
	finish, err := s.hooks.BeginCreate(ctx, o, options)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	had := s.there[o.Name] != nil
	if !had {
		s.there[o.Name] = o
	}
	s.mu.Unlock()
	if finish(ctx, !had); had {
		return nil, apierrors.NewAlreadyExists(networking.Resource("ipaddresses"), o.Name)
	}
	s.hooks.AfterCreate(o, options)
	return o, nil
}

// Delete implements rest.GracefulDeleter.
func (s *objects) Delete(_ context.Context, name string, _ rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if err := s.trouble(); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	o := s.there[name]
	right := o != nil && (options.Preconditions == nil || *options.Preconditions.UID == o.UID)
	if right {
		delete(s.there, name)
	}
	s.mu.Unlock()
	switch {
	case o == nil:
		return nil, false, apierrors.NewNotFound(networking.Resource("ipaddresses"), name)
	case !right:
		return nil, false, apierrors.NewConflict(networking.Resource("ipaddresses"), name, errors.New("another one"))
	}
	s.hooks.AfterDelete(o, options)
	return o, true, nil
}

// world is a keeper with its addresses, and the hooks of the stores whose writes it hears of.
type world struct {
	addresses *serviceips.Addresses
	objects   *objects
	services  *genericregistry.Store
	keeper    *Keeper
}

func newWorld(t *testing.T, cidr string) *world {
	t.Helper()
	a, err := serviceips.New(netip.MustParsePrefix(cidr))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{addresses: a, services: &genericregistry.Store{},
		objects: &objects{hooks: &genericregistry.Store{}, there: map[string]*networking.IPAddress{}}}
	w.keeper = New(Config{Addresses: a, Objects: w.objects, Log: slog.New(slog.DiscardHandler)})
	a.Attach(onwrite.Of(w.services))
	a.AttachObjects(onwrite.Of(w.objects.hooks))
	return w
}

// create makes a service as a store does; nil if it is refused.
func (w *world) create(ctx context.Context, name, ip string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: corev1.ServiceSpec{ClusterIP: ip}}
	finish, err := w.services.BeginCreate(ctx, s, &metav1.CreateOptions{})
	if err != nil {
		return nil
	}
	finish(ctx, true)
	w.services.AfterCreate(s, nil)
	return s
}

// check compares the objects with the services.
func (w *world) check(t *testing.T) {
	t.Helper()
	w.objects.mu.Lock()
	have := maps.Clone(w.objects.there)
	w.objects.mu.Unlock()
	for ip, owner := range w.addresses.InUse() {
		if o := have[ip.String()]; o == nil || !ranges.IsOf(o, owner) {
			t.Errorf("%s is of %s, its object is %+v", ip, owner, o)
		}
		delete(have, ip.String())
	}
	for name, o := range have {
		if len(o.Labels) > 0 {
			t.Errorf("%s is left: %+v", name, o)
		}
	}
}

// TestObjectsFollow: WL-25, WL-24: whatever services come and go at the same time with the same few addresses, whoever
// deletes or makes IPAddresses meanwhile, and whatever the store refuses: in the end each address that is in use has
// its object, and no other one has.
func TestObjectsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "10.1.0.0/29")
		w.objects.fails.Store(20)
		var wg sync.WaitGroup
		var made atomic.Int32
		for i := range 8 {
			wg.Go(func() {
				for j := range 200 {
					ip := ""
					if rand.IntN(2) == 0 {
						ip = fmt.Sprintf("10.1.0.%d", 2+rand.IntN(5))
					}
					if s := w.create(t.Context(), fmt.Sprintf("s%d-%d", i, j), ip); s != nil {
						made.Add(1)
						if j < 199 {
							w.services.AfterDelete(s, nil)
						}
					}
				}
			})
		}
		wg.Go(func() {
			for j := range 200 {
				name := fmt.Sprintf("10.1.0.%d", 2+rand.IntN(3)) // some are left to services
				if j%2 == 0 {
					_, _, _ = w.objects.Delete(t.Context(), name, nil, &metav1.DeleteOptions{})
					continue
				}
				foreign := &networking.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec: networking.IPAddressSpec{ParentRef: &networking.ParentReference{Resource: "gateways",
						Name: "g"}}}
				_, _ = w.objects.Create(t.Context(), foreign, nil, &metav1.CreateOptions{})
			}
		})
		wg.Wait()
		w.objects.fails.Store(0)
		time.Sleep(2 * lastRetry) // nothing but the last retry is left
		synctest.Wait()
		w.check(t)
		if w.keeper.working || made.Load() == 0 {
			t.Errorf("after everything is done something runs still: %v; services made: %d", w.keeper.working,
				made.Load())
		}
		w.keeper.Close()
	})
}

// TestTriedAgain: WL-25: what the store refuses is tried again, ever more seldom; a server that ends does not wait.
func TestTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "10.1.0.0/24")
		w.objects.fails.Store(100)
		if w.create(t.Context(), "web", "10.1.0.7") == nil {
			t.Fatal("a service is refused because of its object")
		}
		time.Sleep(time.Hour)
		if n := w.objects.tries.Load(); n < 100 || n > 150 {
			t.Errorf("tried %d times in an hour", n)
		}
		w.objects.fails.Store(0)
		time.Sleep(lastRetry)
		synctest.Wait()
		w.check(t)

		w.objects.fails.Store(100)
		w.create(t.Context(), "more", "10.1.0.8")
		began := time.Now()
		w.keeper.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("the end took %s", took)
		}
		w.create(t.Context(), "late", "10.1.0.9") // nothing begins any more
	})
}

// TestTakenOver: WL-25: objects of a start before are put right.
func TestTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "10.1.0.0/24")
		web := serviceips.Owner{Namespace: "ns", Name: "web"}
		for _, ip := range []string{"10.1.0.7", "10.1.0.8"} {
			o := ranges.Object(netip.MustParseAddr(ip), web)
			w.objects.there[ip] = o
			o.UID = types.UID(ip)
		}
		w.addresses.Load([]corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"},
			Spec: corev1.ServiceSpec{ClusterIP: "10.1.0.7"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
				Spec: corev1.ServiceSpec{ClusterIP: "10.1.0.9"}}})
		var all []networking.IPAddress
		for _, o := range w.objects.there {
			all = append(all, *o)
		}
		w.keeper.later(w.addresses.LoadObjects(all), nil)
		synctest.Wait()
		w.check(t)
		w.keeper.Close()
	})
}
