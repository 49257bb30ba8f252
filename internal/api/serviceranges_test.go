// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/store"
)

// awaitGone waits until an object that is being deleted is gone.
func awaitGone(t *testing.T, ri dynamic.ResourceInterface, name string) {
	t.Helper()
	awaitEvent(t, name, ri.Watch, func(e watch.EventType, there bool) bool { return e == watch.Deleted || !there },
		func(ctx context.Context) (bool, error) {
			_, err := ri.Get(ctx, name, metav1.GetOptions{})
			return !apierrors.IsNotFound(err), nil
		})
}

// awaitEvent watches one object until it is as it should be: at the beginning by look, then by each event.
func awaitEvent(t *testing.T, name string, open func(context.Context, metav1.ListOptions) (watch.Interface, error),
	until func(e watch.EventType, there bool) bool, look func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := open(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	event := watch.EventType("")
	for {
		there, err := look(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if until(event, there) {
			return
		}
		select {
		case e := <-w.ResultChan():
			event = e.Type
		case <-ctx.Done():
			t.Fatalf("%s is not in time what it should be", name)
		}
	}
}

// awaitRange waits until a ServiceCIDR's condition Ready is this; gone: until there is none.
func awaitRange(t *testing.T, c kubernetes.Interface, name string, want metav1.ConditionStatus, gone bool) {
	t.Helper()
	ranges := c.NetworkingV1().ServiceCIDRs()
	awaitEvent(t, name, ranges.Watch, func(_ watch.EventType, right bool) bool { return right },
		func(ctx context.Context) (bool, error) {
			o, err := ranges.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return gone, nil
			}
			condition := meta.FindStatusCondition(o.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
			return err == nil && !gone && condition != nil && condition.Status == want, err
		})
}

// awaitObject waits until the IPAddress of an address is there, or is not.
func awaitObject(t *testing.T, c kubernetes.Interface, ip string, there bool) {
	t.Helper()
	objects := c.NetworkingV1().IPAddresses()
	awaitEvent(t, ip, objects.Watch, func(_ watch.EventType, is bool) bool { return is == there },
		func(ctx context.Context) (bool, error) {
			_, err := objects.Get(ctx, ip, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
}

func newRange(t *testing.T, c kubernetes.Interface, name string, networks ...string) *networkingv1.ServiceCIDR {
	t.Helper()
	made, err := c.NetworkingV1().ServiceCIDRs().Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: networks}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// newService makes a service; with an address, if one is wanted.
func newService(t *testing.T, c kubernetes.Interface, ns, name, ip string) (*corev1.Service, error) {
	t.Helper()
	s := service(name)
	s.Spec.ClusterIP = ip
	return c.CoreV1().Services(ns).Create(t.Context(), s, metav1.CreateOptions{})
}

func owned(o *networkingv1.IPAddress, ns, name string) bool {
	return o.Spec.ParentRef != nil && *o.Spec.ParentRef == networkingv1.ParentReference{Resource: "services",
		Namespace: ns, Name: name} && o.Labels["ipaddress.kubernetes.io/managed-by"] == "ipallocator.k8s.io" &&
		o.Labels["ipaddress.kubernetes.io/ip-family"] == "IPv4"
}

// TestFurtherServiceCIDR proves WL-25: a further range is ready at once, services have addresses in it that they ask
// for, each with its IPAddress, and it stays, saying why, as long as one has.
func TestFurtherServiceCIDR(t *testing.T) {
	said := &warned{}
	config := adminConfig(t)
	config.WarningHandler = said
	c := clientOf(t, config)
	ns := namespace(t, c)
	awaitRange(t, c, "kubernetes", metav1.ConditionTrue, false)
	newRange(t, c, ns, "203.0.113.0/28", "2001:db8::/64")
	if len(said.said) != 1 || !strings.Contains(said.said[0], "no service has an address of 2001:db8::/64") {
		t.Errorf("warnings: %q", said.said)
	}
	o, err := c.NetworkingV1().ServiceCIDRs().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil || !meta.IsStatusConditionTrue(o.Status.Conditions, "Ready") || len(o.Finalizers) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	// as a manifest has it
	o.Finalizers, o.Status, o.Labels = nil, networkingv1.ServiceCIDRStatus{}, map[string]string{"a": "b"}
	if o, err = c.NetworkingV1().ServiceCIDRs().Update(t.Context(), o, metav1.UpdateOptions{}); err != nil ||
		len(o.Finalizers) != 1 || len(o.Status.Conditions) != 1 {
		t.Errorf("after an update: %+v, %v", o, err)
	}
	if networks, _ := shared.srv.ServiceNetworks(); !slices.Equal(networks, []netip.Prefix{
		netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("203.0.113.0/28")}) {
		t.Errorf("nodes are told of %v", networks)
	}

	web, err := newService(t, c, ns, "web", "203.0.113.7")
	if err != nil || web.Spec.ClusterIPs[0] != "203.0.113.7" {
		t.Fatalf("%+v, %v", web, err)
	}
	object, err := c.NetworkingV1().IPAddresses().Get(t.Context(), "203.0.113.7", metav1.GetOptions{})
	if err != nil || !owned(object, ns, "web") {
		t.Errorf("%+v, %v", object, err)
	}
	if _, err := newService(t, c, ns, "b", "203.0.113.7"); err == nil ||
		!strings.Contains(err.Error(), "already allocated") {
		t.Errorf("an address was given twice: %v", err)
	}
	for _, outside := range []string{"203.0.113.0", "203.0.113.15", "203.0.113.16", "9.9.9.9"} {
		if _, err := newService(t, c, ns, "b", outside); err == nil ||
			!strings.Contains(err.Error(), "The range of valid IPs is 10.96.0.0/12, 203.0.113.0/28") {
			t.Errorf("%s: %v", outside, err)
		}
	}

	if err := c.NetworkingV1().ServiceCIDRs().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRange(t, c, ns, metav1.ConditionFalse, false)
	if o, err = c.NetworkingV1().ServiceCIDRs().Get(t.Context(), ns, metav1.GetOptions{}); err != nil ||
		o.Status.Conditions[0].Reason != "Terminating" || !strings.Contains(o.Status.Conditions[0].Message,
		"There are still IPAddresses") {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := newService(t, c, ns, "b", "203.0.113.8"); err == nil ||
		!strings.Contains(err.Error(), "not in the valid range") {
		t.Errorf("an address of a range that is being deleted: %v", err)
	}
	if err := c.CoreV1().Services(ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.NetworkingV1().IPAddresses().Get(t.Context(), "203.0.113.7",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the IPAddress of a service that is gone: %v", err)
	}
	awaitRange(t, c, ns, "", true)
	if networks, _ := shared.srv.ServiceNetworks(); len(networks) != 1 {
		t.Errorf("nodes are told of %v", networks)
	}
}

// TestRangeOfAnother proves WL-25: a range whose addresses all lie in another one goes with services in it.
func TestRangeOfAnother(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	newRange(t, c, ns+"-part", "198.51.100.0/28")
	if _, err := newService(t, c, ns, "web", "198.51.100.3"); err != nil {
		t.Fatal(err)
	}
	if err := c.NetworkingV1().ServiceCIDRs().Delete(t.Context(), ns+"-part", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRange(t, c, ns+"-part", metav1.ConditionFalse, false)
	newRange(t, c, ns+"-whole", "198.51.100.0/24") // which is what its condition advises
	awaitRange(t, c, ns+"-part", "", true)
	if err := c.NetworkingV1().ServiceCIDRs().Delete(t.Context(), ns+"-whole", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRange(t, c, ns+"-whole", metav1.ConditionFalse, false)
	if err := c.CoreV1().Services(ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRange(t, c, ns+"-whole", "", true)
}

// TestIPAddressesAreRepaired proves WL-25: the IPAddress of a service follows it, whatever is done to either; somebody
// else's keeps services off its address.
func TestIPAddressesAreRepaired(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	objects := c.NetworkingV1().IPAddresses()
	web, err := newService(t, c, ns, "web", "")
	if err != nil {
		t.Fatal(err)
	}
	ip := web.Spec.ClusterIP
	get := func() *networkingv1.IPAddress {
		t.Helper()
		o, err := objects.Get(t.Context(), ip, metav1.GetOptions{})
		if err != nil || !owned(o, ns, "web") {
			t.Errorf("%+v, %v", o, err)
		}
		return o
	}
	awaitAnother := func(uid types.UID) {
		t.Helper()
		awaitEvent(t, ip, objects.Watch, func(_ watch.EventType, is bool) bool { return is },
			func(ctx context.Context) (bool, error) {
				o, err := objects.Get(ctx, ip, metav1.GetOptions{})
				return err == nil && o.UID != uid, nil
			})
	}
	before := get()
	if err := objects.Delete(t.Context(), ip, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAnother(before.UID)
	before = get()
	if _, err := objects.Patch(t.Context(), ip, types.MergePatchType, []byte(`{"metadata":{"labels":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAnother(before.UID)
	get()

	name := func(kind string, externalName any) {
		t.Helper()
		text := fmt.Sprintf(`{"spec":{"type":%q,"externalName":%s,"ports":[{"port":80}]}}`, kind, externalName)
		if web, err = c.CoreV1().Services(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(text),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	name("ExternalName", `"example.com"`)
	if _, err := objects.Get(t.Context(), ip, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the IPAddress of a service that has become a name: %v", err)
	}
	name("ClusterIP", "null")
	ip = web.Spec.ClusterIP
	get()

	// Somebody's, of a service that there is not, and of nothing of ours.
	orphan, foreign := get().DeepCopy(), get().DeepCopy()
	for i, o := range []*networkingv1.IPAddress{orphan, foreign} {
		o.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("10.111.255.%d", 7+i), Labels: o.Labels}
		o.Spec.ParentRef.Name = "nobody"
	}
	foreign.Labels, foreign.Spec.ParentRef.Resource = nil, "gateways"
	for _, o := range []*networkingv1.IPAddress{orphan, foreign} {
		if _, err := objects.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitObject(t, c, orphan.Name, false)
	if _, err := newService(t, c, ns, "kept", foreign.Name); err == nil ||
		!strings.Contains(err.Error(), "already allocated") {
		t.Errorf("the address of somebody's IPAddress was given: %v", err)
	}
	if err := objects.Delete(t.Context(), foreign.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := newService(t, c, ns, "kept", foreign.Name); err != nil {
		t.Error(err)
	}
	foreign.ResourceVersion = ""
	if _, err := objects.Create(t.Context(), foreign, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("an IPAddress of a service's address: %v", err)
	}
}

// TestAddressesTakenOver proves WL-25, WL-24: a full first range is followed by the next, and a start puts right what a
// killed server, or a version without IPAddress objects, has left.
func TestAddressesTakenOver(t *testing.T) {
	dir := t.TempDir()
	run := func() (*kubernetes.Clientset, *store.Etcd, func()) {
		e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
		if err != nil {
			t.Fatal(err)
		}
		s, stop := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1", Etcd: e.Client(),
			ServiceCIDR: "10.77.0.0/29"})
		return clientOf(t, configOf(t, s)), e, func() {
			stop()
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	c, e, stop := run()
	ns := namespace(t, c)
	var taken []string
	for i := range 5 {
		s, err := newService(t, c, ns, fmt.Sprintf("s%d", i), "")
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, s.Spec.ClusterIP)
	}
	if _, err := newService(t, c, ns, "more", ""); err == nil ||
		!strings.Contains(err.Error(), "range 10.77.0.0/29 is full: ") {
		t.Errorf("of a full range: %v", err)
	}
	newRange(t, c, "more", "10.78.0.0/28")
	more, err := newService(t, c, ns, "more", "")
	if err != nil || !strings.HasPrefix(more.Spec.ClusterIP, "10.78.0.") {
		t.Fatalf("%+v, %v", more, err)
	}
	key := func(ip string) string { return "/registry/ipaddresses/" + ip }
	raw, err := e.Client().Get(t.Context(), key(taken[0]))
	if err != nil || len(raw.Kvs) != 1 {
		t.Fatalf("%v, %v", raw, err)
	}
	if err := c.CoreV1().Services(ns).Delete(t.Context(), "s0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.NetworkingV1().ServiceCIDRs().Delete(t.Context(), "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRange(t, c, "more", metav1.ConditionFalse, false)
	for _, ip := range []string{taken[1], more.Spec.ClusterIP} { // as if they had not been written yet
		if _, err := e.Client().Delete(t.Context(), key(ip)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Client().Put(t.Context(), key(taken[0]), string(raw.Kvs[0].Value)); err != nil { // not deleted yet
		t.Fatal(err)
	}
	stop()

	c, _, stop = run()
	defer stop()
	awaitObject(t, c, taken[1], true)
	awaitObject(t, c, more.Spec.ClusterIP, true)
	awaitObject(t, c, taken[0], false)
	if s, err := newService(t, c, ns, "again", ""); err != nil || s.Spec.ClusterIP != taken[0] {
		t.Errorf("the one address that is free: %v", err)
	}
	if _, err := newService(t, c, ns, "none", ""); err == nil {
		t.Error("an address of a range that was being deleted when the server ended")
	}
	if err := c.CoreV1().Services(ns).Delete(t.Context(), "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRange(t, c, "more", "", true)
}
