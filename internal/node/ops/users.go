// SPDX-License-Identifier: Apache-2.0

package ops

import (
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/userns"
)

// UsersOf returns the range of IDs of a pod that has users of its own (PL-24), nil for all others. The pod's folder
// must be there.
func (r *Runner) UsersOf(pod *corev1.Pod) (*userns.Range, error) {
	if r.Users == nil || pod.Spec.HostUsers == nil || *pod.Spec.HostUsers {
		return nil, nil
	}
	users, err := r.Users.Take(string(pod.UID))
	if err != nil {
		return nil, err
	}
	return &users, nil
}

// MapMounts has the owners of what is mounted seen through the pod's users: what is root's on the disk is root's in the
// container. Images are the runtime's to map.
func MapMounts(mounts []*runtimeapi.Mount, users *userns.Range) {
	if users == nil {
		return
	}
	for _, m := range mounts {
		m.UidMappings, m.GidMappings = users.Mappings(), users.Mappings()
	}
}

// UserOptions are users in the words of the runtime; nil for those of the machine.
func UserOptions(users *userns.Range) *runtimeapi.UserNamespace {
	if users == nil {
		return nil
	}
	return users.Options()
}
