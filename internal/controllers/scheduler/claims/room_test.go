// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// WL-17: a volume is made where its driver has room for it, if the driver counts its room. The claim asks for 2Gi, and
// the node is n1.
func TestRoom(t *testing.T) {
	const none = "node(s) did not have enough free storage"
	on := func(node string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: node}}
	}
	room := func(class, capacity, most string, at *metav1.LabelSelector) []*storagev1.CSIStorageCapacity {
		c := &storagev1.CSIStorageCapacity{StorageClassName: class, NodeTopology: at}
		if capacity != "" {
			c.Capacity = ptr.To(resource.MustParse(capacity))
		}
		if most != "" {
			c.MaximumVolumeSize = ptr.To(resource.MustParse(most))
		}
		return []*storagev1.CSIStorageCapacity{c}
	}
	counts, silent := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}},
		&storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(false)}}
	for name, row := range map[string]struct {
		driver *storagev1.CSIDriver
		room   []*storagev1.CSIStorageCapacity
		change func(*corev1.PersistentVolumeClaim)
		why    string
	}{
		"no driver":               {},
		"a driver that is silent": {driver: silent},
		"nothing published":       {driver: counts, why: none},
		"enough":                  {driver: counts, room: room("local", "2Gi", "", on("n1"))},
		"too little":              {driver: counts, room: room("local", "2047Mi", "", on("n1")), why: none},
		"unknown":                 {driver: counts, room: room("local", "", "", on("n1")), why: none},
		"of another class":        {driver: counts, room: room("fast", "9Gi", "", on("n1")), why: none},
		"on another node":         {driver: counts, room: room("local", "9Gi", "", on("n2")), why: none},
		"on no node":              {driver: counts, room: room("local", "9Gi", "", nil), why: none},
		"on every node":           {driver: counts, room: room("local", "9Gi", "", &metav1.LabelSelector{})},
		"in pieces":               {driver: counts, room: room("local", "9Gi", "1Gi", on("n1")), why: none},
		"in one piece":            {driver: counts, room: room("local", "1Gi", "2Gi", on("n1"))},
		"taken by the volume itself": {driver: counts, room: room("local", "0", "", on("n1")),
			change: selected("n1")},
	} {
		t.Run(name, func(t *testing.T) {
			w := world("local", nil)
			if row.change != nil {
				w = world("local", nil, row.change)
			}
			w.Driver = func(string) *storagev1.CSIDriver { return row.driver }
			w.Room = func() []*storagev1.CSIStorageCapacity { return row.room }
			v := Judge(pod("data"), w)
			if got := v.Fits(node("n1")); got != row.why {
				t.Errorf("%q, want %q", got, row.why)
			}
		})
	}
}
