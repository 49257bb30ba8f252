// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// User is whom a container's processes run as. Group is nil where only the user is known.
type User struct {
	ID    int64
	Group *int64
}

// NeedsUser tells whether a debugger may not run as root and nothing says who it is to be: neither it nor the pod names
// a user, and its image names root, nobody, or somebody of whom it cannot be told whether that is root. (Pure.)
func NeedsUser(pod *corev1.Pod, c *corev1.Container, kind podspec.Kind, image *runtimeapi.Image) bool {
	sc, ps := c.SecurityContext, pod.Spec.SecurityContext
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	if ps == nil {
		ps = &corev1.PodSecurityContext{}
	}
	return kind == podspec.Ephemeral && isTrue(first(sc.RunAsNonRoot, ps.RunAsNonRoot)) &&
		first(sc.RunAsUser, ps.RunAsUser) == nil &&
		image.GetUid().GetValue() == 0
}

// ofUser is whom a debugger runs as that looks at the pod's containers: as the one that is to be looked at, who may
// read its files and see its processes, else as another of the pod's, the mains first. known are the users of those
// that the runtime has. Without any the toolbox is nobody, as which it works; whether another image does its user must
// say. (Pure.)
func ofUser(pod *corev1.Pod, target string, known map[string]User, image string) *User {
	var found *User
	for _, want := range []func(podspec.ContainerRef) bool{
		func(ref podspec.ContainerRef) bool { return ref.Container.Name == target },
		func(ref podspec.ContainerRef) bool { return ref.Kind == podspec.Main },
		func(ref podspec.ContainerRef) bool { return ref.Kind != podspec.Ephemeral },
	} {
		for ref := range podspec.Containers(&pod.Spec) {
			if found == nil && want(ref) {
				found = userOf(ref.Container, known)
			}
		}
	}
	if found == nil && podspec.IsToolbox(image) {
		return &User{ID: anyUser}
	}
	return found
}

// userOf is the user of one container, if it is known and not root.
func userOf(c *corev1.Container, known map[string]User) *User {
	if u, ok := known[c.Name]; ok && u.ID > 0 {
		return &u
	}
	if sc := c.SecurityContext; sc != nil && sc.RunAsUser != nil && *sc.RunAsUser > 0 {
		return &User{ID: *sc.RunAsUser, Group: sc.RunAsGroup}
	}
	return nil
}

// DebugUser finds whom a debugger runs as that needs a user ([NeedsUser]): the runtime knows the users of its
// containers, also of those that have ended, and of their images.
func (r *Runner) DebugUser(ctx context.Context, pod *corev1.Pod, seen plan.Seen, target, image string) *User {
	known, attempt := map[string]User{}, map[string]uint32{}
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if _, had := known[c.Name]; had && c.Attempt < attempt[c.Name] {
			continue
		}
		if u := r.runtimeUser(ctx, c); u != nil {
			known[c.Name], attempt[c.Name] = *u, c.Attempt
		}
	}
	return ofUser(pod, target, known, image)
}

func (r *Runner) runtimeUser(ctx context.Context, c *plan.Container) *User {
	s, err := r.CRI.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.ID})
	if err != nil {
		return nil // it has gone meanwhile, and another one may tell
	}
	if u := s.GetStatus().GetUser().GetLinux(); u != nil {
		return &User{ID: u.GetUid(), Group: &u.Gid}
	}
	image, err := r.imageOf(ctx, c.ImageID)
	if err != nil || image.GetUid() == nil {
		return nil
	}
	return &User{ID: image.GetUid().GetValue()}
}
