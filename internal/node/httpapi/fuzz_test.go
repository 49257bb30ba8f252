// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"
	"testing"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// FuzzSizes reads what a client says of its window: the last size is kept, and the channel is closed whatever was said.
func FuzzSizes(f *testing.F) {
	f.Add(`{"Width":80,"Height":25}{"Width":81,"Height":25}`)
	f.Add(`{"Width":-1}`)
	f.Add("[]{")
	f.Fuzz(func(t *testing.T, text string) {
		sizes := make(chan remotecommand.TerminalSize, 1)
		from := strings.NewReader(text)
		readSizes(from, sizes)
		n := 0
		for range sizes {
			n++
		}
		if n > 1 || from.Len() > 0 {
			t.Errorf("%d sizes, and %d bytes are left", n, from.Len())
		}
	})
}
