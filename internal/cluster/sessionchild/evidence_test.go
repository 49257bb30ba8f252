// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// The end of a log is text of a bounded length, whatever was written.
func TestLastOf(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 9, "abc"},
		{"abc", 2, "bc"},
		{"abc", 0, ""},
		{"äöü", 3, "ü"},
		{"a\xffb", 9, "a\uFFFDb"},
		{"a\xffb", 3, "b"},
	} {
		got := lastOf(test.text, test.most)
		if got != test.want || len(got) > test.most || !utf8.ValidString(got) {
			t.Errorf("%q, %d: %q", test.text, test.most, got)
		}
	}
}

// What is told of a pod whose every log is full of what is long in JSON fits into one report.
func TestEvidenceFits(t *testing.T) {
	var all wire.EvidenceOf
	left := logAll
	for range mostShown {
		e := wire.ContainerEvidence{Name: strings.Repeat("n", 63), Message: strings.Repeat("\x01", 4<<10),
			Log: lastOf(strings.Repeat("\x01", 1<<20), min(logMost, left))}
		left -= len(e.Log)
		all.Containers = append(all.Containers, e)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var line bytes.Buffer
	reporter{json.NewEncoder(&line)}.say(talk.Report{Evidence: text})
	if line.Len() < len(text) || line.Len() >= talk.MostReport {
		t.Errorf("%d bytes of %d", line.Len(), talk.MostReport)
	}
}
