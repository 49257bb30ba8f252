// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/registry"
)

func TestAddresses(t *testing.T) {
	a, err := newAddresses(netip.MustParsePrefix("10.1.0.7/29"))
	if err != nil {
		t.Fatal(err)
	}
	if a.first().String() != "10.1.0.1" {
		t.Errorf("first is %s", a.first())
	}
	var got []string
	for range 5 { // six usable, one of them the server's
		ip, err := a.take(netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ip.String())
	}
	slices.Sort(got)
	if strings.Join(got, " ") != "10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6" {
		t.Errorf("taken: %v", got)
	}
	if _, err := a.take(netip.Addr{}); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("from an empty range: %v", err)
	}
	a.release(netip.MustParseAddr("10.1.0.4"))
	if ip, err := a.take(netip.Addr{}); err != nil || ip.String() != "10.1.0.4" {
		t.Errorf("after a release: %v, %v", ip, err)
	}
	if _, err := a.take(netip.MustParseAddr("10.1.0.9")); err == nil {
		t.Error("an address outside the range")
	}
	six, err := newAddresses(netip.MustParsePrefix("fd00:1::/112"))
	if err != nil || six.first().String() != "fd00:1::1" {
		t.Errorf("IPv6: %v, %v", six.first(), err)
	}
}

// Every stored kind survives the way to etcd and back, and every kind has printers, rules and selectors that take its type.
func TestTableOfKinds(t *testing.T) {
	s, err := registry.NewSchemes()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds(nil) {
		t.Run(k.Plural, func(t *testing.T) {
			obj := k.Object()
			gvks, _, err := s.ObjectKinds(obj)
			if err != nil || gvks[0] != k.GV.WithKind(k.Name) {
				t.Errorf("kinds %v, %v", gvks, err)
			}
			hub := k.GV
			hub.Version = runtime.APIVersionInternal
			if !slices.Contains(gvks, hub.WithKind(k.Name)) {
				t.Errorf("not registered as hub: %v", gvks)
			}
			codec := s.StorageCodec(k)
			data, err := runtime.Encode(codec, obj)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := codec.Decode(data, nil, k.Object()); err != nil {
				t.Error(err)
			}
			if _, _, err := k.Attrs()(obj); err != nil {
				t.Error(err)
			}
			if k.Rules.Validate == nil {
				t.Error("nothing validates it")
			}
			if _, err := registry.TableConvertor(k).ConvertToTable(context.Background(), obj, nil); err != nil {
				t.Error(err)
			}
			strategy := registry.NewStrategy(s, k, k.Rules)
			strategy.PrepareForCreate(context.Background(), obj)
			if errs := strategy.Validate(context.Background(), obj); len(errs) == 0 {
				t.Error("an empty object is valid")
			}
		})
	}
}

// TestPersist: what fails is tried again until it succeeds or nobody wants it any more.
func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := slog.New(slog.DiscardHandler)
		tries, began := 0, time.Now()
		if !persist(ctx, log, "", func(context.Context) error {
			if tries++; tries < 4 {
				return errors.New("a conflict")
			}
			return nil
		}) || tries != 4 || time.Since(began) != 7*firstRecount {
			t.Errorf("%d tries in %v", tries, time.Since(began))
		}
		time.AfterFunc(time.Hour, cancel)
		began = time.Now()
		if persist(ctx, log, "", func(context.Context) error { return errors.New("for ever") }) || time.Since(began) != time.Hour {
			t.Errorf("it goes on, %v", time.Since(began))
		}
	})
}

// TestNodeUsageForgets: nothing stays in memory of nodes that pods name and nobody has.
func TestNodeUsageForgets(t *testing.T) {
	u := newNodeUsage(func(context.Context, string) (*url.URL, http.RoundTripper, error) {
		return nil, nil, errors.New("not registered")
	})
	rates, errs := u.of(t.Context(), []string{"a", "b", "c"})
	if len(rates) != 0 || len(errs) != 3 || len(u.nodes) != 0 {
		t.Errorf("%v, %v; remembered: %v", rates, errs, u.nodes)
	}
}
