// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/debug/options"
	"github.com/wherryproject/wherry/internal/podspec"
)

// allowed says whether a client may run a command from an image in a pod, and what is run. An image exec is judged as
// the update of pods/ephemeralcontainers that would bring the same image into the pod (IX-07); nothing of it is stored.
// What a mutating plug-in makes of the image and when it is pulled is what runs; whatever else one changes cannot be
// done, so the validating ones judge what is really going to run.
func (s *Server) allowed(ctx context.Context, pod *corev1.Pod, run options.ImageRun) (options.ImageRun, error) {
	if err := s.permit.ImageExec(ctx, pod.Name); err != nil {
		return run, err
	}
	asked := podspec.NewImageExecContainer(pod, podspec.ImageExec{
		Image: run.Image, Command: run.Command, Target: run.Container, PullPolicy: corev1.PullPolicy(run.PullPolicy),
		User: run.User, UserOf: userOf(run),
	})
	now := withEphemeral(pod, asked)
	before := podspec.FindEphemeral(now, asked.Name).ImagePullPolicy
	if err := s.permit.Admit(ctx, now, pod); err != nil {
		return run, err
	}
	changed := podspec.FindEphemeral(now, asked.Name)
	if changed == nil || changed.Image == "" {
		return run, apierrors.NewForbidden(corev1.Resource("pods/exec"), pod.Name,
			fmt.Errorf("admission took the image exec's container, or its image, away"))
	}
	run.Image, asked.Image = changed.Image, changed.Image
	if changed.ImagePullPolicy != before {
		run.PullPolicy, asked.ImagePullPolicy = string(changed.ImagePullPolicy), changed.ImagePullPolicy
	}
	return run, s.permit.Validate(ctx, withEphemeral(pod, asked), pod)
}

// userOf is the container whose user an image exec takes where it may not be root.
func userOf(run options.ImageRun) string {
	if run.UserOf != "" {
		return run.UserOf
	}
	return run.Container
}

// withEphemeral is a pod with one more ephemeral container, as it would be stored.
func withEphemeral(pod *corev1.Pod, c corev1.EphemeralContainer) *corev1.Pod {
	now := pod.DeepCopy()
	now.Spec.EphemeralContainers = append(now.Spec.EphemeralContainers, *c.DeepCopy())
	podspec.SetDefaults(now)
	return now
}
