// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/api/nodeauth"
	"github.com/wherryproject/wherry/internal/node/refs"
)

func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction: a node's own object.
func TestRestrictNode(t *testing.T) {
	base := func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{
			"kubernetes.io/hostname": "n1", "node-restriction.kubernetes.io/fips": "yes", "zone": "a"}}}
	}
	for name, test := range map[string]struct {
		change func(n *corev1.Node)
		want   string // on update
		create string // on create, where that differs
	}{
		"nothing":            {func(*corev1.Node) {}, "", "modify labels: node-restriction.kubernetes.io/fips"},
		"status":             {func(n *corev1.Node) { n.Status.Phase = "x" }, "", "modify labels"},
		"another node":       {func(n *corev1.Node) { n.Name = "n2" }, `not allowed to modify node "n2"`, ""},
		"taints":             {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} }, "not allowed to modify taints", "modify labels"},
		"owners":             {func(n *corev1.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, "ownerReferences", ""},
		"a pod network":      {func(n *corev1.Node) { n.Spec.PodCIDR = "10.9.0.0/24" }, "not allowed to set its podCIDRs", ""},
		"pod networks":       {func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"10.9.0.0/24"} }, "not allowed to set its podCIDRs", ""},
		"a wish for them":    {func(n *corev1.Node) { n.Annotations = map[string]string{"wherry.dev/pod-networks": "10.9.0.0/24"} }, "", "modify labels"},
		"a label of its own": {func(n *corev1.Node) { n.Labels["zone"] = "b" }, "", "modify labels"},
		"a kubelet's label":  {func(n *corev1.Node) { n.Labels["kubelet.kubernetes.io/x"] = "b" }, "", "modify labels"},
		"a node's label":     {func(n *corev1.Node) { n.Labels["sub.node.kubernetes.io/x"] = "b" }, "", "modify labels"},
		"os and zone": {func(n *corev1.Node) {
			n.Labels["kubernetes.io/os"], n.Labels["topology.kubernetes.io/zone"] = "linux", "z"
		}, "", "modify labels"},
		"restricted label set":    {func(n *corev1.Node) { n.Labels["node-restriction.kubernetes.io/pci"] = "yes" }, "modify labels: node-restriction.kubernetes.io/pci", ""},
		"restricted label change": {func(n *corev1.Node) { n.Labels["node-restriction.kubernetes.io/fips"] = "no" }, "modify labels: node-restriction.kubernetes.io/fips", ""},
		"restricted label gone":   {func(n *corev1.Node) { delete(n.Labels, "node-restriction.kubernetes.io/fips") }, "modify labels: node-restriction.kubernetes.io/fips", "-"},
		"below it":                {func(n *corev1.Node) { n.Labels["x.node-restriction.kubernetes.io/a"] = "" }, "modify labels: x.node-restriction.kubernetes.io/a", ""},
		"a role":                  {func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }, "modify labels: node-role.kubernetes.io/control-plane", ""},
		"another of Kubernetes":   {func(n *corev1.Node) { n.Labels["k8s.io/x"], n.Labels["kubernetes.io/y"] = "", "" }, "modify labels: k8s.io/x, kubernetes.io/y", ""},
		"nearly of Kubernetes":    {func(n *corev1.Node) { n.Labels["notkubernetes.io/y"] = "" }, "", "modify labels"},
	} {
		obj := base()
		test.change(obj)
		expect(t, name+" (update)", nodeauth.RestrictNode("n1", obj, base()), test.want)
		switch test.create {
		case "-":
			expect(t, name+" (create)", nodeauth.RestrictNode("n1", obj, nil), "")
		case "":
			expect(t, name+" (create)", nodeauth.RestrictNode("n1", obj, nil), "not allowed to")
		default:
			expect(t, name+" (create)", nodeauth.RestrictNode("n1", obj, nil), test.create)
		}
	}
}

// Mirror pods of its own, which can use nothing of the cluster.
func TestRestrictNewPod(t *testing.T) {
	for name, test := range map[string]struct {
		change func(p *corev1.Pod)
		want   string
	}{
		"a mirror": {func(*corev1.Pod) {}, ""},
		"owned by itself": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1"}}
		}, ""},
		"no mirror": {func(p *corev1.Pod) { p.Annotations = nil }, "can only create mirror pods"},
		"elsewhere": {func(p *corev1.Pod) { p.Spec.NodeName = "n2" }, "spec.nodeName set to itself"},
		"nowhere":   {func(p *corev1.Pod) { p.Spec.NodeName = "" }, "spec.nodeName set to itself"},
		"of another node": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n2"}}
		}, "owner reference set to itself"},
		"of a job": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "n1"}}
		}, "owner reference set to itself"},
		"with an account": {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "admin" }, `reference serviceaccount "admin"`},
		"pull secret":     {func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} }, `reference secret "s"`},
		"environment": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "e"}}}}}}
		}, `reference secret "e"`},
		"config map": {func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}}}}
		}, `reference configmap "m"`},
		"token": {func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}}}
		}, "service account token"},
		"claim": {func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
		}, "persistentvolumeclaim"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
			Spec: corev1.PodSpec{NodeName: "n1"}}
		test.change(p)
		expect(t, name, nodeauth.RestrictNewPod("n1", p), test.want)
	}
	mine, theirs := podOn("n1", "p"), podOn("n2", "p")
	expect(t, "own status", nodeauth.RestrictPodStatus("n1", mine, mine), "")
	expect(t, "another node's status", nodeauth.RestrictPodStatus("n1", theirs, theirs), "spec.nodeName set to itself")
	labelled := podOn("n1", "p")
	labelled.Labels = map[string]string{"app": "other"}
	expect(t, "labels", nodeauth.RestrictPodStatus("n1", labelled, mine), "cannot update labels")
}

