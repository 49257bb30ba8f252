// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// goodPod is valid and uses much of what there is: an init, a sidecar, two mains, volumes of every local kind.
// Tests spoil one thing in it at a time.
func goodPod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "default", UID: "u1", ResourceVersion: "1", Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "scratch"},
				{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "conf"},
					Items:                []corev1.KeyToPath{{Key: "a.txt", Path: "etc/a.txt"}},
				}}},
				{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}},
				{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}},
				{Name: "info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
				}}}},
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}}},
				}}}},
			},
			InitContainers: []corev1.Container{
				{Name: "setup", Image: "setup:1"},
				{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{
				{
					Name: "main", Image: "registry.example.com/web:1.2", Command: []string{"/web"},
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, HostPort: 18080}},
					Env: []corev1.EnvVar{
						{Name: "A", Value: "1"},
						{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
					},
					EnvFrom: []corev1.EnvFromSource{{Prefix: "X_", ConfigMapRef: &corev1.ConfigMapEnvSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "conf"},
					}}},
					Resources: corev1.ResourceRequirements{
						Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("64Mi")},
						Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
					},
					VolumeMounts: []corev1.VolumeMount{
						{Name: "scratch", MountPath: "/tmp"},
						{Name: "conf", MountPath: "/etc/web", SubPath: "etc", ReadOnly: true},
					},
					SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(1000))},
				},
				{Name: "helper", Image: "helper"},
			},
		},
	}
	SetDefaults(pod)
	return pod
}

func probe(change func(*corev1.Probe)) *corev1.Probe {
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}}
	defaultProbe(p)
	if change != nil {
		change(p)
	}
	return p
}

func TestGoodPodIsValid(t *testing.T) {
	for _, e := range Validate(goodPod()) {
		t.Error(e)
	}
}
