// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strings"
	"testing"
	"testing/fstest"
)

// PL-15: the page has every kind of field with what becomes of it, and the tests in whose text it is.
func TestPage(t *testing.T) {
	page, err := Page(fstest.MapFS{"test/e2e/a_test.go": {Data: []byte("package e2e\n\nfunc TestOne(t *testing.T) {\n" +
		"\tk.up(`spec: {hostUsers: false}`)\n}\n\nfunc TestTwo(t *testing.T) { pod.Spec.NodeName = x }\n")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `spec.hostUsers` | honoured | test/e2e.TestOne |\n", "| `spec.nodeName` | honoured | test/e2e.TestTwo |\n",
		"| `spec.resourceClaims` | refused: ", "| `spec.os.name` | honoured; `windows` is refused: ",
		"| `containers[].securityContext.procMount` | honoured |",
		"| `containers[].livenessProbe.grpc.port` | honoured |",
		"| `volumes[].projected.sources[].serviceAccountToken` | honoured |",
		"| `volumes[].configMap.items[].user` | refused: ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| `") && strings.Count(strings.ReplaceAll(line, "\\|", ""), " | ") != 2 {
			t.Errorf("a line has other columns: %s", line)
		}
	}
}
