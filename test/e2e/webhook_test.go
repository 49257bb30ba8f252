// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSidecarInjectingWebhook runs the script of examples/sidecar-injector: a webhook that runs in a pod puts a sidecar first into a
// pod that kubectl creates (SC-22, EC-21); it starts before the app's init container, which needs it, and the app gets ready (SC-03).
func TestSidecarInjectingWebhook(t *testing.T) {
	t.Parallel()
	s := shared(t)
	images, err := filepath.Abs("../../bin/images")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(images, "sidecar-injector.tar")); err != nil {
		t.Fatalf("the example's image is not built (%v): run `make test-e2e`", err)
	}
	t.Cleanup(func() { // before the namespace goes: the script was told to leave everything there, and the rule is of the whole server
		s.Kubectl("delete", "mutatingwebhookconfiguration", "sidecar-injector-"+s.Namespace)
	})
	cmd := exec.CommandContext(s.Context(), "../../examples/sidecar-injector/run.sh")
	cmd.Env = append(os.Environ(), "WHERRY="+s.World.Wherry, "NAMESPACE="+s.Namespace, "KUBECONFIG="+s.Kubeconfig, "HOME="+t.TempDir(), "WHERRY_DATA_DIR="+s.DataDir,
		"IMAGES="+images, "KEEP=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	Result{T: t, Line: "run.sh", Out: string(out)}.Has("injected-sidecar comes first", "injected-sidecar\ninit\n", "greetings from the sidecar")

	app := s.Get("app")
	first := app.Spec.InitContainers[0]
	if first.Name != "injected-sidecar" || first.RestartPolicy == nil || *first.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Fatalf("first init container %+v", first)
	}
	var sidecar, init *corev1.ContainerStatus
	for i := range app.Status.InitContainerStatuses {
		switch c := &app.Status.InitContainerStatuses[i]; c.Name {
		case "injected-sidecar":
			sidecar = c
		case "init":
			init = c
		}
	}
	if sidecar == nil || sidecar.State.Running == nil || init == nil || init.State.Terminated == nil || init.RestartCount != 0 {
		t.Fatalf("sidecar %+v, init %+v", sidecar, init)
	}
	if init.State.Terminated.StartedAt.Before(&sidecar.State.Running.StartedAt) {
		t.Errorf("init began at %s, before the sidecar at %s", init.State.Terminated.StartedAt, sidecar.State.Running.StartedAt)
	}

	t.Run("SC-22 fails closed: without the injector there is no such pod", func(t *testing.T) {
		s.Kubectl("delete", "pod", "sidecar-injector", "--wait")
		app := NewPod("late", Sh(Idle))
		app.Labels["sidecar-injector.example/inject"] = "true"
		if _, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.Context(), app, metav1.CreateOptions{}); err == nil {
			t.Error("the pod was created without its sidecar")
		}
		s.Create(NewPod("plain", Sh(Idle)))
	})
}
