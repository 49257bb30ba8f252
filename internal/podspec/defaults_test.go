// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// TestSetDefaults compares what comes of a Pod with next to nothing in it.
func TestSetDefaults(t *testing.T) {
	for _, row := range []struct{ name, in, out string }{
		{"nearly empty", `{spec: {containers: [{name: a, image: b}]}}`, `
spec:
  containers:
  - {name: a, image: b, imagePullPolicy: Always, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {}}
  dnsPolicy: ClusterFirst
  enableServiceLinks: true
  restartPolicy: Always
  schedulerName: default-scheduler
  securityContext: {}
  terminationGracePeriodSeconds: 30
`}, {"all that can be given to a container", `
spec:
  hostNetwork: true
  restartPolicy: Never
  dnsPolicy: Default
  enableServiceLinks: false
  schedulerName: mine
  terminationGracePeriodSeconds: 0
  serviceAccount: builder
  containers:
  - name: a
    image: b:1
    ports: [{containerPort: 80}]
    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}]
    resources: {limits: {cpu: "1", memory: 1Mi}, requests: {cpu: 100u}}
    securityContext: {}
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {grpc: {port: 80}, periodSeconds: 1}
    lifecycle: {preStop: {httpGet: {port: 80}}}
  ephemeralContainers: [{name: d, image: d}]
`, `
spec:
  hostNetwork: true
  restartPolicy: Never
  dnsPolicy: Default
  enableServiceLinks: false
  schedulerName: mine
  securityContext: {}
  terminationGracePeriodSeconds: 0
  serviceAccount: builder
  serviceAccountName: builder
  containers:
  - name: a
    image: b:1
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]
    env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}, {name: B, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k, optional: false}}}]
    resources: {limits: {cpu: "1", memory: 1Mi}, requests: {cpu: 1m, memory: 1Mi}}
    securityContext: {}
    livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    readinessProbe: {grpc: {port: 80, service: ""}, timeoutSeconds: 1, periodSeconds: 1, successThreshold: 1, failureThreshold: 3}
    lifecycle: {preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}}
  ephemeralContainers: [{name: d, image: d, imagePullPolicy: Always, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {}}]
`}, {"volumes", `
spec:
  enableServiceLinks: true
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: none}
  - {name: h, hostPath: {path: /}}
  - {name: c, configMap: {name: c}}
  - {name: s, secret: {secretName: s, defaultMode: 256}}
  - {name: d, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: p, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}, {podCertificate: {}}]}}
  - {name: i, image: {reference: "a:latest"}}
  - {name: is, iscsi: {targetPortal: "", iqn: "", lun: 0}}
  - {name: r, rbd: {monitors: [], image: ""}}
  - {name: a, azureDisk: {diskName: "", diskURI: ""}}
  - {name: sc, scaleIO: {gateway: "", system: "", secretRef: null}}
  - {name: e, ephemeral: {volumeClaimTemplate: {metadata: {}, spec: {resources: {}}}}}
`, `
spec:
  containers: null
  dnsPolicy: ClusterFirst
  enableServiceLinks: true
  restartPolicy: Always
  schedulerName: default-scheduler
  securityContext: {}
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: none, emptyDir: {}}
  - {name: h, hostPath: {path: /, type: ""}}
  - {name: c, configMap: {name: c, defaultMode: 420}}
  - {name: s, secret: {secretName: s, defaultMode: 256}}
  - {name: d, downwardAPI: {defaultMode: 420, items: [{path: a, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}
  - {name: p, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: a, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}, {podCertificate: {maxExpirationSeconds: 86400}}]}}
  - {name: i, image: {reference: "a:latest", pullPolicy: Always}}
  - {name: is, iscsi: {targetPortal: "", iqn: "", lun: 0, iscsiInterface: default}}
  - {name: r, rbd: {monitors: [], image: "", pool: rbd, user: admin, keyring: /etc/ceph/keyring}}
  - {name: a, azureDisk: {diskName: "", diskURI: "", cachingMode: ReadWrite, kind: Shared, fsType: ext4, readOnly: false}}
  - {name: sc, scaleIO: {gateway: "", system: "", secretRef: null, storageMode: ThinProvisioned, fsType: xfs}}
  - {name: e, ephemeral: {volumeClaimTemplate: {metadata: {}, spec: {resources: {}, volumeMode: Filesystem}}}}
`}, {"pod-level resources", `
spec:
  enableServiceLinks: true
  containers: [{name: a, image: "b:1", resources: {requests: {cpu: 200m}}}]
  resources: {limits: {cpu: "1", memory: 1Gi}}
`, `
spec:
  containers: [{name: a, image: "b:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {requests: {cpu: 200m}}}]
  dnsPolicy: ClusterFirst
  enableServiceLinks: true
  restartPolicy: Always
  schedulerName: default-scheduler
  securityContext: {}
  terminationGracePeriodSeconds: 30
  resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 200m, memory: 1Gi}}
`}} {
		t.Run(row.name, func(t *testing.T) {
			got, want := parsePod(t, row.in), parsePod(t, row.out)
			SetDefaults(got)
			DefaultPodResources(got)
			if !equality.Semantic.DeepEqual(got, want) {
				t.Error(cmp.Diff(toYAML(t, want), toYAML(t, got)))
			}
			again := got.DeepCopy()
			SetDefaults(again)
			if !equality.Semantic.DeepEqual(got, again) {
				t.Errorf("defaults are not idempotent: %s", cmp.Diff(toYAML(t, got), toYAML(t, again)))
			}
		})
	}
}

