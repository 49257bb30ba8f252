// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestConfigMapsAndSecrets: kubectl creates, shows, changes and deletes them.
func TestConfigMapsAndSecrets(t *testing.T) {
	t.Parallel()
	s := shared(t)
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.Kubectl("create", "configmap", "cm", "--from-literal=a=1", "--from-literal=b=2").Is("configmap/cm created")
		s.Kubectl("create", "secret", "generic", "sec", "--from-literal=password=s3cret").Is("secret/sec created")
		s.Kubectl("get", "configmap", "cm").Has("NAME", "DATA", "AGE", "cm     2")
		s.Kubectl("get", "secret", "sec").Has("TYPE", "Opaque   1")
		s.Kubectl("get", "secret", "sec", "-o", "jsonpath={.data.password}").Is("czNjcmV0")
		s.Kubectl("describe", "secret", "sec").Has("password:  6 bytes").HasNot("s3cret")
		s.Kubectl("describe", "configmap", "cm").Has("a:\n----\n1")
		s.Kubectl("patch", "configmap", "cm", "-p", `{"immutable":true}`)
		s.KubectlFails("patch", "configmap", "cm", "-p", `{"data":{"a":"x"}}`).Says("data: Forbidden: field is immutable when `immutable` is set")
		s.KubectlFails("create", "configmap", "cm").Says("already exists")
		s.KubectlFails("create", "configmap", "bad", "--from-literal=a b=1").Says("a b")
		s.Kubectl("delete", "configmap/cm", "secret/sec")
		s.KubectlFails("get", "secret", "sec").Says("not found")
	})
}

// TestServiceAccount: the token in a pod is taken by the API server as its service account's, which may do nothing yet: 403 and
// words that say who was refused what.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	s := shared(t)
	host, err := url.Parse(s.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	s.Kubectl("create", "serviceaccount", "robot")
	s.Kubectl("create", "token", "robot").Has(".")
	pod := Never("asker", Tool("api", "/api/v1/namespaces/"+s.Namespace+"/secrets"))
	pod.Spec.ServiceAccountName = "robot"
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "API", Value: "https://" + s.NodeIP + ":" + host.Port()}}
	s.Create(pod)
	s.WaitPhase("asker", corev1.PodSucceeded)
	s.Kubectl("logs", "asker").Has("403 Forbidden",
		`secrets is forbidden: User \"system:serviceaccount:`+s.Namespace+`:robot\" cannot list resource \"secrets\" in API group \"\" in the namespace \"`+s.Namespace+`\"`)
	s.Kubectl("get", "pod", "asker", "-o", "jsonpath={.spec.containers[0].volumeMounts[*].mountPath}").Is("/var/run/secrets/kubernetes.io/serviceaccount")

	quiet := Never("quiet", Tool("cat", "/var/run/secrets/kubernetes.io/serviceaccount/token"))
	no := false
	quiet.Spec.AutomountServiceAccountToken = &no
	s.Create(quiet)
	s.WaitPhase("quiet", corev1.PodFailed)
	s.Kubectl("logs", "quiet").Has("no such file")
}

// TestStrangers: who shows no certificate and no token, or a wrong one, gets 401.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for _, token := range []string{"", "nonsense"} {
		config := rest.AnonymousClientConfig(s.Config)
		config.BearerToken = token
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Pods(s.Namespace).List(s.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("with token %q: %v", token, err)
		}
	}
}

// TestNodeLease: the node's lease belongs to the node's object, as the kubelet's does, so that it goes with it (PL-13).
func TestNodeLease(t *testing.T) {
	t.Parallel()
	s := shared(t)
	node := s.Kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name} {.items[0].metadata.uid}").Out
	name, _, _ := strings.Cut(node, " ")
	s.Kubectl("get", "lease", name, "-n", "kube-node-lease", "-o",
		"jsonpath={.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].name} {.metadata.ownerReferences[0].uid}").Is("Node " + node)
}
