// SPDX-License-Identifier: Apache-2.0

package api

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/debugrun"
)

// schemes are the type registries of one server.
type schemes struct {
	*runtime.Scheme                 // what is served and stored: external types, registered as internal (hub) too
	external        *runtime.Scheme // without the hub registrations: names and kinds for OpenAPI
	codecs          serializer.CodecFactory
	params          runtime.ParameterCodec // query parameters of logs, exec, proxies
}

func newSchemes() (*schemes, error) {
	external, err := externalScheme()
	if err != nil {
		return nil, err
	}
	scheme, err := externalScheme()
	if err != nil {
		return nil, err
	}
	for _, add := range []func(*runtime.Scheme) error{addHub, addEventConversions, connect.RegisterConversions, addFieldLabels} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	addDefaults(scheme)
	return &schemes{
		Scheme:   scheme,
		external: external,
		codecs:   serializer.NewCodecFactory(scheme),
		params:   runtime.NewParameterCodec(scheme),
	}, nil
}

func externalScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, eventsv1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme,
		policyv1.AddToScheme, authenticationv1.AddToScheme, debugrun.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	// Options and Status are the same types in every group; "v1" is the group-less home kube-apiserver gives them.
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}

// addHub registers the external types as the internal version of their group: the library converts every object to the
// internal version and back, which costs nothing when both are the same type.
func addHub(scheme *runtime.Scheme) error {
	for _, gv := range []schema.GroupVersion{
		corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion,
		policyv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion, debugrun.GroupVersion(),
	} {
		hub := schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}
		for kind := range scheme.KnownTypes(gv) {
			if isMetaKind(kind) {
				continue
			}
			obj, err := scheme.New(gv.WithKind(kind))
			if err != nil {
				return err
			}
			scheme.AddKnownTypeWithName(hub.WithKind(kind), obj)
		}
		if err := scheme.SetVersionPriority(gv); err != nil {
			return err
		}
	}
	// Both event APIs show one stored kind, the core/v1 Event.
	hub := schema.GroupVersion{Group: eventsv1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypeWithName(hub.WithKind("Event"), &corev1.Event{})
	scheme.AddKnownTypeWithName(hub.WithKind("EventList"), &corev1.EventList{})
	return scheme.SetVersionPriority(eventsv1.SchemeGroupVersion)
}

// isMetaKind tells the options and helper kinds that AddToGroupVersion puts in every group.
func isMetaKind(kind string) bool {
	switch kind {
	case "WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "Table",
		"PartialObjectMetadata", "PartialObjectMetadataList", "Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList":
		return true
	}
	return false
}
