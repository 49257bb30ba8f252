// SPDX-License-Identifier: Apache-2.0

package customresources

import (
	"context"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/client-go/tools/cache"
)

// customGroups keeps the groups of custom resources in the plain list of groups (/apis); the library does it for the
// aggregated document only.
type customGroups struct {
	crds    listers.CustomResourceDefinitionLister
	groups  discovery.GroupManager
	own     map[string]bool // groups that are always there
	told    Groups
	handler cache.ResourceEventHandlerRegistration
}

func newCustomGroups(informer informers.CustomResourceDefinitionInformer, groups discovery.GroupManager,
	own map[string]bool, told Groups) (*customGroups, error) {
	g := &customGroups{crds: informer.Lister(), groups: groups, own: own, told: told}
	var err error
	g.handler, err = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    g.changed,
		UpdateFunc: func(_, obj any) { g.changed(obj) },
		DeleteFunc: g.changed,
	})
	return g, err
}

// wait returns when every group that was there already is in the list.
func (g *customGroups) wait(ctx context.Context) error {
	select {
	case <-g.handler.HasSyncedChecker().Done():
		g.told.Prune(ctx)
	case <-ctx.Done():
	}
	return nil
}

func (g *customGroups) changed(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || g.own[crd.Spec.Group] {
		return
	}
	all, err := g.crds.List(labels.Everything())
	if err != nil {
		return // a lister over memory has no errors
	}
	group, served := groupOf(crd.Spec.Group, all)
	var versions []string
	for _, v := range group.Versions {
		versions = append(versions, v.Version)
	}
	g.told.Custom(crd.Spec.Group, versions)
	if served {
		g.groups.AddGroup(group)
	} else {
		g.groups.RemoveGroup(crd.Spec.Group)
	}
}

// groupOf describes a group by its established definitions, the version that clients should prefer first; false when
// none of it is served.
func groupOf(name string, crds []*apiextensionsv1.CustomResourceDefinition) (metav1.APIGroup, bool) {
	var versions []string
	for _, crd := range crds {
		if crd.Spec.Group != name || !established(crd) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Served && !slices.Contains(versions, v.Name) {
				versions = append(versions, v.Name)
			}
		}
	}
	if len(versions) == 0 {
		return metav1.APIGroup{}, false
	}
	slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	group := metav1.APIGroup{Name: name}
	for _, v := range versions {
		group.Versions = append(group.Versions,
			metav1.GroupVersionForDiscovery{GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(),
				Version: v})
	}
	group.PreferredVersion = group.Versions[0]
	return group, true
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
