// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A group is looked at once, however many of its definitions are told of meanwhile; what is made is what they define
// now, and what this server serves itself. WL-08.
func TestWanted(t *testing.T) {
	a := &Aggregator{context: context.Background(), o: Options{Local: []Local{
		{schema.GroupVersion{Group: "autoscaling", Version: "v2"}, 17},
		{schema.GroupVersion{Group: "autoscaling", Version: "v1"}, 17},
		{schema.GroupVersion{Version: "v1"}, 18}}}}
	a.custom.running = true // nobody follows
	a.Custom("boats", []string{"v1", "v2"})
	a.Custom("boats", []string{"v2"})
	if len(a.custom.due) != 1 {
		t.Errorf("due: %v", a.custom.due)
	}
	for name, version := range map[string]int32{"v2.autoscaling": 15, "v1.autoscaling": 14, "v1.": 15,
		"v2.boats": customVersionPriority, "v1.boats": 0, "v2.boat": 0, "v2": 0, "": 0} {
		s := a.wanted(name)
		if s == nil && version != 0 || s != nil && (s.Name != name || s.Spec.VersionPriority != version) {
			t.Errorf("%q: %+v", name, s)
		}
	}
	for group, want := range map[string]bool{"boats": true, "autoscaling": true, "": true, "cars": false} {
		if a.serves(group) != want {
			t.Errorf("group %q is served: %v", group, !want)
		}
	}
}
