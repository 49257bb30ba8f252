// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install" // the strategies' own scheme
	bundle "k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle/storage"
	request "k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest/storage"
	"k8s.io/utils/clock"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// Plurals of the kinds by which pods get certificates and learn whom to trust.
const (
	TrustBundles           = "clustertrustbundles"
	PodCertificateRequests = "podcertificaterequests"
)

// certificateKinds are those of the group whose rules are Kubernetes' own; requests of people and nodes have ours.
func certificateKinds() []*registry.Kind {
	gv := v1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: gv, Name: "ClusterTrustBundle", Plural: TrustBundles, Singular: "clustertrustbundle",
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, err := bundle.NewREST(o)
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, nil), nil
			}},
		{GV: gv, Name: "PodCertificateRequest", Plural: PodCertificateRequests, Singular: "podcertificaterequest",
			Namespaced: true,
			Foreign: func(o generic.RESTOptionsGetter) (*registry.Foreign, error) {
				s, status, err := request.NewREST(o, registry.RightsOf(o), clock.RealClock{})
				if err != nil {
					return nil, err
				}
				return opened(s.Store, s, status), nil
			}},
	}
}
