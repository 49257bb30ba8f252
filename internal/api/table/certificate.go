// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func certificateSigningRequestPrinter() Printer {
	doc := certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()
	return Printer{
		Columns: columns(nameColumn(), ageColumn(), text("SignerName", doc["signerName"]),
			text("Requestor", doc["username"]), text("RequestedDuration", doc["expirationSeconds"]),
			text("Condition", certificatesv1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"])),
		Row: rowOf(func(r *certificatesv1.CertificateSigningRequest, now time.Time) []any {
			wanted := none
			if n := r.Spec.ExpirationSeconds; n != nil {
				wanted = duration.HumanDuration(time.Duration(*n) * time.Second)
			}
			return []any{r.Name, age(r.CreationTimestamp, now), orElse(r.Spec.SignerName, none), r.Spec.Username,
				wanted, requestState(&r.Status)}
		}),
	}
}

// requestState is the verdict, then a failure, then whether there is a certificate.
func requestState(s *certificatesv1.CertificateSigningRequestStatus) string {
	var has struct{ approved, denied, failed bool }
	for _, c := range s.Conditions {
		switch c.Type {
		case certificatesv1.CertificateApproved:
			has.approved = true
		case certificatesv1.CertificateDenied:
			has.denied = true
		case certificatesv1.CertificateFailed:
			has.failed = true
		}
	}
	words := []string{"Pending"}
	switch {
	case has.denied:
		words[0] = "Denied"
	case has.approved:
		words[0] = "Approved"
	}
	if has.failed {
		words = append(words, "Failed")
	}
	if len(s.Certificate) > 0 {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}
