// SPDX-License-Identifier: Apache-2.0

package schemes

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/imagepolicy"
	"github.com/wherryproject/wherry/internal/api/upstream/types"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/debug/options"
)

// Schemes are the type registries of one server.
type Schemes struct {
	*runtime.Scheme                 // what is served and stored: external types, registered as internal (hub) too
	External        *runtime.Scheme // without the hub registrations: names and kinds for OpenAPI
	Codecs          serializer.CodecFactory
	Params          runtime.ParameterCodec // query parameters of logs, exec, proxies
}

// New registers every type that is served, with its defaults and conversions.
func New() (*Schemes, error) {
	external, err := externalScheme()
	if err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(external); err != nil { // served by the library, described with ours
		return nil, err
	}
	scheme, err := externalScheme()
	if err != nil {
		return nil, err
	}
	for _, add := range []func(*runtime.Scheme) error{addHub, addEventConversions, connect.RegisterConversions, options.Register,
		addFieldLabels, addCopies} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	addDefaults(scheme)
	return &Schemes{
		Scheme:   scheme,
		External: external,
		Codecs:   serializer.NewCodecFactory(scheme),
		Params:   runtime.NewParameterCodec(scheme),
	}, nil
}

// Versioned is an object in a version that clients know, if it has a form of its own inside the server.
func (s *Schemes) Versioned(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	kinds, _, err := s.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if k.GroupVersion() == gv {
			return obj, nil
		}
	}
	return s.ConvertToVersion(obj, gv)
}

// APIGroup is one version of one API group that the server has types of.
type APIGroup struct {
	GV  schema.GroupVersion
	Add func(*runtime.Scheme) error
	Hub func(*runtime.Scheme) error // of kinds whose rules are Kubernetes' own; nil: there are none
}

// Groups are all of them, in the order of discovery: where two groups have a kind of the same name, clients take the
// first. The first version of a group is the preferred one.
func Groups() []APIGroup {
	return []APIGroup{
		{corev1.SchemeGroupVersion, corev1.AddToScheme, types.Core},
		{appsv1.SchemeGroupVersion, appsv1.AddToScheme, types.Apps},
		{authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme, nil},
		{authorizationv1.SchemeGroupVersion, authorizationv1.AddToScheme, nil},
		{autoscalingv2.SchemeGroupVersion, autoscalingv2.AddToScheme, types.Autoscaling},
		{autoscalingv1.SchemeGroupVersion, autoscalingv1.AddToScheme, nil},
		{batchv1.SchemeGroupVersion, batchv1.AddToScheme, types.Batch},
		{certificatesv1.SchemeGroupVersion, certificatesv1.AddToScheme, types.Certificates},
		{coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme, nil},
		{discoveryv1.SchemeGroupVersion, discoveryv1.AddToScheme, nil},
		{networkingv1.SchemeGroupVersion, networkingv1.AddToScheme, types.Networking},
		{nodev1.SchemeGroupVersion, nodev1.AddToScheme, nil},
		{policyv1.SchemeGroupVersion, policyv1.AddToScheme, types.Policy},
		{rbacv1.SchemeGroupVersion, rbacv1.AddToScheme, nil},
		{resourcev1.SchemeGroupVersion, resourcev1.AddToScheme, types.Resource},
		{schedulingv1.SchemeGroupVersion, schedulingv1.AddToScheme, nil},
		{storagev1.SchemeGroupVersion, storagev1.AddToScheme, types.Storage},
		{storagemigrationv1.SchemeGroupVersion, storagemigrationv1.AddToScheme, types.StorageMigration},
		{flowcontrolv1.SchemeGroupVersion, flowcontrolv1.AddToScheme, nil},
		{admissionregistrationv1.SchemeGroupVersion, admissionregistrationv1.AddToScheme, nil},
		{eventsv1.SchemeGroupVersion, eventsv1.AddToScheme, nil},
		{metricsv1beta1.SchemeGroupVersion, metricsv1beta1.AddToScheme, nil},
		{debugrun.GroupVersion(), debugrun.AddToScheme, nil},
		{imagepolicy.GroupVersion(), imagepolicy.AddToScheme, nil},
		{apiregistrationv1.SchemeGroupVersion, apiregistrationv1.AddToScheme, types.Registration},
	}
}

// VersionsOf are the versions of a group, the preferred one first.
func VersionsOf(group string) (versions []schema.GroupVersion) {
	for _, g := range Groups() {
		if g.GV.Group == group {
			versions = append(versions, g.GV)
		}
	}
	return versions
}

// IsOwn recognises the groups whose types are ours: protobuf does not know them.
func IsOwn(gv schema.GroupVersion) bool {
	return gv == debugrun.GroupVersion() || gv == imagepolicy.GroupVersion()
}

func externalScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, g := range Groups() {
		if err := addTypes(scheme, g); err != nil {
			return nil, err
		}
	}
	// Options and Status are the same types in every group; "v1" is the group-less home kube-apiserver gives them.
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}

// addTypes registers the types of a group and nothing else. Adding a group to a scheme adds the defaults and
// conversions of Kubernetes, too, once those are linked into the program: they put themselves on the list of the types'
// package.
func addTypes(scheme *runtime.Scheme, g APIGroup) error {
	all := runtime.NewScheme()
	if err := g.Add(all); err != nil {
		return err
	}
	for kind := range all.KnownTypes(g.GV) {
		if isMetaKind(kind) {
			continue
		}
		obj, err := all.New(g.GV.WithKind(kind))
		if err != nil {
			return err
		}
		scheme.AddKnownTypeWithName(g.GV.WithKind(kind), obj)
	}
	metav1.AddToGroupVersion(scheme, g.GV)
	return nil
}

// addHub registers the external types as the internal version of their group: the library converts every object to the
// internal version and back, which costs nothing when both are the same type. Kinds whose rules are Kubernetes' own
// have its internal types.
func addHub(scheme *runtime.Scheme) error {
	for _, g := range Groups() {
		gv := g.GV
		if gv == eventsv1.SchemeGroupVersion {
			continue
		}
		hub := schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}
		if g.Hub != nil {
			if err := g.Hub(scheme); err != nil {
				return err
			}
		}
		for kind := range scheme.KnownTypes(gv) {
			if isMetaKind(kind) || scheme.Recognizes(hub.WithKind(kind)) {
				continue
			}
			obj, err := scheme.New(gv.WithKind(kind))
			if err != nil {
				return err
			}
			scheme.AddKnownTypeWithName(hub.WithKind(kind), obj)
		}
		if err := scheme.SetVersionPriority(VersionsOf(gv.Group)...); err != nil {
			return err
		}
	}
	// Both event APIs show one stored kind, the core/v1 Event.
	hub := schema.GroupVersion{Group: eventsv1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypeWithName(hub.WithKind("Event"), &corev1.Event{})
	scheme.AddKnownTypeWithName(hub.WithKind("EventList"), &corev1.EventList{})
	return scheme.SetVersionPriority(eventsv1.SchemeGroupVersion)
}

// isMetaKind recognises the options and helper kinds that AddToGroupVersion puts in every group.
func isMetaKind(kind string) bool {
	switch kind {
	case "WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions",
		"Table",
		"PartialObjectMetadata", "PartialObjectMetadataList", "Status", "APIVersions", "APIGroupList", "APIGroup",
		"APIResourceList":
		return true
	}
	return false
}
