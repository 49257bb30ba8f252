// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// IX-04: a copy from or to what a container has from the kernel is refused before anything is asked of the server, and so is one from pod to
// pod; each says what to do.
func TestCpOfKernels(t *testing.T) {
	for _, row := range []struct {
		from, to string
		code     int
		want     string // "": that is no reason to refuse it
	}{
		{"x", "web:/dev/null", 1, "error: /dev/null: /dev, /proc and /sys in a container belong to the kernel and cannot be copied from or to; write to it with: wherry exec -i web -- sh -c 'cat > /dev/null'"},
		{"-", "shop/web:/dev", 1, "write to it with"},
		{"x", "web:dev/../proc/sys/x", 1, "write to it with"},
		{"web:/proc/1/status", ".", 1, "read it with: wherry exec web -- cat /proc/1/status"},
		{"web:/sys", "-", 1, "read it with"},
		{"web:/a", "db:/b", 2, "from pod to pod: wherry cp POD:PATH - | wherry cp - POD:FOLDER"},
		{"x", "web:/device", 1, ""},
		{"web:/var/dev/x", ".", 1, ""},
	} {
		code, _, errs := call(t, "", "cp", "--kubeconfig", "/does/not/exist", row.from, row.to)
		if code != row.code || !strings.Contains(errs, row.want) || row.want == "" && !strings.Contains(errs, "/does/not/exist") {
			t.Errorf("%s to %s: %d, %s", row.from, row.to, code, errs)
		}
	}
}
