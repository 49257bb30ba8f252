// SPDX-License-Identifier: Apache-2.0

package eventlimits

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// Rate limits how much of events is written by each user, and by all in each namespace (RS-03). No quota counts
// events, and the store keeps them for an hour: however small each is, who may write them could fill the store for
// everybody. It is what Kubernetes' EventRateLimit is, which a cluster has to configure, but it goes by bytes: what
// matters here is the store. The server's own parts, nodes and administrators are not limited.
type Rate struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
}

var _ admission.ValidationInterface = (*Rate)(nil)

// NewRate makes the plug-in; all users and namespaces have their whole allowance.
func NewRate() *Rate { return &Rate{now: time.Now, buckets: map[string]bucket{}} }

// allowance is how a bucket fills.
type allowance struct{ perSecond, most float64 } // bytes

// With these a user can have the store keep some 60 MB of events, and all users of a namespace together twice as much.
// An ordinary event has less than a kilobyte.
const (
	eventsPerSecond = 16 << 10
	eventsAtOnce    = 4 << 20
	// leastEvent is charged for any event: the store has something to keep and to index of an empty one too.
	leastEvent = 512
	// manyBuckets is when those that are full are forgotten, which are like new ones.
	manyBuckets = 1024
)

func userAllowance() allowance { return allowance{eventsPerSecond, eventsAtOnce} }

func namespaceAllowance() allowance { return allowance{2 * eventsPerSecond, 2 * eventsAtOnce} }

// bucket is what is left of an allowance.
type bucket struct {
	left float64
	at   time.Time // when that was
}

// fill is what a bucket holds later; a new one is full. A clock that goes back fills nothing.
func (b bucket) fill(a allowance, now time.Time) bucket {
	if b.at.IsZero() {
		return bucket{a.most, now}
	}
	return bucket{min(a.most, b.left+max(0, now.Sub(b.at).Seconds())*a.perSecond), now}
}

// lacks is how long it takes until the bucket has so much; 0: it has.
func (b bucket) lacks(a allowance, bytes float64) time.Duration {
	if b.left >= bytes {
		return 0
	}
	return time.Duration((bytes - b.left) / a.perSecond * float64(time.Second))
}

// Handles implements admission.Interface.
func (*Rate) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (p *Rate) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Resource != "events" || a.IsDryRun() || registry.FromInside(ctx) ||
		slices.Contains(a.GetUserInfo().GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	e, ok := a.GetObject().(interface{ Size() int })
	if !ok {
		return nil
	}
	who, wait := p.take(a.GetUserInfo().GetName(), a.GetNamespace(), e.Size())
	if wait == 0 {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf("%s has written too many events: on average %d KiB a second may be "+
		"written, of which there is none left now; write fewer, or count up the events that are there", who,
		eventsPerSecond>>10), int(math.Ceil(wait.Seconds())))
}

// take charges an event, or says whose allowance does not have it yet and how long that will be.
func (p *Rate) take(name, namespace string, size int) (who string, wait time.Duration) {
	owner := "user " + name
	if ns, _, err := serviceaccount.SplitUsername(name); err == nil { // who has one has as many as he likes
		owner = "the service accounts of namespace " + ns
	}
	bytes := float64(max(size, leastEvent))
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.forget(now)
	ofUser := p.buckets[owner].fill(userAllowance(), now)
	place := "namespace " + namespace
	ofPlace := p.buckets[place].fill(namespaceAllowance(), now)
	if wait = ofUser.lacks(userAllowance(), bytes); wait > 0 {
		return owner, wait
	}
	if wait = ofPlace.lacks(namespaceAllowance(), bytes); wait > 0 {
		return place, wait
	}
	ofUser.left -= bytes
	ofPlace.left -= bytes
	p.buckets[owner], p.buckets[place] = ofUser, ofPlace
	return "", 0
}

// forget drops buckets that are full again, when there are many.
func (p *Rate) forget(now time.Time) {
	if len(p.buckets) < manyBuckets {
		return
	}
	const full = eventsAtOnce / eventsPerSecond * time.Second // of both kinds
	for name, b := range p.buckets {
		if now.Sub(b.at) >= full {
			delete(p.buckets, name)
		}
	}
}
