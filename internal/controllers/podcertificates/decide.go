// SPDX-License-Identifier: Apache-2.0

package podcertificates

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Signer is the one whose requests are signed here.
const Signer = "wherry.dev/pod"

// domain is that of the signers that are ours: nobody else answers for them.
const domain = "wherry.dev/"

const (
	// kept is how long requests stay, answered or not: Kubernetes' age.
	kept     = 15 * time.Minute
	lifetime = 24 * time.Hour
	backdate = 2 * time.Minute // for readers whose clock is a little behind; the API allows five minutes
	// mostServices bounds what a certificate names.
	mostServices = 32
)

// Action is what is due for a request.
type Action int

// The actions; Wait is nothing now.
const (
	Wait Action = iota
	Sign
	Deny
	Remove
)

// Decide says what is due for a request at a time, and for Wait when to look again.
func Decide(r *certificatesv1.PodCertificateRequest, now time.Time) (do Action, again time.Time) {
	end := r.CreationTimestamp.Add(kept)
	switch {
	case !now.Before(end):
		return Remove, time.Time{}
	case r.Spec.SignerName == Signer && len(r.Status.Conditions) == 0:
		return Sign, time.Time{}
	case strings.HasPrefix(r.Spec.SignerName, domain) && len(r.Status.Conditions) == 0:
		return Deny, time.Time{}
	}
	return Wait, end
}

// NoSigner refuses a request for a signer of our domain that there is not: nobody would ever answer it.
func NoSigner(name string) *Refusal {
	return &Refusal{certificatesv1.PodCertificateRequestConditionTypeDenied, "UnknownSigner",
		fmt.Sprintf("there is no signer %s here: signerName may be %s, or that of a signer that you run", name, Signer)}
}

// Refusal is why a request is not signed: the condition that says so.
type Refusal struct{ Type, Reason, Message string }

// World is what the API knows of the pod that a request names: nil if there is none.
type World struct {
	Pod      *corev1.Pod
	Services []*corev1.Service // of its namespace
	Domain   string            // of the cluster's names
}

// Template is the certificate for a request, and the key that it is for.
func Template(r *certificatesv1.PodCertificateRequest, w World, now time.Time) (*x509.Certificate, crypto.PublicKey,
	*Refusal) {
	failed := func(reason, format string, args ...any) (*x509.Certificate, crypto.PublicKey, *Refusal) {
		return nil, nil, &Refusal{certificatesv1.PodCertificateRequestConditionTypeFailed, reason,
			fmt.Sprintf(format, args...)}
	}
	s := &r.Spec
	switch {
	case len(s.UnverifiedUserAnnotations) > 0:
		return nil, nil, &Refusal{certificatesv1.PodCertificateRequestConditionTypeDenied,
			certificatesv1.PodCertificateRequestConditionInvalidUserConfig,
			fmt.Sprintf("signer %s knows no userAnnotations: leave out %s", Signer,
				strings.Join(slices.Sorted(maps.Keys(s.UnverifiedUserAnnotations)), ", "))}
	case w.Pod == nil || w.Pod.UID != s.PodUID:
		return failed("PodNotFound", "there is no pod %s/%s with UID %s", r.Namespace, s.PodName, s.PodUID)
	case w.Pod.Spec.ServiceAccountName != s.ServiceAccountName || w.Pod.Spec.NodeName != string(s.NodeName):
		return failed("PodMismatch", "pod %s/%s has account %s and is on node %s; the request says %s and %s",
			r.Namespace, s.PodName, w.Pod.Spec.ServiceAccountName, w.Pod.Spec.NodeName, s.ServiceAccountName,
			s.NodeName)
	}
	csr, err := x509.ParseCertificateRequest(s.StubPKCS10Request)
	if err != nil {
		return failed("InvalidRequest", "stubPKCS10Request: %v", err)
	}
	life := lifetime
	if s.MaxExpirationSeconds != nil {
		life = min(life, time.Duration(*s.MaxExpirationSeconds)*time.Second)
	}
	// Whole seconds: what the status says must be what the certificate says. The whole life counts from NotBefore.
	from := now.Add(-backdate).UTC().Truncate(time.Second)
	return &x509.Certificate{
		NotBefore: from, NotAfter: from.Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{identity(r, w.Domain)},
		DNSNames:    names(w),
	}, csr.PublicKey, nil
}

// identity is the pod's account as a SPIFFE ID.
func identity(r *certificatesv1.PodCertificateRequest, domain string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: domain, Path: "/ns/" + r.Namespace + "/sa/" + r.Spec.ServiceAccountName}
}

// names are those by which clients reach the pod through the services that select it, and its own if it has one. They
// all say the namespace, and that they are a service's: a shorter one means another service in another namespace, or
// somebody's domain.
func names(w World) (all []string) {
	ns := w.Pod.Namespace
	services := slices.Clone(w.Services)
	slices.SortFunc(services, func(a, b *corev1.Service) int { return strings.Compare(a.Name, b.Name) })
	n := 0
	for _, s := range services {
		if len(s.Spec.Selector) == 0 || n == mostServices ||
			!labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.Pod.Labels)) {
			continue
		}
		n++
		full := s.Name + "." + ns + ".svc"
		all = append(all, full, full+"."+w.Domain)
		if h := w.Pod.Spec.Hostname; h != "" && w.Pod.Spec.Subdomain == s.Name {
			all = append(all, h+"."+full, h+"."+full+"."+w.Domain)
		}
	}
	return all
}

// RenewAt is when a certificate is to be asked for anew: when two thirds of its life are over.
func RenewAt(from, to time.Time) time.Time {
	return from.Add(to.Sub(from) * 2 / 3).Truncate(time.Second)
}
