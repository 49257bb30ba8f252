// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
