// SPDX-License-Identifier: Apache-2.0

package gather

import "testing"

// DA-11: what can be asked about is a pod, or what makes pods, in the words that kubectl has for them.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{"web": " web", "pod/web": "Pod web", "pods/web": "Pod web",
		"deploy/web": "Deployment web", "deployment.apps/web": "Deployment web", "job/x": "Job x", "service/web": "",
		"pod/": "", "": "", "pod/a/b": ""} {
		kind, name, err := Parse(text)
		if got := kind + " " + name; err == nil && got != want || err != nil && want != "" {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
