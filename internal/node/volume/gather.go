// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// gather reads from Sources what the volume is to show.
func (m *Manager) gather(ctx context.Context, pod *corev1.Pod, v corev1.Volume) (payload, error) {
	p := payload{}
	var err error
	switch {
	case v.ConfigMap != nil:
		s := v.ConfigMap
		err = m.configMap(ctx, p, pod.Namespace, selection{name: s.Name, items: s.Items,
			defaultMode: modeOr(s.DefaultMode), optional: isTrue(s.Optional)})
	case v.Secret != nil:
		s := v.Secret
		err = m.secret(ctx, p, pod.Namespace, selection{name: s.SecretName, items: s.Items,
			defaultMode: modeOr(s.DefaultMode), optional: isTrue(s.Optional)})
	case v.DownwardAPI != nil:
		err = p.downward(pod, v.DownwardAPI.Items, modeOr(v.DownwardAPI.DefaultMode), m.cfg.Allocatable)
	case v.Projected != nil:
		err = m.projected(ctx, p, pod, v)
	}
	if err == nil {
		err = p.check()
	}
	return p, err
}

func (m *Manager) configMap(ctx context.Context, p payload, ns string, s selection) error {
	s.kind = "configmap"
	cm, err := m.cfg.Sources.ConfigMap(ctx, ns, s.name)
	if err == nil && cm == nil {
		err = apierrors.NewNotFound(corev1.Resource("configmap"), s.name)
	}
	if err != nil {
		return absent(err, s)
	}
	return p.pick(configData(cm), s)
}

func (m *Manager) secret(ctx context.Context, p payload, ns string, s selection) error {
	s.kind = "secret"
	secret, err := m.cfg.Sources.Secret(ctx, ns, s.name)
	if err == nil && secret == nil {
		err = apierrors.NewNotFound(corev1.Resource("secret"), s.name)
	}
	if err != nil {
		return absent(err, s)
	}
	return p.pick(secret.Data, s)
}

// absent lets an optional object be missing; an object that is missing is always reported in the kubelet's words,
// whatever the source's.
func absent(err error, s selection) error {
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case s.optional:
		return nil
	}
	return apierrors.NewNotFound(corev1.Resource(s.kind), s.name)
}

// projected gathers all sources, in order; where two name the same file the later is seen.
func (m *Manager) projected(ctx context.Context, p payload, pod *corev1.Pod, v corev1.Volume) error {
	mode := modeOr(v.Projected.DefaultMode)
	var errs []error
	for i, src := range v.Projected.Sources {
		var err error
		switch {
		case src.ConfigMap != nil:
			s := src.ConfigMap
			err = m.configMap(ctx, p, pod.Namespace, selection{name: s.Name, items: s.Items, defaultMode: mode,
				optional: isTrue(s.Optional)})
		case src.Secret != nil:
			s := src.Secret
			err = m.secret(ctx, p, pod.Namespace, selection{name: s.Name, items: s.Items, defaultMode: mode,
				optional: isTrue(s.Optional)})
		case src.DownwardAPI != nil:
			err = p.downward(pod, src.DownwardAPI.Items, mode, m.cfg.Allocatable)
		case src.ServiceAccountToken != nil:
			err = m.token(ctx, p, pod, src.ServiceAccountToken, mode)
		case src.ClusterTrustBundle != nil:
			err = m.trustBundle(ctx, p, pod, src.ClusterTrustBundle, mode)
		case src.PodCertificate != nil:
			err = m.podCertificate(ctx, p, pod, v, i)
		default:
			err = fmt.Errorf("sources[%d] of the projected volume is of a type that is not supported yet", i)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// token files hold a secret and have an owner when it is known who reads them.
func (m *Manager) token(ctx context.Context, p payload, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection,
	mode int32) error {
	token, expires, err := m.cfg.Sources.ServiceAccountToken(ctx, pod, s)
	if err != nil {
		return fmt.Errorf("failed to fetch token: %w", err)
	}
	if !expires.IsZero() && time.Until(expires) <= 0 {
		m.cfg.Logger.Warn("service account token has expired and there is no replacement", "pod",
			pod.Namespace+"/"+pod.Name, "expired", expires)
	}
	return p.add(s.Path, credential(pod, []byte(token), mode))
}

// credential is a file of which it is known who reads it, if that is known of the pod.
func credential(pod *corev1.Pod, data []byte, mode int32) file {
	user := tokenUser(pod)
	if user != nil || fsGroup(pod) != nil {
		mode = 0o600 // an fsGroup's read permission comes on top
	}
	return file{data: data, mode: perm(mode), uid: user}
}

func (m *Manager) trustBundle(ctx context.Context, p payload, pod *corev1.Pod, s *corev1.ClusterTrustBundleProjection,
	mode int32) error {
	data, err := m.cfg.Sources.TrustBundle(ctx, s)
	if err != nil {
		return err
	}
	return p.add(s.Path, credential(pod, data, mode))
}

// podCertificate waits for the certificate before the volume has ever been shown; later the one before stays.
func (m *Manager) podCertificate(ctx context.Context, p payload, pod *corev1.Pod, v corev1.Volume, i int) error {
	s, mode := v.Projected.Sources[i].PodCertificate, modeOr(v.Projected.DefaultMode)
	_, never := os.Lstat(filepath.Join(m.volumeDir(pod.UID, v), shown))
	key, chain, err := m.cfg.Sources.PodCertificate(ctx, pod, v.Name, i, never != nil)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path string
		data []byte
	}{
		{s.CredentialBundlePath, slices.Concat(key, chain)},
		{s.KeyPath, key},
		{s.CertificateChainPath, chain},
	} {
		if f.path == "" {
			continue
		}
		if err := p.add(f.path, credential(pod, f.data, mode)); err != nil {
			return err
		}
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }
