// SPDX-License-Identifier: Apache-2.0

package types

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/certificates"
	certificatesv1 "k8s.io/kubernetes/pkg/apis/certificates/v1"
)

// Certificates is group certificates.k8s.io without the CertificateSigningRequest, whose rules are ours.
func Certificates(s *runtime.Scheme) error {
	return all(s, func(s *runtime.Scheme) error {
		s.AddKnownTypes(certificates.SchemeGroupVersion, &certificates.ClusterTrustBundle{},
			&certificates.ClusterTrustBundleList{}, &certificates.PodCertificateRequest{},
			&certificates.PodCertificateRequestList{})
		return nil
	}, certificatesv1.AddToScheme)
}
