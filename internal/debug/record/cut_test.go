// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// TestRecordsAreBounded (RS-01): a record of a debug run keeps the beginning of its command, however long that is and
// however many words it has. ATTACK B14, ATTACK B24.
func TestRecordsAreBounded(t *testing.T) {
	for name, words := range map[string][]string{
		"one long word": {"sh", "-c", strings.Repeat("ä", 450000)},
		"many words":    slices.Repeat([]string{"x"}, 450000),
		"empty words":   slices.Repeat([]string{""}, 450000),
	} {
		got := cutWords(words, maxKept)
		n := len(got)
		for _, w := range got {
			n += len(w)
		}
		if n > maxKept+100 || !strings.HasSuffix(got[len(got)-1], "…(cut)") || got[0] != words[0] {
			t.Errorf("%s: %d words, %d bytes", name, len(got), n)
		}
	}
	image := strings.Repeat("ä", 450000)
	if got := cutText(image, debugask.MaxImage); len(got) > debugask.MaxImage+20 || !strings.HasSuffix(got, "ä…(cut)") {
		t.Errorf("the name of an image of 900 KB: %d bytes", len(got))
	}
	if got := cutText("tools:1", debugask.MaxImage); got != "tools:1" {
		t.Errorf("a short name of an image became %q", got)
	}
	short := []string{"sh", "-c", strings.Repeat("x", 8000)}
	if got := cutWords(short, maxKept); !slices.Equal(got, short) {
		t.Errorf("a command of 8 KB is cut: %d words", len(got))
	}
}
