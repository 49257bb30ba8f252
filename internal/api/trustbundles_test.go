// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestTrustBundles proves PL-05: the bundle of this server is there; who makes one for a signer needs the right to
// speak for it; what is no certificate is refused.
func TestTrustBundles(t *testing.T) {
	c := client(t)
	all := c.CertificatesV1().ClusterTrustBundles()
	own,
		err := all.List(t.Context(),
		metav1.ListOptions{FieldSelector: "spec.signerName=kubernetes.io/kube-apiserver-serving"})
	if err != nil || len(own.Items) != 1 || !strings.HasPrefix(own.Items[0].Name,
		"kubernetes.io:kube-apiserver-serving:") {
		t.Fatalf("%+v, %v", own, err)
	}
	pem := own.Items[0].Spec.TrustBundle
	ns := namespace(t, c)
	bundle := func(name, signer, trust string) *certificatesv1.ClusterTrustBundle {
		return &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: trust}}
	}
	if _, err := all.Create(t.Context(), bundle("bad-"+ns, "", "no certificate"),
		metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Error(err)
	}
	jane := clientOf(t, person(t, shared.srv, "jane-"+ns)).CertificatesV1().ClusterTrustBundles()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bundles-" + ns},
		Rules: rulesOf("create,get,update clustertrustbundles.certificates.k8s.io")}
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane-" + ns}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fine(t, "a bundle of no signer", second(jane.Create(t.Context(), bundle("plain-"+ns, "", pem),
		metav1.CreateOptions{})))
	forbidden(t, "a bundle of a signer", second(jane.Create(t.Context(), bundle("e.com:s:"+ns, "e.com/s", pem),
		metav1.CreateOptions{})),
		`user not permitted to attest for signerName "e.com/s"`)
	fine(t, "an administrator's", second(all.Create(t.Context(), bundle("e.com:s:"+ns, "e.com/s", pem),
		metav1.CreateOptions{})))
	theirs, err := jane.Get(t.Context(), "e.com:s:"+ns, metav1.GetOptions{})
	fine(t, "reading it", err)
	fine(t, "writing it as it is", second(jane.Update(t.Context(), theirs, metav1.UpdateOptions{})))
	theirs.Labels = map[string]string{"a": "b"}
	forbidden(t, "labels, by which pods choose it", second(jane.Update(t.Context(), theirs, metav1.UpdateOptions{})),
		"attest")
	for _, name := range []string{"plain-" + ns, "e.com:s:" + ns} {
		fine(t, "delete", all.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
}

// TestPodCertificateRequests proves PL-05: a node asks for its own pods' certificates only, those that they show, and
// sees no others'; who signs needs the right to the signer.
func TestPodCertificateRequests(t *testing.T) {
	w := newNodeWorld(t)
	ctx := t.Context()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asks"},
		Spec: corev1.PodSpec{NodeName: w.one, ServiceAccountName: "mine",
			Containers: []corev1.Container{{Name: "main", Image: "x"}},
			Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{
					SignerName: "e.com/s", KeyType: "ED25519", KeyPath: "k"}}}}}}}}}
	pod, err = w.admin.CoreV1().Pods(w.ns).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := pod.Spec.Volumes[0].Projected.Sources[0].PodCertificate; ptr.Deref(s.MaxExpirationSeconds, 0) != 86400 {
		t.Errorf("%+v", s)
	}
	node, err := w.agent.CoreV1().Nodes().Get(ctx, w.one, metav1.GetOptions{})
	fine(t, "its node", err)
	account, err := w.agent.CoreV1().ServiceAccounts(w.ns).Get(ctx, "mine", metav1.GetOptions{})
	fine(t, "its pod's account", err)
	ask := func(name string, change func(*certificatesv1.PodCertificateRequestSpec)) error {
		r := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.PodCertificateRequestSpec{
				SignerName: "e.com/s", PodName: "asks", PodUID: pod.UID, ServiceAccountName: "mine",
				ServiceAccountUID: account.UID, NodeName: types.NodeName(w.one), NodeUID: node.UID,
				StubPKCS10Request: proof}}
		change(&r.Spec)
		return second(w.agent.CertificatesV1().PodCertificateRequests(w.ns).Create(ctx, r, metav1.CreateOptions{}))
	}
	fine(t, "its pod's", ask("good", func(*certificatesv1.PodCertificateRequestSpec) {}))
	for name, change := range map[string]func(*certificatesv1.PodCertificateRequestSpec){
		"not the requesting node": func(s *certificatesv1.PodCertificateRequestSpec) {
			s.NodeName = types.NodeName(w.two)
		},
		"names node UID":      func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeUID = "0a1b" },
		"contains pod UID":    func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID = "0a1b" },
		"does not mount":      func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "e.com/t" },
		"service account UID": func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountUID = "0a1b" },
		"that differs from": func(s *certificatesv1.PodCertificateRequestSpec) {
			s.ServiceAccountName = "default"
		},
		"is not running on node": func(s *certificatesv1.PodCertificateRequestSpec) {
			s.PodName, s.PodUID = "theirs", w.theirs.UID
		},
		"not found": func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = "none" },
	} {
		forbidden(t, name, ask("bad", change), name)
	}
	requests := w.agent.CertificatesV1().PodCertificateRequests(w.ns)
	list, err := requests.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + w.one})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	forbidden(t, "all", second(requests.List(ctx, metav1.ListOptions{})), "spec.nodeName field selector")
	forbidden(t, "another's", second(requests.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + w.two})),
		"spec.nodeName field selector")
	fine(t, "bundles", second(w.agent.CertificatesV1().ClusterTrustBundles().List(ctx, metav1.ListOptions{})))

	good := &list.Items[0]
	good.Status.Conditions = []metav1.Condition{{Type: "Denied", Status: "True", Reason: "Test",
		LastTransitionTime: metav1.Now()}}
	forbidden(t, "the status", second(requests.UpdateStatus(ctx, good, metav1.UpdateOptions{})))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "signs-" + w.ns},
		Rules: rulesOf("update podcertificaterequests/status.certificates.k8s.io")}
	if _, err := w.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.RbacV1().ClusterRoleBindings().Create(ctx,
		&rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane-" + w.ns}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	jane := clientOf(t, person(t, shared.srv, "jane-"+w.ns)).CertificatesV1().PodCertificateRequests(w.ns)
	if _, err := jane.UpdateStatus(ctx, good, metav1.UpdateOptions{}); err == nil ||
		!strings.Contains(err.Error(), `is not permitted to "sign" for signer "e.com/s"`) {
		t.Error(err)
	}
	fine(t, "an administrator denies it", second(w.admin.CertificatesV1().PodCertificateRequests(w.ns).UpdateStatus(ctx,
		good, metav1.UpdateOptions{})))
}
