// SPDX-License-Identifier: Apache-2.0

package debugrun

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of the records.
	GroupName = "debug.wherry.dev"
	// Version is the one version of the group.
	Version = "v1"
	// Resource is the plural name of the records.
	Resource = "debugruns"
)

// GroupVersion returns group and version of the records.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &DebugRun{}, &DebugRunList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
