// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/quota"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

const (
	firstRecount = 50 * time.Millisecond
	lastRecount  = time.Minute
)

// Quotas keeps the status of every ResourceQuota: what new objects take is charged when they are admitted, and
// everything is counted anew when objects go, pods end or a quota changes. In a namespace that has quotas, creates and
// counts take turns, from admission until the object is stored: a count never misses what has just been charged, and
// creates that race never get more than there is.
type Quotas struct {
	stores registry.Stores
	types  *schemes.Schemes
	status *genericregistry.Store
	log    *slog.Logger
	ruled  *registry.Ruled
	queue  workqueue.TypedRateLimitingInterface[string] // namespaces to count
	custom Custom                                       // nil: there are no custom resources

	mu     sync.Mutex
	turns  map[string]chan struct{} // by namespace, each with room for the one whose turn it is
	visits map[types.UID]int64      // of pods that have ended: their image execs
}

// New makes the charger of every counted kind. Nothing is counted before Run.
func New(st registry.Stores, known *schemes.Schemes, log *slog.Logger) *Quotas {
	q := &Quotas{
		stores: st, types: known, log: log, turns: map[string]chan struct{}{}, visits: map[types.UID]int64{},
		status: st["resourcequotas"].With(known, kinds.ResourceQuotaStatusRules()),
		ruled:  registry.NewRuled(st["resourcequotas"]),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRecount, lastRecount)),
	}
	for _, r := range st {
		if kinds.Counted(r.Kind) {
			r.Charger = q
			q.follow(r)
		}
	}
	return q
}

// Custom reads custom resources from the store.
type Custom interface {
	// EachStored calls each with every one of a namespace, of those kinds that are wanted.
	EachStored(ctx context.Context, namespace string, wanted func(schema.GroupResource) bool,
		each func(schema.GroupResource, runtime.Object)) error
}

// Count has custom resources counted, too. It is called before Run, and before anything is charged.
func (q *Quotas) Count(c Custom) { q.custom = c }

// Charge charges what a write takes, within Creating, or refuses it; for those who do not go through admission.
func (q *Quotas) Charge(ctx context.Context, a admission.Attributes) error {
	return quotaAdmission{q}.Validate(ctx, a, nil)
}

// Gone has a namespace counted from which something has been deleted.
func (q *Quotas) Gone(namespace string) {
	if q.ruled.Known(namespace) {
		q.queue.Add(namespace)
	}
}

// follow has the namespace counted when something of a kind that may have been charged goes, or changes what it takes.
func (q *Quotas) follow(r *registry.REST) {
	calls := onwrite.Calls{Deleted: q.changed}
	switch r.Kind.Plural {
	case "resourcequotas":
		calls.Created = q.changed
		calls.Updated = func(obj runtime.Object) {
			if !quota.UpToDate(obj.(*corev1.ResourceQuota)) {
				q.changed(obj)
			}
		}
	case "pods":
		calls.Updated = func(obj runtime.Object) {
			pod := obj.(*corev1.Pod)
			ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if ended || pod.Spec.ActiveDeadlineSeconds != nil { // which an update may set, and changes the scope
				q.changed(obj)
			}
		}
	case "services", "persistentvolumeclaims": // of which an update may take less, or leave a scope
		calls.Updated = q.changed
	}
	r.OnWrite.Add(calls)
}

func (q *Quotas) changed(obj runtime.Object) {
	if o, err := meta.Accessor(obj); err == nil && q.ruled.Known(o.GetNamespace()) {
		q.queue.Add(o.GetNamespace())
	}
}

// Run counts until ctx is done: first everything, as the server may have been killed between a charge and its object.
func (q *Quotas) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, q.queue.ShutDown)
	defer stop()
	if !registry.Persist(ctx, q.log, "reading the quotas", q.ruled.Load) {
		return
	}
	for _, namespace := range q.ruled.All() {
		q.queue.Add(namespace)
	}
	for q.next(ctx) {
	}
}

// Close ends Run and frees what New took; it may be called without Run.
func (q *Quotas) Close() { q.queue.ShutDown() }

func (q *Quotas) next(ctx context.Context) bool {
	namespace, ended := q.queue.Get()
	if ended {
		return false
	}
	defer q.queue.Done(namespace)
	done, err := q.turn(ctx, namespace)
	if err == nil {
		_, err = q.recount(ctx, namespace, true)
		done()
	}
	switch {
	case err == nil:
		q.queue.Forget(namespace)
	case ctx.Err() == nil:
		if !apierrors.IsConflict(err) {
			q.log.Warn("cannot count quotas, will try again", "namespace", namespace, "err", err)
		}
		q.queue.AddRateLimited(namespace)
	}
	return true
}

