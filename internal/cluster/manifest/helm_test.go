// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The chart, as Helm renders it, is the plain manifest: with its defaults, and with all values other than those.
func TestHelmSaysTheSame(t *testing.T) {
	const program = "../../../bin/helm"
	if _, err := os.Stat(program); err != nil {
		t.Skip("Helm is not here: run make bin/helm")
	}
	chart := filepath.Join(t.TempDir(), "chart")
	if err := WriteChart(chart, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	helm := func(args ...string) []byte {
		t.Helper()
		home := t.TempDir()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
		}
		return out
	}
	helm("lint", "--strict", chart)
	file := filepath.Join(t.TempDir(), "values.yaml")
	text, err := yaml.Marshal(full(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	same(t, objects(t, defaults(t)), helm("template", "wherry-debug", chart))
	same(t, objects(t, full(t)), helm("template", "any", chart, "--namespace", "another", "--values", file,
		"--set", "agent.nodeSelector.kubernetes\\.io/os=null,agent.resources=null"))
	bad := exec.CommandContext(t.Context(), program, "template", "x", chart, "--set", "agent.nope=1")
	if out, err := bad.CombinedOutput(); err == nil || !strings.Contains(string(out), "nope") {
		t.Errorf("a value that there is not: %v, %s", err, out)
	}
}

func same(t *testing.T, want []*unstructured.Unstructured, text []byte) {
	t.Helper()
	got, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	key := func(o *unstructured.Unstructured) string {
		return o.GetAPIVersion() + " " + o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	set := func(all []*unstructured.Unstructured) map[string]any {
		m := map[string]any{}
		for _, o := range all {
			m[key(o)] = o.Object
		}
		return m
	}
	if len(got) != len(want) {
		t.Errorf("Helm makes %d objects, want %d", len(got), len(want))
	}
	if d := cmp.Diff(set(want), set(got)); d != "" {
		t.Errorf("Helm makes others: %s", d)
	}
}

// A chart is not written among other files.
func TestChartNeedsAFolderOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := WriteChart(dir, "v1"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "templates/_names.tpl", "templates/50-agent.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := WriteChart(dir, "v1"); err == nil || !strings.Contains(err.Error(), dir+" is not empty") {
		t.Errorf("%v", err)
	}
}
