// SPDX-License-Identifier: Apache-2.0

package kubeletconfig

import "testing"

// FuzzParse (PL-36): whatever a file says, it is refused or turned into flags and words, and put over itself it says
// the same.
func FuzzParse(f *testing.F) {
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for _, text := range []string{"", head, head + "maxPods: 12\ncpuManagerPolicy: static",
		head + "evictionHard: {memory.available: 200Mi}\nauthentication: {x509: {clientCAFile: /ca.crt}}",
		head + "clusterDNS: [10.1.0.10]\nstaticPodPath: /x\nauthorization: null", "[]", "kind: 1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		one, err := parse(text)
		if err != nil {
			return
		}
		before, err := decide(one)
		if err != nil {
			return
		}
		again, err := parse(text)
		if err != nil {
			t.Fatalf("refused when read again: %v", err)
		}
		merge(again, one)
		if after, err := decide(again); err != nil || len(after.Flags) != len(before.Flags) ||
			len(after.Ignored) != len(before.Ignored) {
			t.Errorf("over itself: %+v, %v; alone: %+v", after, err, before)
		}
	})
}