// turn waits for the turn in a namespace, or until ctx is done.
func (q *Quotas) turn(ctx context.Context, namespace string) (done func(), err error) {
	q.mu.Lock()
	turn := q.turns[namespace]
	if turn == nil {
		turn = make(chan struct{}, 1)
		q.turns[namespace] = turn
	}
	q.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// creation is, in its context, a write that may take something of the quotas of a namespace.
type creation struct {
	namespace string
	charged   int
	done      func() // gives the turn in the namespace back; nil: it has not been taken
}

// begin takes the turn, once. It is taken when there is something to charge and no sooner: what comes before, such as
// the wait of a new pod for its namespace's default account, may itself need others to create something there.
func (c *creation) begin(ctx context.Context, q *Quotas) (err error) {
	if c.done == nil {
		c.done, err = q.turn(ctx, c.namespace)
	}
	return err
}

// end gives the turn back, if it was taken.
func (c *creation) end() {
	if c.done != nil {
		c.done()
	}
}

type creationKey struct{}

// creationIn is the write under way in a namespace, or nil.
func creationIn(ctx context.Context, namespace string) *creation {
	if c, ok := ctx.Value(creationKey{}).(*creation); ok && c.namespace == namespace {
		return c
	}
	return nil
}

// Creating runs a write, which says whether it wrote, in its turn where there are quotas: from when admission charges
// what it takes until it is stored. What is charged without being written (or tried more than once) and what began
// before the namespace's first quota was made are put right by counting.
func (q *Quotas) Creating(ctx context.Context, namespace string, write func(context.Context) (bool, error)) error {
	c := &creation{namespace: namespace}
	defer c.end()
	wrote, err := write(context.WithValue(ctx, creationKey{}, c))
	if c.charged > 1 || c.charged == 1 && !wrote || c.done == nil && wrote && q.ruled.Known(namespace) {
		q.queue.Add(namespace)
	}
	return err
}

// Growing implements registry.Charger.
func (q *Quotas) Growing(ctx context.Context, namespace string, update func(registry.Charge) error) error {
	return q.Creating(ctx, namespace, func(ctx context.Context) (bool, error) {
		c := creationIn(ctx, namespace)
		return false, update(func(ctx context.Context, a admission.Attributes) error { return q.admit(ctx, a, c) })
	})
}

func (q *Quotas) list(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
	r := q.stores["resourcequotas"]
	list, err := r.List(r.Within(ctx, namespace), &metainternal.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the quotas of namespace %s: %w", namespace, err)
	}
	return list.(*corev1.ResourceQuotaList).Items, nil
}

// recount counts what the quotas of a namespace limit, and returns them as they are then. The caller has the turn.
func (q *Quotas) recount(ctx context.Context, namespace string, write bool) ([]corev1.ResourceQuota, error) {
	all, err := q.list(ctx, namespace)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var items []quota.Item
	for _, r := range q.stores {
		if r.Charger == nil ||
			!slices.ContainsFunc(all, func(q corev1.ResourceQuota) bool { return tracks(&q, r.Kind.Resource()) }) {
			continue
		}
		list, err := r.List(r.Within(ctx, namespace), &metainternal.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("count the %s of namespace %s: %w", r.Kind.Plural, namespace, err)
		}
		if err := meta.EachListItem(list, func(obj runtime.Object) error {
			obj, err := q.types.Versioned(obj, r.Kind.GV)
			if err == nil {
				items = append(items, q.item(r.Kind, obj))
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if q.custom != nil {
		err := q.custom.EachStored(ctx, namespace, func(r schema.GroupResource) bool {
			return slices.ContainsFunc(all, func(q corev1.ResourceQuota) bool { return tracks(&q, r) })
		}, func(r schema.GroupResource, obj runtime.Object) {
			items = append(items, quota.Item{Resource: r, Object: obj})
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range all {
		one := &all[i]
		used := quota.Count(one, items)
		if quota.UpToDate(one) && quota.Same(used, one.Status.Used) {
			continue
		}
		one.Status = corev1.ResourceQuotaStatus{Hard: one.Spec.Hard.DeepCopy(), Used: used}
		if write {
			if err := q.write(ctx, one); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func tracks(q *corev1.ResourceQuota, r schema.GroupResource) bool {
	for name := range q.Spec.Hard {
		if quota.Tracks(r, name) {
			return true
		}
	}
	return false
}

// write stores the status of a quota and takes over its new version; it is a conflict if somebody else wrote the quota
// since it was read, and nothing if it has gone.
func (q *Quotas) write(ctx context.Context, one *corev1.ResourceQuota) error {
	ctx = q.stores["resourcequotas"].Within(ctx, one.Namespace)
	obj, _, err := q.status.Update(ctx, one.Name, rest.DefaultUpdatedObjectInfo(one.DeepCopy()),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	*one = *obj.(*corev1.ResourceQuota)
	return nil
}
