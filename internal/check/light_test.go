// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os/exec"
	"strings"
	"testing"
)

// The short program is there because it starts in a tenth of the time, so nothing it imports may be what takes that time.
func TestShortIsLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"/cmd/wherry-short").Output()
	if err != nil {
		t.Fatal(err)
	}
	few := []string{"github.com/gorilla/websocket", "github.com/spf13/pflag", "go.yaml.in/yaml/v3", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/term"}
	ours := 0
	for _, p := range strings.Fields(string(out)) {
		if strings.HasPrefix(p, module+"/") {
			ours++
			continue
		}
		first, _, _ := strings.Cut(p, "/")
		if !strings.Contains(first, ".") || first == "vendor" || strings.HasPrefix(p, "crypto/") {
			continue // of Go itself
		}
		known := false
		for _, f := range few {
			known = known || p == f || strings.HasPrefix(p, f+"/")
		}
		if !known {
			t.Errorf("cmd/wherry-short imports %s, by way of others perhaps: it would wait for that", p)
		}
	}
	if ours < 5 {
		t.Errorf("only %d packages of ours: has it moved?", ours)
	}
}
