// SPDX-License-Identifier: Apache-2.0

package podspec

import "testing"

// BenchmarkCreate is what the rules cost a created Pod.
func BenchmarkCreate(b *testing.B) {
	pod := goodPod()
	for b.Loop() {
		SetDefaults(pod)
		Validate(pod)
		Unsupported(pod)
	}
}
