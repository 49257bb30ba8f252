// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/wherryproject/wherry/internal/api/serviceips/ranges"
)

var anyone = Owner{Namespace: "ns", Name: "anyone"}

func addressesOf(t *testing.T, cidr string) *Addresses {
	t.Helper()
	a, err := New(netip.MustParsePrefix(cidr))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// takeAll takes all addresses that there are, in order.
func takeAll(a *Addresses) (got []string) {
	for {
		ip, err := a.take(netip.Addr{}, anyone)
		if err != nil {
			return got
		}
		got = append(got, ip.String())
	}
}

func TestAddresses(t *testing.T) {
	a := addressesOf(t, "10.1.0.7/29")
	if a.First().String() != "10.1.0.1" {
		t.Errorf("first is %s", a.First())
	}
	got := takeAll(a) // six usable, one of them the server's
	slices.Sort(got)
	if strings.Join(got, " ") != "10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5 10.1.0.6" {
		t.Errorf("taken: %v", got)
	}
	if _, err := a.take(netip.Addr{}, anyone); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("from an empty range: %v", err)
	}
	a.release(netip.MustParseAddr("10.1.0.4"), Owner{Name: "another"})
	if _, err := a.take(netip.Addr{}, anyone); err == nil {
		t.Error("somebody gave back what another service has")
	}
	a.release(netip.MustParseAddr("10.1.0.4"), anyone)
	if ip, err := a.take(netip.Addr{}, anyone); err != nil || ip.String() != "10.1.0.4" {
		t.Errorf("after a release: %v, %v", ip, err)
	}
	for _, outside := range []string{"10.1.0.9", "10.1.0.0", "10.1.0.7"} {
		if _, err := a.take(netip.MustParseAddr(outside), anyone); err == nil ||
			!strings.Contains(err.Error(), "valid IPs is 10.1.0.0/29") {
			t.Errorf("%s, an address outside the range: %v", outside, err)
		}
	}
	if six := addressesOf(t, "fd00:1::/112"); six.First().String() != "fd00:1::1" {
		t.Errorf("IPv6: %v", six.First())
	}
}

// serviceCIDR is a ServiceCIDR as it is stored.
func serviceCIDR(name string, version uint64, networks ...string) ranges.Range {
	return ranges.Of(&networking.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Finalizers: []string{ranges.Finalizer}},
		Spec:       networking.ServiceCIDRSpec{CIDRs: networks}}, version)
}

// TestFurtherRanges: WL-25: services have addresses of a further range when they ask for one, and when the first one is
// full; of one that is leaving they get none, and it goes when its addresses have.
func TestFurtherRanges(t *testing.T) {
	a := addressesOf(t, "10.1.0.0/29")
	known, changed := a.Known()
	a.PutRange(serviceCIDR("kubernetes", 1, "10.1.0.0/29"))
	select {
	case <-changed:
		t.Error("what is known has not changed")
	default:
	}
	more := serviceCIDR("more", 2, "10.2.0.0/30")
	a.PutRange(more)
	if <-changed; fmt.Sprint(known) != "[10.1.0.0/29]" {
		t.Error(known)
	}
	if known, _ = a.Known(); fmt.Sprint(known) != "[10.1.0.0/29 10.2.0.0/30]" {
		t.Errorf("known: %v", known)
	}
	asked, err := a.take(netip.MustParseAddr("10.2.0.2"), anyone)
	if err != nil {
		t.Fatal(err)
	}
	got := takeAll(a)
	if len(got) != 6 || slices.ContainsFunc(got[:5], func(s string) bool { return !strings.HasPrefix(s, "10.1.") }) ||
		got[5] != "10.2.0.1" {
		t.Errorf("taken: %v", got)
	}
	if _, err := a.take(netip.Addr{}, anyone); err == nil ||
		!strings.Contains(err.Error(), "ranges 10.1.0.0/29, 10.2.0.0/30 are full") {
		t.Errorf("%v", err)
	}

	freed := 0
	a.Tell(Told{Freed: func() { freed++ }})
	more.Leaving, more.Version = true, 3
	a.PutRange(more)
	a.release(netip.MustParseAddr("10.2.0.1"), anyone)
	if freed != 1 {
		t.Errorf("told %d times of an address that was freed", freed)
	}
	if ip, err := a.take(netip.Addr{}, anyone); err == nil {
		t.Errorf("%s of a range that is leaving", ip)
	}
	if _, err := a.take(netip.MustParseAddr("10.2.0.1"), anyone); err == nil ||
		strings.Contains(err.Error(), "10.2.0.0/30") {
		t.Errorf("of a range that is leaving: %v", err)
	}
	if needs, may := a.ReleaseRange("more"); may || needs != asked {
		t.Errorf("a range whose address %s is in use may go: %v (%s)", asked, may, needs)
	}
	a.release(asked, anyone)
	if _, may := a.ReleaseRange("more"); !may {
		t.Error("a range without addresses stays")
	}
}

