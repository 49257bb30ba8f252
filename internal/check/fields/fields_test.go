// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"strings"
	"testing"
)

// PL-15: the page has every kind of field with what becomes of it.
func TestPage(t *testing.T) {
	page := Page()
	for _, want := range []string{
		"| `spec.hostUsers` | honoured |\n", "| `spec.nodeName` | honoured |\n",
		"| `spec.resourceClaims` | refused: ", "| `spec.os.name` | honoured; `windows`: the node rejects ",
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
		if strings.HasPrefix(line, "| `") && strings.Count(strings.ReplaceAll(line, "\\|", ""), " | ") != 1 {
			t.Errorf("a line has other columns: %s", line)
		}
	}
}
