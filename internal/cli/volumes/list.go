// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Volume is a claim with its volume, or a volume without a claim.
type Volume struct {
	Namespace string   `json:"namespace,omitempty"`
	Claim     string   `json:"claim,omitempty"`
	Volume    string   `json:"volume,omitempty"`
	Status    string   `json:"status"`
	Class     string   `json:"class,omitempty"`
	Policy    string   `json:"reclaimPolicy,omitempty"`
	Size      string   `json:"size,omitempty"`
	Used      *uint64  `json:"usedBytes,omitempty"` // absent while no pod has it mounted
	Capacity  *uint64  `json:"capacityBytes,omitempty"`
	Pods      []string `json:"pods,omitempty"`
	Where     string   `json:"where,omitempty"` // a path, or the kind of volume
}

// found is what the API server and the nodes have.
type found struct {
	claims  []corev1.PersistentVolumeClaim
	volumes []corev1.PersistentVolume
	pods    []corev1.Pod
	stats   []statsapi.PodStats
}

// list puts it together: claims by namespace and name, then volumes that belong to none of them. (Pure.)
func list(f found, lonely bool) []Volume {
	byName := map[string]*corev1.PersistentVolume{}
	for i := range f.volumes {
		byName[f.volumes[i].Name] = &f.volumes[i]
	}
	out := []Volume{}
	for i := range f.claims {
		c := &f.claims[i]
		v := Volume{Namespace: c.Namespace, Claim: c.Name, Volume: c.Spec.VolumeName, Status: string(c.Status.Phase),
			Pods: users(f.pods, c)}
		if c.Spec.StorageClassName != nil {
			v.Class = *c.Spec.StorageClassName
		}
		size, ok := c.Status.Capacity[corev1.ResourceStorage]
		if !ok {
			size = c.Spec.Resources.Requests[corev1.ResourceStorage]
		}
		v.Size = size.String()
		if pv := byName[c.Spec.VolumeName]; pv != nil {
			v.describe(pv)
			delete(byName, pv.Name)
		}
		v.Used, v.Capacity = use(f.stats, c)
		out = append(out, v)
	}
	if lonely {
		for i := range f.volumes {
			if pv := byName[f.volumes[i].Name]; pv != nil {
				size := pv.Spec.Capacity[corev1.ResourceStorage]
				v := Volume{Volume: pv.Name, Status: string(pv.Status.Phase), Class: pv.Spec.StorageClassName,
					Size: size.String()}
				v.describe(pv)
				out = append(out, v)
			}
		}
	}
	slices.SortFunc(out, func(a, b Volume) int {
		return cmp.Or(cmp.Compare(b2i(a.Claim == ""), b2i(b.Claim == "")), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Volume, b.Volume))
	})
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (v *Volume) describe(pv *corev1.PersistentVolume) {
	v.Policy = string(pv.Spec.PersistentVolumeReclaimPolicy)
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.Local != nil:
		v.Where = s.Local.Path
	case s.HostPath != nil:
		v.Where = s.HostPath.Path
	case s.NFS != nil:
		v.Where = s.NFS.Server + ":" + s.NFS.Path
	case s.CSI != nil:
		v.Where = s.CSI.Driver
	default:
		v.Where = "other"
	}
}

// users are the pods that have a claim.
func users(pods []corev1.Pod, c *corev1.PersistentVolumeClaim) (all []string) {
	for i := range pods {
		if pods[i].Namespace == c.Namespace && slices.Contains(podspec.ClaimNames(&pods[i]), c.Name) {
			all = append(all, pods[i].Name)
		}
	}
	slices.Sort(all)
	return all
}

// use is what a node measured of a claim's volume.
func use(pods []statsapi.PodStats, c *corev1.PersistentVolumeClaim) (used, capacity *uint64) {
	for i := range pods {
		for _, v := range pods[i].VolumeStats {
			if v.PVCRef != nil && v.PVCRef.Namespace == c.Namespace && v.PVCRef.Name == c.Name {
				return v.UsedBytes, v.CapacityBytes
			}
		}
	}
	return nil, nil
}
