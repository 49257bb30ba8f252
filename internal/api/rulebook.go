// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/features"
)

// Rulebook holds the rules of every kind that is served, without a server: test/agree compares them with Kubernetes' own.
type Rulebook struct {
	Codecs runtime.NegotiatedSerializer // decodes and applies the defaults
	Kinds  []Rules
}

// Rules are those of one kind: what a request to create or to change an object goes through between admission and the store.
type Rules struct {
	Kind       schema.GroupVersionKind
	Namespaced bool
	New        func() runtime.Object
	Create     rest.RESTCreateStrategy
	Updates    map[string]rest.RESTUpdateStrategy // by subresource; "" is the object itself
}

// NewRulebook makes the rules as they are with these feature gates.
func NewRulebook(gates *features.Gates) (*Rulebook, error) {
	s, err := newSchemes()
	if err != nil {
		return nil, err
	}
	book := &Rulebook{Codecs: s.codecs}
	for _, k := range kinds(gates) {
		main := newStrategy(s, k, k.rules)
		r := Rules{Kind: k.gv.WithKind(k.name), Namespaced: k.namespaced, New: k.object, Create: main,
			Updates: map[string]rest.RESTUpdateStrategy{"": main}}
		if k.status != nil {
			r.Updates["status"] = newStrategy(s, k, *k.status)
		}
		switch {
		case k.name == "Pod" && k.gv == corev1.SchemeGroupVersion:
			r.Updates["ephemeralcontainers"] = newStrategy(s, k, podEphemeralRules())
		case k.plural == requestsPlural:
			r.Updates["approval"] = newStrategy(s, k, certificateApprovalRules())
		}
		book.Kinds = append(book.Kinds, r)
	}
	return book, nil
}
