// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of the policies.
	GroupName = "policy.wherry.dev"
	// Version is the one version of the group.
	Version = "v1"
	// Resource is the plural name of the policies.
	Resource = "imagepolicies"
)

// GroupVersion returns group and version of the policies.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &ImagePolicy{}, &ImagePolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
