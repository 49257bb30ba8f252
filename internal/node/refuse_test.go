// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/features"
)

// TestRefuseWhatIsOff proves SC-18 and PID-12 at the agent: a pod that needs a feature that is off is rejected with a reason,
// also one that it has begun while the feature was on.
func TestRefuseWhatIsOff(t *testing.T) {
	sidecar := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}}}
	shared := &corev1.Pod{Spec: corev1.PodSpec{ShareProcessNamespace: new(true)}}
	for _, row := range []struct {
		off  string
		pod  *corev1.Pod
		want string // in the message; "" = it is taken
	}{
		{"SidecarContainers", sidecar, "spec.initContainers[0].restartPolicy needs the feature gate SidecarContainers, which is off at this node"},
		{"SidecarContainers", shared, ""},
		{"PodShareProcessNamespace", shared, "spec.shareProcessNamespace needs the feature gate PodShareProcessNamespace, which is off at this node"},
		{"PodShareProcessNamespace", sidecar, ""},
		{"EphemeralContainers", sidecar, ""},
	} {
		gates, err := features.New(map[string]bool{row.off: false})
		if err != nil {
			t.Fatal(err)
		}
		r := (&Agent{cfg: Config{Features: gates}, machine: machine{apparmor: true}, evictor: &evictor{}}).Refuse(row.pod)
		switch {
		case row.want == "" && r != nil:
			t.Errorf("%s off: refused: %s", row.off, r.Message)
		case row.want == "":
		case r == nil:
			t.Errorf("%s off: taken", row.off)
		case r.Reason != "FeatureGateOff" || !strings.Contains(r.Message, row.want) || !r.Begun:
			t.Errorf("%s off: %+v", row.off, *r)
		}
	}
	if r := (&Agent{machine: machine{apparmor: true}, evictor: &evictor{}}).Refuse(sidecar); r != nil {
		t.Errorf("gates at their defaults: %s", r.Message)
	}
}

// TestRefuseReasons proves PL-20, PL-29: what this node does not do is refused with Kubernetes' reason, where that has one.
func TestRefuseReasons(t *testing.T) {
	strict := corev1.SupplementalGroupsPolicyStrict
	for want, security := range map[string]*corev1.PodSecurityContext{
		"AppArmor":                             {AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}},
		"SupplementalGroupsPolicyNotSupported": {SupplementalGroupsPolicy: &strict},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: security}}
		if r := (&Agent{evictor: &evictor{}}).Refuse(pod); r == nil || r.Reason != want {
			t.Errorf("%+v, want the reason %s", r, want)
		}
	}
}

// TestRefuseAnotherSystem proves PL-20: a pod that somebody has bound past the scheduler and that is for another operating
// system is refused, with Kubernetes' reason.
func TestRefuseAnotherSystem(t *testing.T) {
	for _, row := range []struct {
		name string
		pod  corev1.Pod
		want string // reason; "" = it is taken
	}{
		{"windows", corev1.Pod{Spec: corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}}, "PodOSNotSupported"},
		{"linux", corev1.Pod{Spec: corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}}, ""},
		{"any", corev1.Pod{}, ""},
		{"labelled windows", corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelOSStable: "windows"}}},
			"PodOSSelectorNodeLabelDoesNotMatch"},
		{"labelled linux", corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelOSStable: "linux"}}}, ""},
	} {
		r := (&Agent{machine: machine{apparmor: true}, evictor: &evictor{}}).Refuse(&row.pod)
		switch {
		case row.want == "" && r != nil:
			t.Errorf("%s: refused: %+v", row.name, *r)
		case row.want == "":
		case r == nil:
			t.Errorf("%s: taken", row.name)
		case r.Reason != row.want || !strings.Contains(r.Message, "match"):
			t.Errorf("%s: %+v", row.name, *r)
		}
	}
}
