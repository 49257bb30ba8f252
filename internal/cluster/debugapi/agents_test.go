// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// While a node's agent is replaced, who asks waits for the next one; and a node that has none has none (DA-10).
func TestAgentIsReplaced(t *testing.T) {
	agent := func(name, node string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": "agent"}},
			Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{PodIP: "10.0.0.1",
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	client := fake.NewClientset(agent("old", "one", corev1.ConditionTrue))
	a, err := newAgents(client, "ns", "app=agent")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.factory.Shutdown)
	on := func(node string) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}} }
	reason := func(node string) string {
		_, err := a.of(t.Context(), on(node), 0)
		return string(apierrors.ReasonForError(err))
	}
	if got, err := a.of(t.Context(), on("one"), 0); err != nil || got.Name != "old" {
		t.Fatalf("%v, %v", got, err)
	}
	if got := reason("two"); got != wire.ReasonNoAgent {
		t.Errorf("a node without an agent: %s", got)
	}
	pods := client.CoreV1().Pods("ns")
	gone := a.next()
	if err := pods.Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	<-gone
	if got := reason("one"); got != wire.ReasonAgentUnreachable {
		t.Errorf("between two agents: %s", got)
	}
	found := make(chan error, 1)
	go func() {
		got, err := a.of(t.Context(), on("one"), time.Minute)
		if err == nil && got.Name != "new" {
			t.Errorf("the agent is %s", got.Name)
		}
		found <- err
	}()
	if _, err := pods.Create(t.Context(), agent("new", "one", corev1.ConditionFalse), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.UpdateStatus(t.Context(), agent("new", "one", corev1.ConditionTrue), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Error(err)
	}
}

// stranger has no certificate, and nobody's either.
type stranger struct{}

func (stranger) Pool() *x509.CertPool { return x509.NewCertPool() }

func (stranger) ClientSide(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return &tls.Certificate{}, nil
}

// Where nobody listens, the agent that is told of next is asked (DA-10).
func TestAgentBeginsAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	agent := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "ns", Labels: map[string]string{"app": "agent"}},
		Spec: corev1.PodSpec{NodeName: "one"}, Status: corev1.PodStatus{PodIP: "127.0.0.2",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	client := fake.NewClientset(agent)
	a, err := newAgents(client, "ns", "app=agent")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.factory.Shutdown)
	s := &Server{agents: a, reach: &reach{port: l.Addr().(*net.TCPAddr).Port, id: stranger{}}}
	if _, err := s.reach.session(t.Context(), agent, wire.Session{}, &http.Request{}); !strings.Contains(fmt.Sprint(err), "connection refused") {
		t.Fatalf("somebody listens at %s: %v", agent.Status.PodIP, err)
	}
	come := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.Close()
		}
		come <- err
	}()
	ended := make(chan error, 1)
	go func() {
		_, err := s.asked(t.Context(), &corev1.Pod{Spec: agent.Spec}, agent, wire.Session{}, &http.Request{})
		ended <- err
	}()
	here := agent.DeepCopy()
	here.Status.PodIP = "127.0.0.1"
	if _, err := client.CoreV1().Pods("ns").UpdateStatus(t.Context(), here, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-come; err != nil {
		t.Error(err)
	}
	if err := <-ended; string(apierrors.ReasonForError(err)) != wire.ReasonAgentUnreachable || strings.Contains(err.Error(), "refused") {
		t.Errorf("who has come and gone: %v", err)
	}
}
