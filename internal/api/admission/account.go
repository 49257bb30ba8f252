// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/nodeauth"
	"github.com/wherryproject/wherry/internal/podspec"
)

const (
	DefaultAccount = "default"
	// accountWait is how long a pod waits for its namespace's default account, which a controller makes after the
	// namespace.
	accountWait = 3 * time.Second
	accountPoll = 20 * time.Millisecond

	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenVolumePrefix = "kube-api-access-"
	// tokenSeconds is how long a mounted token lives; the odd number marks tokens nobody asked for by hand.
	tokenSeconds    = 3607
	rootCAConfigMap = "kube-root-ca.crt"
)

// addAccount gives a pod its service account and, unless account or pod say no, the account's token.
func (p *admit) addAccount(ctx context.Context, a admission.Attributes, pod *corev1.Pod) error {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil // the node owns it, and no token either
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = DefaultAccount
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	sa, err := p.waitForAccount(ctx, a.GetNamespace(), pod.Spec.ServiceAccountName)
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("error looking up service account %s/%s: %w", a.GetNamespace(),
			pod.Spec.ServiceAccountName, err))
	}
	if automount(sa, pod) {
		mountToken(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append([]corev1.LocalObjectReference(nil), sa.ImagePullSecrets...)
	}
	return nil
}

// checkMirror keeps what goes by a pod's account from being gone round: a mirror pod is given none, so it may use
// nothing that pods have by their accounts. Anybody who may make pods can call one a mirror pod.
func checkMirror(pod *corev1.Pod) error {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return nil
	}
	for _, ref := range nodeauth.Refs(pod) {
		switch ref.Kind {
		case nodeauth.ServiceAccount:
			return errors.New("a mirror pod may not reference service accounts")
		case nodeauth.Secret:
			return errors.New("a mirror pod may not reference secrets")
		case nodeauth.Pod, nodeauth.ConfigMap:
		}
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].Projected; v != nil &&
			slices.ContainsFunc(v.Sources,
				func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			return errors.New("a mirror pod may not use ServiceAccountToken volume projections")
		}
	}
	return nil
}

func (p *admit) waitForAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	sa, err := p.account(ctx, namespace, name)
	if name != DefaultAccount || !apierrors.IsNotFound(err) {
		return sa, err
	}
	ctx, cancel := context.WithTimeout(ctx, accountWait)
	defer cancel()
	tick := time.NewTicker(accountPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
			if sa, again := p.account(ctx, namespace, name); !apierrors.IsNotFound(again) && ctx.Err() == nil {
				return sa, again
			}
		}
	}
}

func automount(sa *corev1.ServiceAccount, pod *corev1.Pod) bool {
	switch {
	case pod.Spec.AutomountServiceAccountToken != nil:
		return *pod.Spec.AutomountServiceAccountToken
	case sa.AutomountServiceAccountToken != nil:
		return *sa.AutomountServiceAccountToken
	}
	return true
}

// mountToken adds the token volume and mounts it in every container that has nothing at its path yet.
func mountToken(pod *corev1.Pod) {
	name, have := "", false
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; strings.HasPrefix(v.Name, tokenVolumePrefix) && v.Projected != nil {
			name, have = v.Name, true
			break
		}
	}
	if !have {
		name = tokenVolumePrefix + rand.String(5)
	}
	used := false
	for ref := range podspec.OwnContainers(&pod.Spec) {
		c := ref.Container
		if mountsAt(c, tokenMountPath) {
			continue
		}
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true,
			MountPath: tokenMountPath})
		used = true
	}
	if used && !have {
		pod.Spec.Volumes = append(pod.Spec.Volumes, tokenVolume(name))
	}
}

func mountsAt(c *corev1.Container, path string) bool {
	for i := range c.VolumeMounts {
		if c.VolumeMounts[i].MountPath == path {
			return true
		}
	}
	return false
}

func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
				ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCAConfigMap},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
					FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}