// TestHeldAddresses: WL-25: an address that has somebody's IPAddress is no service's, and one that a service has cannot
// be had by somebody's IPAddress.
func TestHeldAddresses(t *testing.T) {
	a := addressesOf(t, "10.1.0.0/30")
	ip := netip.MustParseAddr("10.1.0.2") // the only one
	foreign := func(uid types.UID) *networking.IPAddress {
		return &networking.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: ip.String(), UID: uid},
			Spec: networking.IPAddressSpec{ParentRef: &networking.ParentReference{Resource: "gateways", Name: "g"}}}
	}
	free := func(want bool) {
		t.Helper()
		_, err := a.take(ip, anyone)
		if (err == nil) != want {
			t.Errorf("free: %v, want %v (%v)", err == nil, want, err)
		}
		if _, err := a.take(netip.Addr{}, anyone); err == nil {
			t.Error("an address was given twice")
		}
		a.release(ip, anyone)
	}
	hold := func(o *networking.IPAddress, dry bool) func(bool) {
		t.Helper()
		finish, err := a.hold(o, dry)
		if err != nil {
			t.Fatal(err)
		}
		return finish
	}
	free(true)
	first, second := hold(foreign("1"), false), hold(foreign("2"), false)
	free(false)
	second(false) // the store has refused it
	free(false)
	first(true)
	hold(foreign("3"), true)(true) // a dry run
	free(false)
	a.letGo(ip, "1")
	free(true)

	if _, err := a.take(ip, anyone); err != nil {
		t.Fatal(err)
	}
	if _, err := a.hold(foreign("4"), false); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("somebody holds a service's address: %v", err)
	}
	if _, err := a.hold(ranges.Object(ip, anyone), false); err != nil {
		t.Errorf("the service's own object: %v", err)
	}
	if finish, err := a.hold(&networking.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, false); finish != nil ||
		err != nil {
		t.Error("what is no address is left to validation")
	}
}

// TestTakenOver: WL-25: what is stored at a start takes its addresses, and what is missing or left over of IPAddress
// objects is found, as that of a data folder from before there were any.
func TestTakenOver(t *testing.T) {
	a := addressesOf(t, "10.1.0.0/24")
	service := func(name, ip string) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: corev1.ServiceSpec{ClusterIP: ip}}
	}
	object := func(ip, name string) networking.IPAddress {
		return *ranges.Object(netip.MustParseAddr(ip), Owner{Namespace: "ns", Name: name})
	}
	early := service("early", "10.1.0.5")
	early.UID = "early"
	a.hasMoved(&early, true) // deleted since the services were read
	a.Load([]corev1.Service{early, service("right", "10.1.0.2"), service("without", "10.1.0.3"),
		service("wrong", "10.1.0.4"), service("headless", "None"), service("twin", "10.1.0.2")})
	foreign := object("10.1.0.6", "x")
	foreign.Labels = nil
	astray := a.LoadObjects([]networking.IPAddress{object("10.1.0.2", "right"), object("10.1.0.4", "right"),
		object("10.1.0.5", "gone"), foreign,
		{ObjectMeta: metav1.ObjectMeta{Name: "x"}}})
	if got := fmt.Sprint(astray); got != "[10.1.0.3 10.1.0.4 10.1.0.5]" {
		t.Errorf("astray: %s", got)
	}
	for ip, want := range map[string]bool{"10.1.0.2": false, "10.1.0.3": false, "10.1.0.4": false, "10.1.0.5": true,
		"10.1.0.6": false} {
		if _, err := a.take(netip.MustParseAddr(ip), anyone); (err == nil) != want {
			t.Errorf("%s is free: %v, want %v", ip, err == nil, want)
		}
	}
	if got := a.Owner(netip.MustParseAddr("10.1.0.2")); got.Name != "right" {
		t.Errorf("of two services with one address %s has it", got)
	}
}

