// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func serviceOf(group, version string, priority int32, far bool) *v1.APIService {
	s := &v1.APIService{ObjectMeta: metav1.ObjectMeta{Name: version + "." + group, ResourceVersion: "1"},
		Spec: v1.APIServiceSpec{Group: group, Version: version, GroupPriorityMinimum: 100, VersionPriority: priority}}
	if far {
		s.Spec.Service = &v1.ServiceReference{Namespace: "ns", Name: "other"}
	}
	return s
}

func tableFor(before *table, all ...*v1.APIService) *table {
	services := map[string]*v1.APIService{}
	for _, s := range all {
		services[s.Name] = s
	}
	return newTable(services, before, func(s *v1.APIService) *route {
		if s.Spec.Group == "apps" {
			return nil
		}
		return &route{path: "/apis/" + s.Spec.Group + "/" + s.Spec.Version, service: s}
	})
}

// A path leads to the server whose group and version it is of, and to no other; a group's document is told apart.
// WL-08.
func TestTable(t *testing.T) {
	table := tableFor(nil, serviceOf("boats", "v1", 10, true), serviceOf("boats", "v2", 20, false),
		serviceOf("cars", "v1", 10, false), serviceOf("apps", "v1", 10, true))
	for path, want := range map[string]string{
		"/apis/boats/v1": "v1.boats", "/apis/boats/v1/": "v1.boats", "/apis/boats/v1/namespaces/x/boats": "v1.boats",
		"/apis/boats": "group", "/apis/boats/": "group", "/apis/boats/v2": "", "/apis/boats/v2/boats": "",
		"/apis/boats/v": "", "/apis/boats/v11": "", "/apis/cars": "", "/apis/cars/v1": "", "/apis/apps/v1": "",
		"/apis/apps": "", "/apis": "", "/apis/": "", "/": "", "": "", "/api/v1": "", "//apis/boats/v1": "",
		"/apis//boats/v1": "", "/apis/boats//v1": "", "/apisboats/v1": "", "apis/boats/v1": "",
	} {
		got := ""
		switch r, g := table.at(path); {
		case r != nil:
			got = r.service.Name
		case g != nil && g.Name == "boats":
			got = "group"
		}
		if got != want {
			t.Errorf("%q leads to %q, want %q", path, got, want)
		}
	}
	g := table.groups["boats"].described
	if len(g.Versions) != 2 || g.PreferredVersion.Version != "v2" || g.Versions[1].GroupVersion != "boats/v1" {
		t.Errorf("boats are described as %+v", g)
	}
}

// What has not changed keeps its route, and with it its connections. WL-08.
func TestTableKeepsRoutes(t *testing.T) {
	a, b := serviceOf("a", "v1", 1, true), serviceOf("b", "v1", 1, true)
	before := tableFor(nil, a, b)
	changed := b.DeepCopy()
	changed.ResourceVersion = "2"
	after := tableFor(before, a, changed)
	if after.byName[a.Name] != before.byName[a.Name] {
		t.Error("what has not changed has a new route")
	}
	if after.byName[b.Name] == before.byName[b.Name] || after.byPath["/apis/b/v1"].service != changed {
		t.Error("what has changed has the route of before")
	}
	if len(tableFor(after, a).byPath) != 1 {
		t.Error("what is gone has a route")
	}
}
