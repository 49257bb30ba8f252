// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

const (
	name  = "sidecar-injector"
	label = "sidecar-injector.example/inject" // pods with this label, set to "true", get the sidecar
	// validity of the certificates. Apply the manifests anew before it is over.
	validity = 365 * 24 * time.Hour
)

// manifests prints what has to be applied: the certificate's Secret, the Service, the injector's Pod, and the
// configuration that has the API server ask it.
func manifests(out io.Writer, namespace, image string) error {
	c, err := newCertificates(name + "." + namespace + ".svc")
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": name}}
	for _, obj := range []any{
		&corev1.Secret{TypeMeta: kind("v1", "Secret"), ObjectMeta: meta, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: c.cert, corev1.TLSPrivateKeyKey: c.key}},
		&corev1.Service{TypeMeta: kind("v1", "Service"), ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}}},
		injectorPod(meta, image),
		configuration(namespace, c.ca),
	} {
		text, err := yaml.Marshal(obj)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

func kind(version, name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: name}
}

func injectorPod(meta metav1.ObjectMeta, image string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: kind("v1", "Pod"), ObjectMeta: meta, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "webhook", Image: image, Args: []string{"serve", "-image", image},
			ImagePullPolicy: corev1.PullIfNotPresent, VolumeMounts: []corev1.VolumeMount{{Name: "certs",
				MountPath: "/certs", ReadOnly: true}},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Path: "/ready",
					Port: intstr.FromInt32(8443)}}},
		}},
		Volumes: []corev1.Volume{{Name: "certs",
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: meta.Name}}}},
	}}
}

// configuration asks about new pods that want the sidecar; if nobody answers, they are not created. The injector's own
// pod has no such label: it must not need itself to start.
func configuration(namespace string, ca []byte) *admissionv1.MutatingWebhookConfiguration {
	none, path := admissionv1.SideEffectClassNone, "/inject"
	return &admissionv1.MutatingWebhookConfiguration{
		TypeMeta:   kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + namespace},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "inject.sidecar-injector.example",
			ClientConfig: admissionv1.WebhookClientConfig{CABundle: ca,
				Service: &admissionv1.ServiceReference{Namespace: namespace, Name: name, Path: &path}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"pods"}}}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}},
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// certificates are a server's, and the authority that signed it. The authority's key is forgotten at once.
type certificates struct{ ca, cert, key []byte }

func newCertificates(host string) (*certificates, error) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name + " CA"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(validity), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca, err := sign(authority, authority, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, key.Public(), caKey)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &certificates{ca: ca, cert: cert, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