// Tokens for the accounts of its pods, bound to those pods, as their volumes have them.
func TestRestrictToken(t *testing.T) {
	withTokens := func(audiences ...string) *corev1.Pod {
		pod := podOn("n1", "p")
		pod.UID = "1"
		var sources []corev1.VolumeProjection
		for _, a := range audiences {
			sources = append(sources, corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: a}})
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}})
		return pod
	}
	pod, vault, tokenless := withTokens("", "vault"), withTokens("vault"), withTokens()
	away := podOn("n2", "p")
	away.UID = "1"
	bound := func(uid types.UID) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: uid}
	}
	for name, test := range map[string]struct {
		ref       *authenticationv1.BoundObjectReference
		audiences []string
		pod       *corev1.Pod
		want      string
	}{
		"bound":                {bound("1"), nil, pod, ""},
		"for the API":          {bound("1"), []string{"api"}, pod, ""},
		"as the volume says":   {bound("1"), []string{"vault"}, pod, ""},
		"for somebody else":    {bound("1"), []string{"vault", "bank"}, pod, `audience "bank" not found in pod spec volume`},
		"not for the API":      {bound("1"), []string{"api"}, vault, `audience "api" not found in pod spec volume`},
		"not for whomever":     {bound("1"), nil, vault, `audience "" not found in pod spec volume`},
		"without a token":      {bound("1"), []string{"api"}, tokenless, `audience "api" not found in pod spec volume`},
		"not bound":            {nil, nil, pod, "not bound to a pod"},
		"bound to a secret":    {&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "p", UID: "1"}, nil, nil, "not bound to a pod"},
		"no uid":               {bound(""), nil, pod, "without a uid"},
		"another pod since":    {&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "2"}, nil, pod, "does not match the UID in record"},
		"no such pod":          {bound("1"), nil, nil, "does not match the UID in record"},
		"a pod of another one": {bound("1"), nil, away, "scheduled on a different node"},
	} {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: test.audiences, BoundObjectRef: test.ref}}
		expect(t, name, nodeauth.RestrictToken("n1", request, test.pod, nil, "api"), test.want)
	}
}

// A node writes its own lease, and asks for certificates of its own name.
func TestRestrictLeaseAndCSR(t *testing.T) {
	lease := func(ns, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	expect(t, "own lease", nodeauth.RestrictLease("n1", lease("kube-node-lease", "n1")), "")
	expect(t, "another's lease", nodeauth.RestrictLease("n1", lease("kube-node-lease", "n2")), "same name as the requesting node")
	expect(t, "a lease elsewhere", nodeauth.RestrictLease("n1", lease("kube-system", "n1")), "system namespace")

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr := func(signer, name string) *certificatesv1.CertificateSigningRequest {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
		if err != nil {
			t.Fatal(err)
		}
		return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})}}
	}
	const client, serving = certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	expect(t, "own client certificate", nodeauth.RestrictCSR("n1", csr(client, "system:node:n1")), "")
	expect(t, "own serving certificate", nodeauth.RestrictCSR("n1", csr(serving, "system:node:n1")), "")
	expect(t, "another's", nodeauth.RestrictCSR("n1", csr(client, "system:node:n2")), "CN=system:node:n1")
	expect(t, "an administrator's", nodeauth.RestrictCSR("n1", csr(serving, "root")), "CN=system:node:n1")
	expect(t, "of a signer that a person must approve", nodeauth.RestrictCSR("n1", csr("example.com/x", "x")), "")
	for _, bad := range []string{"", "junk", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"} {
		broken := csr(client, "x")
		broken.Spec.Request = []byte(bad)
		expect(t, "junk", nodeauth.RestrictCSR("n1", broken), "unable to parse csr")
	}
}

// What an agent reads for a pod it may read.
func TestRefsAreWhatTheAgentReads(t *testing.T) {
	pod := podOn("n1", "p")
	pod.Spec.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "from-map"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "from-secret"}}}}}}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "debug-map"}}}}}}}}
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume-secret"}}},
		corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "projected-secret"}}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "projected-map"}}}}}}})
	g := nodeauth.NewGraph()
	g.Put(pod)
	maps, secrets := refs.Names(pod)
	if len(maps) != 4 || len(secrets) != 5 {
		t.Fatalf("%v, %v", maps, secrets)
	}
	for _, name := range maps {
		if !g.Has("n1", nodeauth.Ref{Kind: nodeauth.ConfigMap, Namespace: "ns", Name: name}) {
			t.Errorf("config map %s", name)
		}
	}
	for _, name := range secrets {
		if !g.Has("n1", nodeauth.Ref{Kind: nodeauth.Secret, Namespace: "ns", Name: name}) {
			t.Errorf("secret %s", name)
		}
	}
}
