// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wherryproject/wherry/internal/check/deps"
)

// budget is the largest size of bin/wherry. Raise it only with a reason in the commit: all of it is read from disk at a start.
const budget = 186 << 20

// inBinary lists what bin/wherry is made of.
var inBinary = sync.OnceValues(func() ([]deps.Module, error) {
	return deps.List(context.Background(), root, "./cmd/wherry")
})

// The binary holds etcd, an API server and containerd; one careless import brings a cloud provider's client. So the list of what
// is in it is reviewed like code.
func TestDependenciesAreReviewed(t *testing.T) {
	list, err := inBinary()
	if err != nil {
		t.Fatal(err)
	}
	var now bytes.Buffer
	if err := deps.Write(&now, list, 0); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(root, "docs/dependencies.txt"))
	if err != nil {
		t.Fatal(err)
	}
	old, cur := strings.Split(deps.Essence(string(stored)), "\n"), strings.Split(deps.Essence(now.String()), "\n")
	for _, line := range cur {
		if !slices.Contains(old, line) {
			t.Errorf("new in the binary: %s", strings.TrimSpace(line))
		}
	}
	for _, line := range old {
		if !slices.Contains(cur, line) {
			t.Errorf("no longer in the binary: %s", strings.TrimSpace(line))
		}
	}
	if t.Failed() {
		t.Log("if that is meant: make deps, and say why in the commit")
	}
}

// Some things must not get in, whatever the reason.
func TestBinaryHoldsNoClouds(t *testing.T) {
	bad := map[string]string{
		"github.com/aws/aws-sdk-go-v2":      "cloud clients belong into credential helpers",
		"cloud.google.com/go":               "cloud clients belong into credential helpers",
		"github.com/Azure/azure-sdk-for-go": "cloud clients belong into credential helpers",
		"k8s.io/kubernetes/pkg/kubelet":     "the node agent is ours",
		"github.com/onsi/ginkgo":            "test code",
	}
	list, err := inBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		for _, p := range m.Packages {
			for prefix, why := range bad {
				if p == prefix || strings.HasPrefix(p, prefix+"/") {
					t.Errorf("the binary holds %s: %s", p, why)
				}
			}
		}
	}
}

func TestBinaryKeepsItsSizeBudget(t *testing.T) {
	info, err := os.Stat(filepath.Join(root, "bin/wherry"))
	if err != nil {
		t.Skip("bin/wherry is not built; make test builds it first")
	}
	if info.Size() > budget {
		t.Errorf("bin/wherry has %d MiB; its budget is %d: see docs/dependencies.txt for what grew", info.Size()>>20, budget>>20)
	}
}

// bin/wherry is two programs and what chooses between them (docs/decisions/018): the main one alone would do the same, and nobody
// would notice but by the time it takes.
func TestBinaryHoldsBothPrograms(t *testing.T) {
	f, err := elf.Open(filepath.Join(root, "bin/wherry"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("bin/wherry is not built; make test builds it first")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entry, short := f.Section(".entry.0"), f.Section(".short.0")
	if entry == nil || short == nil || f.Entry < entry.Addr || f.Entry >= entry.Addr+entry.Size {
		t.Errorf("bin/wherry does not begin in its entry (%v), or has no short program (%v)", entry, short)
	}
}
