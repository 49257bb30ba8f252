// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// ImageAllowed implements connect.Debugging: an image exec is judged as the update of pods/ephemeralcontainers that
// would bring the same image into the pod (IX-07). Nothing of it is stored. What a mutating plug-in makes of the image
// and when it is pulled is what runs; whatever else one changes cannot be done, so the validating ones judge what is
// really going to run. Before, it takes the right to exec in the pod and that of image exec itself
// (docs/decisions/013-who-may-debug.md).
func (d *Debugger) ImageAllowed(ctx context.Context, pod *corev1.Pod, run connect.ImageRun) (connect.ImageRun, error) {
	if err := d.imageExecOn(pod.Name); err != nil {
		return run, err
	}
	if err := d.allowed(ctx, pod.Name, rightTo("create", "exec"),
		right{"create", debugrun.GroupVersion().Group, rbac.ImageExecs, ""}); err != nil {
		return run, err
	}
	asked := podspec.NewImageExecContainer(pod, podspec.ImageExec{
		Image: run.Image, Command: run.Command, Target: run.Container, PullPolicy: corev1.PullPolicy(run.PullPolicy),
		User: run.User, UserOf: userOf(run),
	})
	if m, ok := d.admission.(admission.MutationInterface); ok && m.Handles(admission.Update) {
		now := withEphemeral(pod, asked)
		before := ephemeralNamed(now, asked.Name).ImagePullPolicy
		if err := m.Admit(ctx, d.attributes(ctx, now, pod), d.objects()); err != nil {
			return run, err
		}
		changed := ephemeralNamed(now, asked.Name)
		if changed == nil || changed.Image == "" {
			return run, apierrors.NewForbidden(corev1.Resource("pods/exec"), pod.Name,
				fmt.Errorf("admission took the image exec's container, or its image, away"))
		}
		run.Image, asked.Image = changed.Image, changed.Image
		if changed.ImagePullPolicy != before {
			run.PullPolicy, asked.ImagePullPolicy = string(changed.ImagePullPolicy), changed.ImagePullPolicy
		}
	}
	if v, ok := d.admission.(admission.ValidationInterface); ok && v.Handles(admission.Update) {
		if err := v.Validate(ctx, d.attributes(ctx, withEphemeral(pod, asked), pod), d.objects()); err != nil {
			return run, err
		}
	}
	return run, nil
}

// userOf is the container whose user an image exec takes where it may not be root.
func userOf(run connect.ImageRun) string {
	if run.UserOf != "" {
		return run.UserOf
	}
	return run.Container
}

// objects is how admission converts what it is shown.
func (d *Debugger) objects() admission.ObjectInterfaces {
	return admission.NewObjectInterfacesFromScheme(d.schemes.Scheme)
}

// withEphemeral is a pod with one more ephemeral container, as it would be stored.
func withEphemeral(pod *corev1.Pod, c corev1.EphemeralContainer) *corev1.Pod {
	now := pod.DeepCopy()
	now.Spec.EphemeralContainers = append(now.Spec.EphemeralContainers, *c.DeepCopy())
	podspec.SetDefaults(now)
	return now
}

func ephemeralNamed(pod *corev1.Pod, name string) *corev1.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return &pod.Spec.EphemeralContainers[i]
		}
	}
	return nil
}

// withoutEphemeral is what admission is told was there before a debug container is made: one whose name is used again
// is a new container to it, whatever it has in common with the old one.
func withoutEphemeral(old runtime.Object, name string) runtime.Object {
	pod, ok := old.(*corev1.Pod)
	if !ok || pod == nil || ephemeralNamed(pod, name) == nil {
		return old
	}
	was := pod.DeepCopy()
	was.Spec.EphemeralContainers = slices.DeleteFunc(was.Spec.EphemeralContainers,
		func(c corev1.EphemeralContainer) bool { return c.Name == name })
	return was
}
