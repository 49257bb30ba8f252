// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
)

// table says who answers for which path. It is not changed once it is made.
type table struct {
	byName  map[string]*route // by the name of the APIService
	byPath  map[string]*route // by "/apis/GROUP/VERSION"
	groups  map[string]group
	ordered []*route
}

// group is what is known of one group by its APIServices.
type group struct {
	described metav1.APIGroup // all versions, whoever answers
	routed    []*route        // those that others answer for
}

// newTable makes the routes of all APIServices; one that has not changed since the table before keeps its route, and
// with it its connections. routed returns nil for those that get none.
func newTable(services map[string]*v1.APIService, before *table, routed func(*v1.APIService) *route) *table {
	t := &table{byName: map[string]*route{}, byPath: map[string]*route{}, groups: map[string]group{}}
	all := []*v1.APIService{}
	for _, s := range services {
		all = append(all, s)
	}
	for _, versions := range helper.SortedByGroupAndVersion(all) {
		g := group{described: describe(versions)}
		for _, s := range versions {
			if s.Spec.Service == nil {
				continue
			}
			r := routed(s)
			if r == nil {
				continue
			}
			if before != nil && before.byName[s.Name].same(r) {
				r = before.byName[s.Name]
			}
			t.byName[s.Name], t.byPath[r.path] = r, r
			g.routed = append(g.routed, r)
			t.ordered = append(t.ordered, r)
		}
		t.groups[versions[0].Spec.Group] = g
	}
	return t
}

// describe is a group as discovery has it, its versions in the order of their priorities.
func describe(versions []*v1.APIService) metav1.APIGroup {
	g := metav1.APIGroup{Name: versions[0].Spec.Group}
	for _, s := range versions {
		gv := schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version}
		g.Versions = append(g.Versions,
			metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// at is the route of a path, or the group that it is the document of.
func (t *table) at(path string) (*route, *metav1.APIGroup) {
	below, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		return nil, nil
	}
	name, below, _ := strings.Cut(below, "/")
	if version, _, _ := strings.Cut(below, "/"); version != "" {
		return t.byPath["/apis/"+name+"/"+version], nil
	}
	if g := t.groups[name]; len(g.routed) > 0 && below == "" {
		return nil, &g.described
	}
	return nil, nil
}
