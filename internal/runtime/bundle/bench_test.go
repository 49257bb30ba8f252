// SPDX-License-Identifier: Apache-2.0

package bundle

import "testing"

// What a first start spends on its helper programs (docs/decisions/067-helper-programs-are-compressed.md).
func BenchmarkUnpack(b *testing.B) {
	for b.Loop() {
		if err := Embedded().Unpack(b.TempDir()); err != nil {
			b.Fatal(err)
		}
	}
}
