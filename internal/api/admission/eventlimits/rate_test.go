// SPDX-License-Identifier: Apache-2.0

package eventlimits

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// writes is what some user's writes of an event come to.
func (p *Rate) writes(t *testing.T, who user.DefaultInfo, namespace string, n int,
	dry bool) (refused int, last error) {
	t.Helper()
	var event runtime.Object = &corev1.Event{Message: string(make([]byte, 15<<10))}
	kind, resource := corev1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithResource("events")
	for i := range n {
		a := admission.NewAttributesRecord(event, nil, kind, namespace, fmt.Sprint("e", i), resource, "",
			admission.Create, nil, dry, &who)
		if err := p.Validate(request.WithUser(t.Context(), &who), a, nil); err != nil {
			refused, last = refused+1, err
		}
	}
	return refused, last
}

// TestEventRate (RS-03): who writes events without end is told to wait, as are all who write into one namespace
// together; what the server, nodes and administrators write is not counted.
// ATTACK B25.
func TestEventRate(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewRate()
	p.now = func() time.Time { return now }
	const burst = eventsAtOnce / (15 << 10) // of events like ours
	ann, bob := user.DefaultInfo{Name: "ann"}, user.DefaultInfo{Name: "bob"}

	if n, _ := p.writes(t, ann, "shop", 2*burst, true); n != 0 {
		t.Errorf("%d dry runs are refused", n)
	}
	n, err := p.writes(t, ann, "shop", 2*burst, false)
	if n < burst || n > burst+burst/20 {
		t.Errorf("of %d events %d are refused", 2*burst, n)
	}
	if after, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !ok || after < 1 ||
		after > 2 {
		t.Errorf("refused with %v, wait %d s", err, after)
	}
	if n, _ := p.writes(t, ann, "home", 1, false); n != 1 {
		t.Error("another namespace gives a user more")
	}
	if n, _ := p.writes(t, bob, "home", burst/2, false); n != 0 {
		t.Errorf("another user is refused %d events", n)
	}
	// The namespace has enough for two users.
	if n, _ := p.writes(t, user.DefaultInfo{Name: "cid"}, "shop", burst, false); n > burst/20 {
		t.Errorf("a second user of the namespace is refused %d events", n)
	}
	if n, err := p.writes(t, user.DefaultInfo{Name: "dan"}, "shop", burst, false); n < burst-burst/20 {
		t.Errorf("a third one is refused only %d events, the last with %v", n, err)
	}
	for _, who := range []user.DefaultInfo{{Name: "system:node:n"}, {Name: "system:kube-scheduler"},
		{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}} {
		if n, err := p.writes(t, who, "shop", 2*burst, false); n != 0 {
			t.Errorf("%s is refused %d events: %v", who.Name, n, err)
		}
	}
	now = now.Add(time.Minute)
	if n, _ := p.writes(t, ann, "shop", 2*burst, false); 2*burst-n < 60 || 2*burst-n > 65 {
		t.Errorf("after a minute %d events pass, want one a second", 2*burst-n)
	}
	now = now.Add(-time.Hour)
	if n, _ := p.writes(t, ann, "shop", 1, false); n != 1 {
		t.Error("a clock that was set back gives a user more")
	}
}

// TestEventRateOfAccounts (RS-03): who may make service accounts gets no more by having many.
func TestEventRateOfAccounts(t *testing.T) {
	p := NewRate()
	refused := 0
	for i := range 20 {
		n, _ := p.writes(t, user.DefaultInfo{Name: fmt.Sprintf("system:serviceaccount:shop:a%d", i)},
			fmt.Sprint("ns", i), 50, false)
		refused += n
	}
	if refused < 600 {
		t.Errorf("of 1000 events of 20 accounts only %d are refused", refused)
	}
}

// TestEventRateForgets: what is kept of users and namespaces does not grow with those that were there.
func TestEventRateForgets(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewRate()
	p.now = func() time.Time { return now }
	for i := range 20 * manyBuckets {
		now = now.Add(time.Second)
		p.take(fmt.Sprint("user", i), "shop", 1000)
	}
	if len(p.buckets) > manyBuckets+1 {
		t.Errorf("%d buckets", len(p.buckets))
	}
}
