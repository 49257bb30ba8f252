// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/upstream"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/pki"
)

// Options say what an Aggregator works with.
type Options struct {
	Stores  registry.Stores
	Schemes *schemes.Schemes
	Client  *rest.Config // of this server
	Local   []Local      // of each group, the preferred version first
	// Resolver finds a Service's endpoint: the server is no pod, and may carry no cluster IPs.
	Resolver webhook.ServiceResolver
	// Certificate is how this server shows itself to others as the one that says who asks.
	Certificate *pki.Renewing
	Log         *slog.Logger
}

// Documents are what tells clients of groups.
type Documents struct {
	Plain      discovery.GroupManager     // the list of groups
	Aggregated aggregated.ResourceManager // the same with all resources
}

// Aggregator answers for other API servers. Make it with New; Start and Close are called once.
type Aggregator struct {
	o       Options
	context context.Context // done when the server stops
	cancel  context.CancelFunc
	going   sync.WaitGroup
	custom  custom

	routes atomic.Pointer[table] // nil: there are none
	whole  whole

	mu        sync.Mutex
	documents Documents // set by Start
	begun     *running  // nil: nobody has given a group to a Service yet
}

// New prepares the aggregation: nothing runs yet.
func New(o Options) *Aggregator {
	a := &Aggregator{o: o}
	a.context, a.cancel = context.WithCancel(context.Background())
	o.Stores[upstream.APIServices].OnWrite.Add(onwrite.Calls{
		Creating: func(obj runtime.Object, _ bool) (onwrite.Finish, error) { return nil, a.judge(obj) },
		Updating: func(obj, _ runtime.Object, _ bool) (onwrite.Finish, error) { return nil, a.judge(obj) },
		Created:  a.written, Updated: a.written, Deleted: a.deleted,
	})
	o.Certificate.OnRenewal(a.renewed)
	return a
}

// judge refuses to give a group of this server itself to a Service: those who would mend it could not.
func (a *Aggregator) judge(obj runtime.Object) error {
	s, ok := obj.(*apiregistration.APIService)
	if !ok || s.Spec.Service == nil || !a.own(s.Spec.Group, s.Spec.Version) {
		return nil
	}
	return apierrors.NewInvalid(apiregistration.Kind("APIService"), s.Name, field.ErrorList{
		field.Forbidden(field.NewPath("spec", "service"), "group "+quoted(s.Spec.Group)+
			" is served by this server itself; of its groups only "+metricsv1beta1.GroupName+
			" can be given to another server, and "+
			wire.Group+" in a version that this server does not serve"),
	})
}

func quoted(group string) string {
	if group == "" {
		return `""`
	}
	return group
}

// own are the groups that are never given away. That of debugging has a version of which any cluster's server is to
// hand requests on.
func (a *Aggregator) own(group, version string) bool {
	if group == metricsv1beta1.GroupName {
		return false
	}
	for _, l := range a.o.Local {
		if l.GV.Group == group && (group != wire.Group || l.GV.Version == version) {
			return true
		}
	}
	return false
}

// written starts the aggregation with the first APIService that names a Service.
func (a *Aggregator) written(obj runtime.Object) {
	if s, ok := obj.(*apiregistration.APIService); ok && s.Spec.Service != nil {
		a.begin()
	}
}

// known is how long Start waits at most. An endpoint of before a restart may be a pod that this very server has yet to
// start.
const known = 2 * time.Second

// Start begins if there is an APIService already that names a Service, and waits a while then until its group is known:
// who deletes or collects what nobody knows would delete too little, or too much. A group that is not known yet is in
// the documents as one that does not answer.
func (a *Aggregator) Start(ctx context.Context, d Documents) error {
	a.mu.Lock()
	a.documents = d
	a.mu.Unlock()
	all, err := a.list(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Spec.Service == nil {
			continue
		}
		select {
		case <-a.begin():
		case <-time.After(known):
		case <-ctx.Done():
		}
		return nil
	}
	return nil
}

// begin starts all that other servers need, once. What it returns is closed when the groups are known.
func (a *Aggregator) begin() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun == nil && a.documents.Plain != nil && a.context.Err() == nil {
		a.begun = a.run()
	}
	if a.begun == nil { // the server is still starting, and looks by itself, or it stops
		known := make(chan struct{})
		close(known)
		return known
	}
	return a.begun.known
}

// Stop has all end that was begun, and does not wait for it.
func (a *Aggregator) Stop() { a.cancel() }

// Close ends what was begun.
func (a *Aggregator) Close() {
	a.Stop()
	a.going.Wait()
}
