// SPDX-License-Identifier: Apache-2.0

package podcert

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

const block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

// town has a pod that asks for a certificate, and is its signer.
type town struct {
	t       *testing.T
	client  *fake.Clientset
	m       *Manager
	pod     *corev1.Pod
	events  []string
	changes int
}

func newTown(t *testing.T) *town {
	w := &town{t: t, client: fake.NewClientset(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "account"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node"}})}
	w.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", UID: "pod"}, Spec: corev1.PodSpec{
		ServiceAccountName: "web", Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {
				PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519",
					UserAnnotations: map[string]string{"example.com/a": "b"}}}}}}}}}}
	w.m = New(Config{Client: w.client, Node: "n1", Logger: slog.New(slog.DiscardHandler),
		Changed: func(types.UID) { w.changes++ },
		Event: func(_ *corev1.Pod, _, reason, message string) {
			w.events = append(w.events, reason+": "+message)
		}})
	return w
}

func (w *town) requests() []certificatesv1.PodCertificateRequest {
	list, err := w.client.CertificatesV1().PodCertificateRequests("ns").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// TestPending proves PL-05: the pod that waits for a signer that does not answer says once for which, and by which request.
func TestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		defer w.m.Close()
		w.m.Register(w.pod)
		time.Sleep(pending - time.Second)
		synctest.Wait()
		if len(w.events) > 0 {
			t.Errorf("too early: %q", w.events)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		all := w.requests()
		if len(all) != 1 || len(w.events) != 1 || !strings.HasPrefix(w.events[0],
			"PodCertificatePending: signer example.com/s has not answered PodCertificateRequest ns/"+all[0].Name+":") {
			t.Errorf("%d requests, %q", len(all), w.events)
		}
	})
}

// answer is the signer's.
func (w *town) answer(r *certificatesv1.PodCertificateRequest, kind string, life time.Duration) {
	r.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: "Why", Message: "because"}}
	if kind == certificatesv1.PodCertificateRequestConditionTypeIssued {
		now := time.Now()
		at := func(d time.Duration) *metav1.Time { m := metav1.NewTime(now.Add(d)); return &m }
		r.Status.CertificateChain = "words\n" + block
		r.Status.NotBefore, r.Status.BeginRefreshAt, r.Status.NotAfter = at(0), at(life/2), at(life)
	}
	if _, err := w.client.CertificatesV1().PodCertificateRequests("ns").UpdateStatus(context.Background(), r,
		metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *town) get(wait bool) (string, string, error) {
	key, chain, err := w.m.Get(context.Background(), w.pod.UID, "tls", 1, wait)
	return string(key), string(chain), err
}

// TestIssued proves PL-05: a pod's certificate comes as soon as it is signed, says for whom it is to be, and another
// comes before it ends, with another key.
func TestIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		defer w.m.Close()
		if _, _, err := w.get(false); err == nil {
			t.Error("a pod that is not registered has a certificate")
		}
		w.m.Register(w.pod)
		w.m.Register(w.pod)
		synctest.Wait()
		if _, _, err := w.get(false); err == nil || err.Error() != "credential bundle is not issued yet" {
			t.Error(err)
		}
		asked := w.requests()
		if len(asked) != 1 {
			t.Fatalf("%d requests", len(asked))
		}
		s := asked[0].Spec
		if s.SignerName != "example.com/s" || s.PodName != "web-0" || s.PodUID != "pod" || s.ServiceAccountName != "web" ||
			s.ServiceAccountUID != "account" || s.NodeName != "n1" || s.NodeUID != "node" ||
			s.UnverifiedUserAnnotations["example.com/a"] != "b" || asked[0].OwnerReferences[0].UID != "pod" {
			t.Errorf("%+v", asked[0])
		}
		csr, err := x509.ParseCertificateRequest(s.StubPKCS10Request)
		if err != nil || csr.CheckSignature() != nil || csr.PublicKeyAlgorithm != x509.Ed25519 {
			t.Errorf("%+v, %v", csr, err)
		}
		go func() {
			time.Sleep(2 * time.Second)
			w.answer(&asked[0], "Issued", 10*time.Hour)
		}()
		begin := time.Now()
		first, chain, err := w.get(true)
		if p, _ := pem.Decode([]byte(first)); err != nil || p == nil || p.Type != "PRIVATE KEY" || chain != block {
			t.Errorf("%q, %v", chain, err)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("the wait took %v", took)
		}
		synctest.Wait()
		if w.changes != 1 {
			t.Errorf("told %d times", w.changes)
		}
		time.Sleep(5*time.Hour - time.Minute)
		if len(w.requests()) != 1 {
			t.Error("asked again too early")
		}
		time.Sleep(time.Minute + spread + lookAgain)
		all := w.requests()
		if len(all) != 2 {
			t.Fatalf("%d requests after half of its life", len(all))
		}
		if same, _, err := w.get(true); err != nil || same != first {
			t.Error("the old one is not shown any more", err)
		}
		for i := range all {
			if all[i].Name != asked[0].Name {
				w.answer(&all[i], "Issued", 10*time.Hour)
			}
		}
		synctest.Wait()
		if second, _, err := w.get(false); err != nil || second == first || w.changes != 2 {
			t.Errorf("the new one is not shown: %v, told %d times", err, w.changes)
		}
	})
}

// TestRefused proves PL-05: a signer's refusal is told in the kubelet's words, and is for good.
func TestRefused(t *testing.T) {
	for kind, want := range map[string]string{
		"Denied": `PodCertificateRequest was permanently denied: reason="Why" message="because"`,
		"Failed": `PodCertificateRequest was permanently failed: reason="Why" message="because"`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t)
			defer w.m.Close()
			w.m.Register(w.pod)
			synctest.Wait()
			w.answer(&w.requests()[0], kind, 0)
			if _, _, err := w.get(true); err == nil || err.Error() != want {
				t.Error(err)
			}
			time.Sleep(time.Hour)
			if len(w.requests()) != 1 || len(w.events) != 1 || !strings.HasPrefix(w.events[0], kind+": PodCertificateRequest ns/req-") {
				t.Errorf("%d requests, events %q", len(w.requests()), w.events)
			}
		})
	}
}

// TestLost proves PL-05: a request that somebody removes is made again, one whose signer is silent keeps the old
// certificate and tells that it is late, and nothing is left when the pod is gone.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		defer w.m.Close()
		w.m.Register(w.pod)
		synctest.Wait()
		lost := w.requests()[0]
		if err := w.client.CertificatesV1().PodCertificateRequests("ns").Delete(t.Context(), lost.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		again := w.requests()
		if len(again) != 1 || again[0].Name == lost.Name {
			t.Fatalf("%+v", again)
		}
		w.answer(&again[0], "Issued", time.Hour)
		time.Sleep(2 * time.Hour)
		if strings.Join(w.events, ", ") != "CertificateOverdueForRefresh: PodCertificate refresh overdue, CertificateExpired: PodCertificate expired" {
			t.Errorf("%q", w.events)
		}
		if _, chain, err := w.get(false); err != nil || chain != block {
			t.Errorf("%q, %v", chain, err)
		}
		w.m.Unregister("pod")
		synctest.Wait()
		if _, _, err := w.get(false); err == nil || len(w.m.certs) != 0 {
			t.Error("something is left of the pod")
		}
	})
}
