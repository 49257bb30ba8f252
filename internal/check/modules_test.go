// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

func goMod(t *testing.T) *modfile.File { return modFile(t, "go.mod") }

func modFile(t *testing.T, name string) *modfile.File {
	t.Helper()
	path := filepath.Join(root, name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modfile.Parse(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ownVersions are the k8s.io modules that are not released together with Kubernetes.
var ownVersions = map[string]bool{"k8s.io/gengo/v2": true, "k8s.io/klog/v2": true, "k8s.io/kube-openapi": true, "k8s.io/utils": true}

// Modules of one Kubernetes release are tested with one another only.
func TestKubernetesModulesAreOfOneVersion(t *testing.T) {
	m := goMod(t)
	want := ""
	for _, r := range m.Require {
		if r.Mod.Path == "k8s.io/api" {
			want = r.Mod.Version
		}
	}
	if want == "" {
		t.Fatal("go.mod does not require k8s.io/api")
	}
	for _, r := range m.Require {
		have := r.Mod.Version
		if r.Mod.Path == "k8s.io/kubernetes" { // numbered as the program is
			have = "v0" + strings.TrimPrefix(have, "v1")
		}
		if strings.HasPrefix(r.Mod.Path, "k8s.io/") && !ownVersions[r.Mod.Path] && have != want {
			t.Errorf("%s is at %s, k8s.io/api at %s: hold them together", r.Mod.Path, r.Mod.Version, want)
		}
	}
}

// What our rules are compared with, and whose conformance suite is run, is the release whose modules we use.
func TestRulesAreComparedWithTheSameVersion(t *testing.T) {
	want := ""
	for _, r := range goMod(t).Require {
		if r.Mod.Path == "k8s.io/api" {
			want = r.Mod.Version
		}
	}
	for _, name := range []string{"test/agree/go.mod", "test/conformance/go.mod"} {
		m := modFile(t, name)
		for _, r := range m.Require {
			if r.Mod.Path == "k8s.io/kubernetes" &&
				strings.TrimPrefix(r.Mod.Version, "v1") != strings.TrimPrefix(want, "v0") {
				t.Errorf("%s has Kubernetes %s; the k8s.io modules are at %s", name, r.Mod.Version, want)
			}
		}
		for _, r := range m.Replace {
			if strings.HasPrefix(r.Old.Path, "k8s.io/") && r.New.Version != want {
				t.Errorf("%s replaces %s by %s; the k8s.io modules are at %s", name, r.Old.Path, r.New.Version, want)
			}
		}
	}
}

// A replaced module is not what its version says. The exception are the modules that Kubernetes' own go.mod asks for at v0.0.0, which
// was never published: each is replaced by itself, at the version of the others (docs/decisions/040).
func TestOnlyKubernetesModulesAreReplaced(t *testing.T) {
	m := goMod(t)
	want := ""
	for _, r := range m.Require {
		if r.Mod.Path == "k8s.io/kubernetes" {
			want = "v0" + strings.TrimPrefix(r.Mod.Version, "v1")
		}
	}
	for _, r := range m.Replace {
		if !strings.HasPrefix(r.Old.Path, "k8s.io/") || r.New.Path != r.Old.Path || r.New.Version != want {
			t.Errorf("go.mod replaces %s by %s %s: depend on a release", r.Old.Path, r.New.Path, r.New.Version)
		}
	}
}

// What a module beside ours has of the modules that ours has is of the same version: else all that rests on it is compiled once more, for
// the same answer. The exceptions are those on which nothing rests that both have.
func TestModulesBesideOursHaveItsVersions(t *testing.T) {
	ours := map[string]string{}
	for _, r := range goMod(t).Require {
		ours[r.Mod.Path] = r.Mod.Version
	}
	leaves := map[string]bool{"github.com/cpuguy83/go-md2man/v2": true, "github.com/tetratelabs/wazero": true,
		"github.com/pmezard/go-difflib": true}
	for _, name := range []string{"test/agree/go.mod", "test/browser/go.mod", "test/helm/go.mod", "toolbox/go.mod"} {
		for _, r := range modFile(t, name).Require {
			if have := ours[r.Mod.Path]; have != "" && have != r.Mod.Version && !leaves[r.Mod.Path] {
				t.Errorf("%s has %s %s, go.mod has %s: hold them together, by exclude if need be", name, r.Mod.Path, r.Mod.Version, have)
			}
		}
	}
}
