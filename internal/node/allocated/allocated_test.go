// SPDX-License-Identifier: Apache-2.0

package allocated

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/podspec"
)

func podOf(cpu string) *corev1.Pod {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	return &corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: list},
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}}}}
}

// PL-14: what was set aside outlives the agent; a pod without a folder has none, and a damaged file says nothing.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "gone"), podspec.ResourcesOf(podOf("1"))); err != nil {
		t.Errorf("a pod without a folder: %v", err)
	}
	if _, ok, err := Read(dir); ok || err != nil {
		t.Errorf("nothing was kept: %v, %v", ok, err)
	}
	for _, cpu := range []string{"1", "250m"} {
		if err := Write(dir, podspec.ResourcesOf(podOf(cpu))); err != nil {
			t.Fatal(err)
		}
		r, ok, err := Read(dir)
		if !ok || err != nil || !r.Of(podOf(cpu)) || r.Of(podOf("2")) {
			t.Errorf("%s: %+v, %v, %v", cpu, r, ok, err)
		}
		if got := r.In(podOf("2")); got.Spec.Containers[0].Resources.Requests.Cpu().String() != cpu {
			t.Errorf("in a pod that asks for another: %v", got.Spec.Containers[0].Resources)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(`{"containers":{"c":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Read(dir); ok || err == nil {
		t.Errorf("a damaged file: %v, %v", ok, err)
	}
}

// FuzzRead: whatever the file holds, it is read as amounts or as nothing, and what is read is the same when it is kept
// again.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"containers":{"c":{"requests":{"cpu":"1"}}}}`, `{"pod":null,"containers":{}}`, `{`, `null`, ``,
		`{"containers":{"c":{"limits":{"memory":"99999999999999999999Ei"}}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, ok, _ := Read(dir)
		if !ok {
			return
		}
		pod := podOf("1")
		_ = r.In(pod)
		if err := Write(dir, r); err != nil {
			t.Fatal(err)
		}
		again, ok, err := Read(dir)
		if !ok || err != nil || again.Of(pod) != r.Of(pod) {
			t.Errorf("%q: %+v, %v, %v", text, again, ok, err)
		}
	})
}
