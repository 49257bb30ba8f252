// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/servicenames"
	"github.com/wherryproject/wherry/internal/names"
)

// namesClient is a client with the rights of the controller alone.
func namesClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	config, err := server.As(rbac.NamesController)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// WL-13 (P): service kube-dns is made at its usual address, or at another if that is taken; its endpoints follow the resolver, into another
// address family too; it goes away again; one that somebody else has made is left alone. All of it with the rights of its role.
func TestServiceOfNames(t *testing.T) {
	client, ctx := start(t), t.Context()
	own := namesClient(t)
	usual := servicenames.Usual(netip.MustParsePrefix("10.96.0.0/12"))
	if usual.String() != "10.96.0.10" || servicenames.Usual(netip.MustParsePrefix("10.96.0.0/29")).IsValid() {
		t.Errorf("the usual address is %s", usual)
	}
	endpoints := func() string {
		t.Helper()
		s, err := client.DiscoveryV1().EndpointSlices("kube-system").Get(ctx, "kube-dns", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return netip.AddrPortFrom(netip.MustParseAddr(s.Endpoints[0].Addresses[0]), uint16(*s.Ports[1].Port)).String()
	}
	for _, at := range []string{"10.88.0.1:5353", "10.88.0.1:5353", "10.88.0.1:6464", "[fd00::1]:6464", "10.88.0.1:7575"} {
		ip, err := servicenames.Ensure(ctx, own, usual, netip.MustParseAddrPort(at))
		if err != nil || ip != usual || endpoints() != at {
			t.Errorf("%s: the service is at %v, its endpoints at %s, %v", at, ip, endpoints(), err)
		}
	}
	for range 2 {
		if err := servicenames.Remove(ctx, own); err != nil {
			t.Error(err)
		}
	}
	taken := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "taker"}, Spec: corev1.ServiceSpec{ClusterIP: usual.String(), Ports: []corev1.ServicePort{{Port: 1}}}}
	if _, err := client.CoreV1().Services("default").Create(ctx, taken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Services("default").Delete(context.Background(), "taker", metav1.DeleteOptions{})
	})
	if ip, err := servicenames.Ensure(ctx, own, usual, netip.MustParseAddrPort("10.88.0.1:5353")); err != nil || ip == usual || !ip.IsValid() {
		t.Errorf("beside somebody who has the address: %v, %v", ip, err)
	}
	if err := servicenames.Remove(ctx, own); err != nil {
		t.Error(err)
	}
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Port: 53}}}}
	theirs, err := client.CoreV1().Services("kube-system").Create(ctx, theirs, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Services("kube-system").Delete(context.Background(), "kube-dns", metav1.DeleteOptions{})
	})
	ip, err := servicenames.Ensure(ctx, own, usual, netip.MustParseAddrPort("10.88.0.1:5353"))
	if !errors.Is(err, servicenames.ErrForeign) || ip.String() != theirs.Spec.ClusterIP {
		t.Errorf("%v, %v", ip, err)
	}
	if err := servicenames.Remove(ctx, own); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().Services("kube-system").Get(ctx, "kube-dns", metav1.GetOptions{}); err != nil {
		t.Errorf("somebody else's was removed: %v", err)
	}
}

// WL-13 (P): the resolver is told of services, slices and pods that come, change and go, in the order in which they do; service kube-dns is
// looked after; and a controller that is started again knows all of it.
func TestNamesAreTold(t *testing.T) {
	client := start(t)
	for range 2 {
		config, err := server.As(rbac.Controllers)
		if err != nil {
			t.Fatal(err)
		}
		factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
		told, ensured := make(chan names.Change, 1000), make(chan struct{}, 1000)
		c := servicenames.New(factory, slog.New(slog.DiscardHandler), func(current func() names.Change) { told <- current() },
			func(context.Context) error { ensured <- struct{}{}; return servicenames.ErrForeign })
		ctx, cancel := context.WithCancel(t.Context())
		factory.Start(ctx.Done())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		if !c.Known(ctx) {
			t.Fatal("nothing is known")
		}
		hears := func(want func(names.Change) bool) {
			t.Helper()
			timeout := time.After(time.Minute)
			for {
				select {
				case c := <-told:
					if want(c) {
						return
					}
				case <-timeout:
					t.Fatal("it is not told")
				}
			}
		}
		services := client.CoreV1().Services("default")
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "told"}, Spec: corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{{Port: 1, Name: "a"}}}}
		if s, err = services.Create(ctx, s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		is := func(c names.Change, gone bool, port string) bool {
			return c.Service != nil && c.Service.Name == "told" && c.Gone == gone && (gone || c.Service.Ports[0].Name == port)
		}
		hears(func(c names.Change) bool { return is(c, false, "a") })
		s.Spec.Ports[0].Name = "b"
		if _, err := services.Update(ctx, s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		hears(func(c names.Change) bool { return is(c, false, "b") })
		found := false
		for _, known := range c.All() {
			found = found || is(known, false, "b")
		}
		if !found {
			t.Error("it is not among all")
		}
		if err := services.Delete(ctx, "told", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		hears(func(c names.Change) bool { return is(c, true, "") })
		if _, err := servicenames.Ensure(ctx, namesClient(t), netip.Addr{}, netip.MustParseAddrPort("10.88.0.1:1")); err != nil {
			t.Fatal(err)
		}
		<-ensured
		hears(func(c names.Change) bool { return c.Slice != nil && !c.Gone && c.Slice.Service == "kube-dns" })
		if err := servicenames.Remove(ctx, namesClient(t)); err != nil {
			t.Fatal(err)
		}
		hears(func(c names.Change) bool { return c.Service != nil && c.Gone && c.Service.Name == "kube-dns" })
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	}
}