func parsePod(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func toYAML(t *testing.T, v any) string {
	t.Helper()
	out, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestPullPolicyByTag(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                             corev1.PullAlways,
		"nginx:latest":                      corev1.PullAlways,
		"localhost:5000/nginx":              corev1.PullAlways,
		"nginx:latest" + digest:             corev1.PullAlways,
		"nginx:1":                           corev1.PullIfNotPresent,
		"nginx" + digest:                    corev1.PullIfNotPresent,
		"registry.example.com:5000/a/b:1.2": corev1.PullIfNotPresent,
		"Not An Image":                      corev1.PullIfNotPresent,
		"":                                  corev1.PullIfNotPresent,
	} {
		if got := pullPolicyFor(image); got != want {
			t.Errorf("%q: got %s, want %s", image, got, want)
		}
	}
}

// TestSetDefaultsSpecLeavesTemplatesAlone: a template gets no defaults that only a Pod has.
// TestSetDefaultsOfStatus: podIP and podIPs agree, amounts are what can be stored, and a pod without pod-level resources gets none.
func TestSetDefaultsOfStatus(t *testing.T) {
	for _, row := range []struct {
		single string
		list   []string
		want   []string
	}{{"", nil, nil}, {"10.0.0.1", nil, []string{"10.0.0.1"}}, {"", []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.1", "fd00::1"}},
		{"10.0.0.2", []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.2"}}} {
		pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: row.single, AllocatedResources: corev1.ResourceList{"cpu": quantity("0.1m")}}}
		for _, ip := range row.list {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/a": quantity("1")}}
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("1")}}}}
		SetDefaults(pod)
		var got []string
		for _, ip := range pod.Status.PodIPs {
			got = append(got, ip.IP)
		}
		if !slices.Equal(got, row.want) || len(got) > 0 && got[0] != pod.Status.PodIP {
			t.Errorf("%q and %q are %q and %q", row.single, row.list, pod.Status.PodIP, got)
		}
		if q := pod.Status.AllocatedResources["cpu"]; q.String() != "1m" {
			t.Errorf("0.1m is stored as %s", q.String())
		}
		if len(pod.Spec.Resources.Requests) > 0 {
			t.Errorf("a device is limited, requested is %v", pod.Spec.Resources.Requests)
		}
	}
}

func TestSetDefaultsSpecLeavesTemplatesAlone(t *testing.T) {
	spec := &corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{
		Name: "a", Image: "b", Ports: []corev1.ContainerPort{{ContainerPort: 1}},
		Resources:     corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": quantity("1")}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}},
	}}}
	SetDefaultsSpec(spec)
	if spec.EnableServiceLinks != nil || spec.Containers[0].Ports[0].HostPort != 0 || spec.Containers[0].Resources.Requests != nil {
		t.Errorf("pod-only defaults in a template: %+v", spec)
	}
	if spec.RestartPolicy != corev1.RestartPolicyAlways || spec.Containers[0].LivenessProbe.PeriodSeconds != 10 {
		t.Errorf("shared defaults are missing: %+v", spec)
	}
}
