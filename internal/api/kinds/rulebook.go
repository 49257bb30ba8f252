// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/features"
)

// Rulebook holds the rules of every kind that is served by ours, without a server: test/agree compares them with
// Kubernetes' own.
type Rulebook struct {
	Codecs runtime.NegotiatedSerializer // decodes and applies the defaults
	Kinds  []Rules
}

// Rules are those of one kind: what a request to create or to change an object goes through between admission and the
// store.
type Rules struct {
	Kind       schema.GroupVersionKind
	Namespaced bool
	New        func() runtime.Object
	Create     rest.RESTCreateStrategy
	Updates    map[string]rest.RESTUpdateStrategy // by subresource; "" is the object itself
}

// NewRulebook makes the rules as they are with these feature gates.
func NewRulebook(gates *features.Gates) (*Rulebook, error) {
	s, err := schemes.New()
	if err != nil {
		return nil, err
	}
	book := &Rulebook{Codecs: s.Codecs}
	for _, k := range All(gates) {
		if k.Foreign != nil {
			continue // its rules are Kubernetes' own: there is nothing to compare
		}
		main := registry.NewStrategy(s, k, k.Rules)
		r := Rules{Kind: k.GV.WithKind(k.Name), Namespaced: k.Namespaced, New: k.Object, Create: main,
			Updates: map[string]rest.RESTUpdateStrategy{"": main}}
		if k.Status != nil {
			r.Updates["status"] = registry.NewStrategy(s, k, *k.Status)
		}
		switch {
		case k.Name == "Pod" && k.GV == corev1.SchemeGroupVersion:
			r.Updates["ephemeralcontainers"] = registry.NewStrategy(s, k, PodEphemeralRules())
		case k.Plural == CertificateRequests:
			r.Updates["approval"] = registry.NewStrategy(s, k, certificateApprovalRules())
		}
		book.Kinds = append(book.Kinds, r)
	}
	return book, nil
}
