// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesac "k8s.io/client-go/applyconfigurations/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/utils/ptr"
)

// pkcs10 is a request for a subject, with a key of its own.
func pkcs10(subject pkix.Name) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // no random numbers: nothing in this process can go on
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func sampleRequest() certificatesv1.CertificateSigningRequestSpec {
	return certificatesv1.CertificateSigningRequestSpec{
		Request: pkcs10(pkix.Name{CommonName: "jane"}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	}
}

func signingRequest(name string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: sampleRequest()}
}

func makeRequest(t *testing.T, c kubernetes.Interface,
	r *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	made, err := c.CertificatesV1().CertificateSigningRequests().Create(t.Context(), r, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func approval(t certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: t, Status: corev1.ConditionTrue, Reason: "Test"}
}

// Identity: a request says who made it, whatever the maker says; nothing but its verdict and its certificate ever
// changes, each once.
func TestSigningRequest(t *testing.T) {
	c := client(t)
	requests := c.CertificatesV1().CertificateSigningRequests()
	forged := signingRequest("forged")
	forged.Spec.Username, forged.Spec.Groups = "root", []string{"system:masters"}
	forged.Spec.Extra = map[string]certificatesv1.ExtraValue{"a": {"b"}}
	forged.Status = certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("x"),
		Conditions: []certificatesv1.CertificateSigningRequestCondition{approval("Approved")}}
	made := makeRequest(t, c, forged)
	if made.Spec.Username != "wherry-admin" || made.Spec.Extra["a"] != nil ||
		len(made.Status.Conditions)+len(made.Status.Certificate) > 0 {
		t.Errorf("got %+v", made)
	}
	changed := made.DeepCopy()
	changed.Spec.Request, changed.Spec.Username = signingRequest("x").Spec.Request, "root"
	changed.Labels = map[string]string{"a": "b"}
	changed.Status.Conditions = append(changed.Status.Conditions, approval("Approved"))
	updated, err := requests.Update(t.Context(), changed, metav1.UpdateOptions{})
	if err != nil || string(updated.Spec.Request) != string(made.Spec.Request) ||
		updated.Spec.Username != made.Spec.Username || len(updated.Status.Conditions) > 0 ||
		updated.Labels["a"] != "b" {
		t.Errorf("update: %+v, %v", updated, err)
	}
	byStatus := updated.DeepCopy()
	byStatus.Status.Conditions = append(byStatus.Status.Conditions, approval("Approved"))
	if _, err := requests.UpdateStatus(t.Context(), byStatus, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("approval by way of the status: %v", err)
	}
	both := updated.DeepCopy()
	both.Status.Conditions = append(both.Status.Conditions, approval("Approved"), approval("Denied"))
	if _, err := requests.UpdateApproval(t.Context(), both.Name, both,
		metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("approved and denied: %v", err)
	}
	approved := updated.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, approval("Approved"))
	approved.Status.Certificate = []byte("smuggled")
	if approved, err = requests.UpdateApproval(t.Context(), approved.Name, approved,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(approved.Status.Certificate) > 0 || approved.Status.Conditions[0].LastTransitionTime.IsZero() ||
		approved.Status.Conditions[0].LastUpdateTime.IsZero() {
		t.Errorf("approved: %+v", approved.Status)
	}
	withdrawn := approved.DeepCopy()
	withdrawn.Status.Conditions = nil
	if _, err := requests.UpdateApproval(t.Context(), withdrawn.Name, withdrawn,
		metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("approval taken back: %v", err)
	}
	junk := approved.DeepCopy()
	junk.Status.Certificate = []byte("junk")
	if _, err := requests.UpdateStatus(t.Context(), junk, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("junk for a certificate: %v", err)
	}
	issued := approved.DeepCopy()
	issued.Status.Certificate = shared.srv.CA().CertPEM()
	if issued, err = requests.UpdateStatus(t.Context(), issued, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	again := issued.DeepCopy()
	again.Status.Certificate = append(slices.Clone(issued.Status.Certificate), issued.Status.Certificate...)
	if _, err := requests.UpdateStatus(t.Context(), again, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("another certificate: %v", err)
	}
	applied := certificatesac.CertificateSigningRequest("applied").WithSpec(certificatesac.CertificateSigningRequestSpec().WithRequest(made.Spec.Request...).
		WithSignerName(made.Spec.SignerName).WithUsages(made.Spec.Usages...).WithUsername("root"))
	if by, err := requests.Apply(t.Context(), applied, metav1.ApplyOptions{FieldManager: "test"}); err != nil ||
		by.Spec.Username != "wherry-admin" {
		t.Errorf("applied by %+v, %v", by, err)
	}
	list, err := requests.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=example.com/x"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("by signer: %v, %v", list, err)
	}
}

