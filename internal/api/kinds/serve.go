// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/componentstatus"
	"github.com/wherryproject/wherry/internal/api/eviction"
	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/api/upstream"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// Host is what the kinds need of the server they are served by.
type Host struct {
	Stores    registry.Stores
	Schemes   *schemes.Schemes
	Addresses *serviceips.Addresses // of services
	NodePorts *serviceips.NodePorts // likewise
	Loaded    func() error          // waits until it is known which of these are taken
	Etcd      func() error          // nil: etcd answers
}

// Serve serves every kind and its subresources. A kind of the table is served as it is, with its status; what is
// special about some comes after.
func Serve(all registry.Served, h Host) {
	st, core := h.Stores, corev1.SchemeGroupVersion
	st["namespaces"].ShouldDeleteDuringUpdate = emptiedNamespace // of its subresources too
	for name, r := range st {
		all.Add(r.Kind.GV, name, r)
		if r.Kind.Status != nil {
			all.Add(r.Kind.GV, name+"/status", r.Sub(h.Schemes, *r.Kind.Status))
		}
		for below, s := range r.Below() {
			all.Add(r.Kind.GV, name+"/"+below, s)
		}
		for _, gv := range r.Kind.Also {
			all.Add(gv, name, r)
			for below, s := range r.Below() {
				all.Add(gv, name+"/"+below, s)
			}
		}
	}
	for _, kind := range []string{"services", upstream.IPAddresses} {
		st[kind].OnWrite.Add(afterLoad(h.Loaded))
	}
	h.Addresses.Attach(st["services"].OnWrite)
	h.Addresses.AttachRanges(st[upstream.ServiceCIDRs].OnWrite)
	h.Addresses.AttachObjects(st[upstream.IPAddresses].OnWrite)
	h.NodePorts.Attach(st["services"].OnWrite)
	all.Add(core, "namespaces", newNamespaceREST(st["namespaces"]))
	all.Add(core, "namespaces/finalize", finalizeREST{st["namespaces"].With(h.Schemes, namespaceFinalizeRules())})
	all.Add(core, "endpoints", endpointsREST{st["endpoints"]})
	all.Add(core, "componentstatuses", componentstatus.New(h.Etcd))
	all.Add(core, "pods/binding", bindingREST{st["pods"]})
	all.Add(core, "pods/resize", resizeREST{st["pods"].Sub(h.Schemes, podResizeRules())})
	all.Add(core, "pods/eviction", eviction.New(st["pods"], st[upstream.Budgets],
		st[upstream.Budgets].Below()["status"].(rest.Updater)))
	events := st["events"]
	all.Add(eventsv1.SchemeGroupVersion, "events", eventsView{&registry.REST{Store: events.With(h.Schemes,
		newEventRules()), Kind: events.Kind}})
	serveCertificates(all, st[CertificateRequests], h.Schemes)
	runs := st[debugrun.Resource] // records of debugging, which nobody but the server writes
	all.Add(debugrun.GroupVersion(), debugrun.Resource, debugRunREST{runs})
	all.Add(debugrun.GroupVersion(), debugrun.Resource+"/status", ownStatus{runs.Sub(h.Schemes, *runs.Kind.Status)})
}

// afterLoad has writes wait until it is known which addresses and ports are taken: a client that comes while the server
// starts would be given one of somebody else's.
func afterLoad(loaded func() error) onwrite.Calls {
	return onwrite.Calls{
		Creating: func(runtime.Object, bool) (onwrite.Finish, error) { return nil, loaded() },
		Updating: func(_, _ runtime.Object, _ bool) (onwrite.Finish, error) { return nil, loaded() },
	}
}

// eventsView shows the core events under events.k8s.io; the connection belongs to the core kind.
type eventsView struct{ *registry.REST }

// Destroy implements rest.Storage.
func (eventsView) Destroy() {}