// TestAddressesRacing: WL-24, WL-25: of many at the same time each gets an address of its own, whatever ranges come and
// go, and none of a range that was let go.
func TestAddressesRacing(t *testing.T) {
	a := addressesOf(t, "10.1.0.0/27")
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := map[netip.Addr]int{}
	for i := range 100 {
		wg.Go(func() {
			wanted := netip.Addr{}
			if i%2 == 0 {
				wanted = netip.AddrFrom4([4]byte{10, 2, 0, byte(1 + i%20)})
			}
			if ip, err := a.take(wanted, Owner{Name: fmt.Sprint(i)}); err == nil {
				mu.Lock()
				given[ip]++
				mu.Unlock()
			}
		})
	}
	released := false
	wg.Go(func() {
		r := serviceCIDR("r", 1, "10.2.0.0/28")
		a.PutRange(r)
		r.Leaving, r.Version = true, 2
		a.PutRange(r)
		_, released = a.ReleaseRange("r")
	})
	wg.Wait()
	for ip, times := range given {
		if times != 1 || released && netip.MustParsePrefix("10.2.0.0/28").Contains(ip) {
			t.Errorf("%s was given %d times; its range was let go: %v", ip, times, released)
		}
	}
}

// TestMoves: WL-24: an update that gives a service an address, or takes it, counts when it is written; one that lost
// against another leaves nothing behind.
func TestMoves(t *testing.T) {
	a := addressesOf(t, "10.1.0.0/24")
	version := func(v, ip string) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", ResourceVersion: v},
			Spec: corev1.ServiceSpec{ClusterIP: ip}}
		if ip == "" {
			s.Spec.Type = corev1.ServiceTypeExternalName
		}
		return s
	}
	gain := func(from, ip string) {
		t.Helper()
		s := version("", ip)
		finish, err := a.assign(s, false)
		if err != nil {
			t.Fatal(err)
		}
		a.moves(s, version(from, ""))
		finish(true)
	}
	used := func(want ...string) {
		t.Helper()
		var got []string
		for ip := range a.InUse() {
			got = append(got, ip.String())
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("in use: %v, want %v", got, want)
		}
	}
	var settled []netip.Addr
	a.Tell(Told{Settled: func(ip netip.Addr) { settled = append(settled, ip) }})
	gain("9", "10.1.0.5")                // loses against what becomes version 10
	gain("10", "10.1.0.6")               // is tried on that
	a.hasMoved(version("10", ""), false) // which is told late
	used("10.1.0.6")
	a.hasMoved(version("11", "10.1.0.6"), false)
	used("10.1.0.6")
	if fmt.Sprint(settled) != "[10.1.0.5 10.1.0.6]" {
		t.Errorf("settled: %v", settled)
	}
	a.moves(version("", ""), version("11", "10.1.0.6"))
	used("10.1.0.6") // it is not written yet
	a.hasMoved(version("12", ""), false)
	used()
	gain("12", "10.1.0.7")
	a.hasMoved(version("12", ""), true) // it is deleted instead
	if used(); len(a.moved) != 0 {
		t.Errorf("left: %v", a.moved)
	}
}
