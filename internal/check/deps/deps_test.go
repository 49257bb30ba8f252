// SPDX-License-Identifier: Apache-2.0

package deps

import (
	"os"
	"strings"
	"testing"
)

func TestParseAndWrite(t *testing.T) {
	list, err := parse([]byte(`{"ImportPath":"fmt","Standard":true}
{"ImportPath":"b/y","Module":{"Path":"b","Version":"v1.0.0"}}
{"ImportPath":"b/x","Module":{"Path":"b","Version":"v1.0.0"}}
{"ImportPath":"a/cmd","Module":{"Path":"a","Main":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Write(&b, list, 3<<20); err != nil {
		t.Fatal(err)
	}
	if want := "\nb v1.0.0\n  b/x\n  b/y\n\nstd\n  fmt\n"; Essence(b.String()) != want {
		t.Errorf("got\n%s", b.String())
	}
	if !strings.Contains(b.String(), "# binary: 3.0 MiB; modules: 2; packages: 3\n") {
		t.Errorf("got\n%s", b.String())
	}
}

func TestPackageOf(t *testing.T) {
	for name, want := range map[string]string{
		"fmt.Println":                              "fmt",
		"k8s.io/api/core/v1.(*Pod).Marshal":        "k8s.io/api/core/v1",
		"gopkg.in/yaml%2ev3.Unmarshal":             "gopkg.in/yaml.v3",
		"slices.SortFunc[go.shape.*uint8,a/b.C]":   "slices",
		"go.etcd.io/etcd/server/v3/embed.init.0":   "go.etcd.io/etcd/server/v3/embed",
		"type:.eq.k8s.io/api/core/v1.ResourceName": "type:.eq.k8s.io/api/core/v1",
	} {
		if got := packageOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The running test is a Go program too.
func TestSizes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := []Module{{Path: Standard, Packages: []string{"fmt", "testing"}}, {Path: "none", Packages: []string{"no/such"}}}
	if err := Sizes(self, list); err != nil {
		t.Fatal(err)
	}
	if list[0].Code < 10<<10 || list[1].Code != 0 {
		t.Errorf("measured %d and %d", list[0].Code, list[1].Code)
	}
}
