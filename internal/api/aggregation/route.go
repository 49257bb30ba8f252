// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	proxyrequest "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/transport"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"k8s.io/kube-aggregator/pkg/controllers/status/remote"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/upstream"
)

// route leads to the server that one APIService names. It is not changed once it is made.
type route struct {
	path      string // "/apis/GROUP/VERSION"
	service   *v1.APIService
	cert, key []byte // how this server shows itself

	stores   registry.Stores
	resolver webhook.ServiceResolver
	codecs   runtime.NegotiatedSerializer
	through  http.RoundTripper
	broken   error // why nothing goes through

	regardless bool // of whether it is available
}

func newRoute(s *v1.APIService, o Options, cert, key []byte) *route {
	r := &route{path: "/apis/" + s.Spec.Group + "/" + s.Spec.Version, service: s, cert: cert, key: key,
		stores: o.Stores, resolver: o.Resolver, codecs: o.Schemes.Codecs}
	// The library keeps connections by such configurations: equal ones are shared.
	r.through, r.broken = transport.New(remote.BuildTransportConfig(nil, cert, key, s))
	return r
}

// same reports whether another route leads to the same server, by the same facts.
func (r *route) same(other *route) bool {
	return r != nil && r.service.ResourceVersion == other.service.ResourceVersion &&
		r.service.UID == other.service.UID && bytes.Equal(r.cert, other.cert)
}

// server is the same for routes that lead to the same server by the same way.
func (r *route) server() string {
	s := r.service.Spec
	return fmt.Sprintf("%s/%s:%d %t %x", s.Service.Namespace, s.Service.Name, ptr.Deref(s.Service.Port, 0),
		s.InsecureSkipTLSVerify, s.CABundle)
}

// always is the route for those who find out whether it is available.
func (r *route) always() *route {
	open := *r
	open.regardless = true
	return &open
}

// closed is the reason why requests are refused; nil: they are not. Where the route does not know its server as
// available, the store is read: a client that has just read there that it is must not be refused.
func (r *route) closed(ctx context.Context) error {
	name := r.service.Name
	if r.broken != nil {
		return apierrors.NewInternalError(fmt.Errorf("APIService %s: %w", name, r.broken))
	}
	if r.regardless || helper.IsAPIServiceConditionTrue(r.service, v1.Available) {
		return nil
	}
	now, err := registry.Get[apiregistration.APIService](ctx, r.stores[upstream.APIServices], "", name)
	if err != nil {
		return err
	}
	why := "it has not been looked at yet"
	for _, c := range now.Status.Conditions {
		if c.Type != apiregistration.Available {
			continue
		}
		if c.Status == apiregistration.ConditionTrue && now.UID == r.service.UID {
			return nil
		}
		why = c.Reason + ": " + c.Message
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("APIService %s is not available: %s", name, why))
}

// ServeHTTP implements http.Handler.
func (r *route) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := r.closed(req.Context()); err != nil {
		r.refuse(w, req, err)
		return
	}
	who, ok := request.UserFrom(req.Context())
	if !ok {
		r.refuse(w, req, apierrors.NewInternalError(fmt.Errorf("nobody is known to have asked for %s", req.URL.Path)))
		return
	}
	ref := r.service.Spec.Service
	at, err := r.resolver.ResolveEndpoint(ref.Namespace, ref.Name, *ref.Port)
	if err != nil {
		r.refuse(w, req, apierrors.NewServiceUnavailable(fmt.Sprintf("APIService %s: service %s/%s: %v",
			r.service.Name, ref.Namespace, ref.Name, err)))
		return
	}
	location := &url.URL{Scheme: "https", Host: at.Host, Path: req.URL.Path, RawQuery: req.URL.Query().Encode()}
	onward, cancel := proxyrequest.NewRequestForProxy(location, req)
	defer cancel()
	through := transport.NewAuthProxyRoundTripper(who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra(),
		r.through)
	upgrade := httpstream.IsUpgradeRequest(req)
	if upgrade { // which the transport has no part in, but for TLS
		transport.SetAuthProxyHeaders(onward, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
	}
	handler := proxy.NewUpgradeAwareHandler(location, through, true, upgrade, refuser{r})
	handler.RejectForwardingRedirects = true
	flowcontrol.RequestDelegated(req.Context())
	handler.ServeHTTP(w, onward)
}

// refuser answers with what went wrong on the way.
type refuser struct{ *route }

var _ proxy.ErrorResponder = refuser{}

// Error implements proxy.ErrorResponder.
func (f refuser) Error(w http.ResponseWriter, req *http.Request, err error) {
	f.refuse(w, req, apierrors.NewServiceUnavailable(fmt.Sprintf("APIService %s does not answer: %v",
		f.service.Name, err)))
}

func (r *route) refuse(w http.ResponseWriter, req *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, r.codecs, schema.GroupVersion{}, w, req)
}