// Identity: a request for a certificate that is none, or asks for too much, is refused with the field that is wrong.
// ATTACK A9.
func TestSigningRequestRefusals(t *testing.T) {
	c := client(t)
	for name, change := range map[string]func(*certificatesv1.CertificateSigningRequest){
		"spec.request: Required": func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Request = nil },
		"spec.request: Invalid": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = []byte("x")
		},
		"spec.usages: Required":       func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Usages = nil },
		"spec.usages[0]: Unsupported": func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Usages[0] = "x" },
		"spec.usages[1]: Duplicate": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = append(r.Spec.Usages, r.Spec.Usages[0])
		},
		"spec.signerName: Required": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = ""
		},
		"spec.signerName: Invalid": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = "nodomain"
		},
		"should be a domain with at least two": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = "one/x"
		},
		"path part": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = "example.com/X"
		},
		"legacy signerName": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = "kubernetes.io/legacy-unknown"
		},
		"spec.expirationSeconds": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.ExpirationSeconds = ptr.To[int32](599)
		},
		"system:masters group is not allowed": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = pkcs10(pkix.Name{CommonName: "x", Organization: []string{"system:masters"}})
		},
	} {
		r := signingRequest("refused")
		change(r)
		if _, err := c.CertificatesV1().CertificateSigningRequests().Create(t.Context(), r,
			metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}

// Identity: who approves or signs needs the right to the signer, besides the one to the subresource.
// ATTACK A9.
func TestSignerRights(t *testing.T) {
	admin := client(t)
	grant := func(name string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "approver"}}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	config := adminConfig(t)
	config.Impersonate.UserName = "approver"
	c := clientOf(t, config)
	grant("csr-writer", rbacv1.PolicyRule{Verbs: []string{"get", "update"}, APIGroups: []string{"certificates.k8s.io"},
		Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval",
			"certificatesigningrequests/status"}})
	r := makeRequest(t, admin, signingRequest("rights"))
	r.Status.Conditions = append(r.Status.Conditions, approval("Approved"))
	refused := func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(),
			`requests with signerName "kubernetes.io/kube-apiserver-client"`)
	}
	requests := c.CertificatesV1().CertificateSigningRequests() // a right that is given can be used at once
	if _, err := requests.UpdateApproval(t.Context(), r.Name, r, metav1.UpdateOptions{}); !refused(err) {
		t.Fatalf("who may write may approve: %v", err)
	}
	grant("csr-approver", rbacv1.PolicyRule{Verbs: []string{"approve"}, APIGroups: []string{"certificates.k8s.io"},
		Resources: []string{"signers"}, ResourceNames: []string{"kubernetes.io/*"}})
	r, err := requests.UpdateApproval(t.Context(), r.Name, r, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Status.Certificate = shared.srv.CA().CertPEM()
	if _, err := requests.UpdateStatus(t.Context(), r, metav1.UpdateOptions{}); !refused(err) {
		t.Errorf("who may approve may sign: %v", err)
	}
	grant("csr-signer", rbacv1.PolicyRule{Verbs: []string{"sign"}, APIGroups: []string{"certificates.k8s.io"},
		Resources: []string{"signers"}, ResourceNames: []string{"kubernetes.io/kube-apiserver-client"}})
	if _, err := requests.UpdateStatus(t.Context(), r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	chain, err := csr.WaitForCertificate(t.Context(), admin, r.Name, r.UID)
	if err != nil || string(chain) != string(r.Status.Certificate) {
		t.Error(err)
	}
}
