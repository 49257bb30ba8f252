// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// asking serves pods/evidence and pods/sessions. kube-apiserver has authorised what is done: the methods are the verbs.
type asking struct {
	server  *Server
	empty   runtime.Object
	methods []string
}

var (
	_ rest.Connecter       = asking{}
	_ rest.StorageMetadata = asking{}
)

// New implements rest.Storage.
func (c asking) New() runtime.Object { return c.empty.DeepCopyObject() }

// Destroy implements rest.Storage.
func (asking) Destroy() {}

// ProducesMIMETypes implements rest.StorageMetadata.
func (asking) ProducesMIMETypes(string) []string { return []string{runtime.ContentTypeJSON} }

// ProducesObject implements rest.StorageMetadata.
func (asking) ProducesObject(string) any { return "" }

// ConnectMethods implements rest.Connecter.
func (c asking) ConnectMethods() []string { return c.methods }

// NewConnectOptions implements rest.Connecter.
func (c asking) NewConnectOptions() (runtime.Object, bool, string) { return c.New(), false, "" }

// Connect implements rest.Connecter.
func (c asking) Connect(ctx context.Context, name string, opts runtime.Object, r rest.Responder) (http.Handler, error) {
	s := c.server
	pod, err := s.pod(ctx, name)
	if err != nil {
		return nil, err
	}
	agent, err := s.agents.of(ctx, pod, 0)
	if err != nil {
		return nil, err
	}
	user, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("the request has no user")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ask := func(method, path string, what, into, out any) {
			if err := s.reach.ask(ctx, agent, method, path, what, into); err != nil {
				r.Error(err)
				return
			}
			answer(w, out)
		}
		o, sessions := opts.(*options.Sessions)
		if !sessions {
			evidence := &wire.EvidenceOf{}
			ask(http.MethodGet, wire.PathEvidence, about(pod), evidence, evidence)
			return
		}
		if err := o.Validate(req.Method); err != nil {
			r.Error(apierrors.NewBadRequest(err.Error()))
			return
		}
		if req.Method == http.MethodDelete {
			ask(http.MethodDelete, wire.PathSessions, wire.Stop{Pod: about(pod), ID: o.Session, By: user.GetName()},
				nil, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
					Status: metav1.StatusSuccess})
			return
		}
		list := &wire.RunningList{Items: []wire.Running{}}
		ask(http.MethodGet, wire.PathSessions, about(pod), list, list)
	}), nil
}

// answer writes what an agent has answered, as this API understands it; when a session is ended, that it was asked to.
func answer(w http.ResponseWriter, out any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(out) // a client that is gone does not hear it
}

// parent is what the subresources are of: it serves nothing.
type parent struct{}

var (
	_ rest.Storage              = parent{}
	_ rest.Scoper               = parent{}
	_ rest.SingularNameProvider = parent{}
)

// New implements rest.Storage.
func (parent) New() runtime.Object { return &options.Pod{} }

// Destroy implements rest.Storage.
func (parent) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (parent) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (parent) GetSingularName() string { return "pod" }

// resources are all that the API serves.
func (s *Server) resources() map[string]rest.Storage {
	return map[string]rest.Storage{
		"pods":                  parent{},
		"pods/" + wire.Shell:    streaming{s, &options.Shell{}, wire.Shell},
		"pods/" + wire.Exec:     streaming{s, &options.Exec{}, wire.Exec},
		"pods/" + wire.Files:    streaming{s, &options.Files{}, wire.Files},
		"pods/" + wire.Evidence: asking{s, &options.Evidence{}, []string{http.MethodGet}},
		"pods/" + wire.Sessions: asking{s, &options.Sessions{}, []string{http.MethodGet, http.MethodDelete}},
	}
}
