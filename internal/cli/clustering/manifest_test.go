// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
)

// Flags count for more than the file of values, which counts for more than the defaults; JSON and YAML say the same.
func TestManifestOfFlagsAndFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.yaml")
	text := "image: x/from-file:1\nimagePullPolicy: Always\nagent: {nodeSelector: {a: b}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"manifest", "-f", file, "--image", "x/from-flag:2", "--node-selector", "pool=apps"}
	out, _, err := call(t, nil, append(args, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		metav1.TypeMeta
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || list.Kind != "List" {
		t.Fatalf("%v, %s", err, list.Kind)
	}
	plain, _, err := call(t, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	if objects, err := manifest.Decode([]byte(plain)); err != nil || len(objects) != len(list.Items) {
		t.Errorf("YAML has %d objects, JSON %d: %v", len(objects), len(list.Items), err)
	}
	for _, item := range list.Items {
		var d appsv1.DaemonSet
		if err := json.Unmarshal(item, &d); err != nil || d.Kind != "DaemonSet" {
			continue
		}
		pod := d.Spec.Template.Spec
		if c := pod.Containers[0]; c.Image != "x/from-flag:2" || c.ImagePullPolicy != "Always" || pod.NodeSelector["a"] != "b" ||
			pod.NodeSelector["pool"] != "apps" || pod.NodeSelector["kubernetes.io/os"] != "linux" {
			t.Errorf("%s, %s, %v", c.Image, c.ImagePullPolicy, pod.NodeSelector)
		}
		return
	}
	t.Error("there is no DaemonSet")
}

// What is wrong in a file of values is said, and nothing is printed.
func TestBadValuesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.yaml")
	for text, want := range map[string]string{"agnet: {}": "agnet", "api: {replicas: 99}": "use 1 to 16", "a: b: c": "not a file of values"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, err := call(t, nil, "manifest", "--values", file)
		exit, is := errors.AsType[*cmdline.Exit](err)
		if !is || exit.Code != cmdline.ExitUsage || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%q: %v, %q", text, err, out)
		}
	}
}

func TestChartCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "chart")
	if _, errs, err := call(t, nil, "chart", dir); err != nil || !strings.Contains(errs, "helm install wherry-debug "+dir) {
		t.Errorf("%v, %s", err, errs)
	}
	if _, _, err := call(t, nil, "chart", dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a second time: %v", err)
	}
}
