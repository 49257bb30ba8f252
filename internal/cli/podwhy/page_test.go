// SPDX-License-Identifier: Apache-2.0

package podwhy

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wherryproject/wherry/internal/why"
)

func answer() why.Answer {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return why.Answer{Kind: "Pod", Namespace: "shop", Name: "web",
		State: "Running, 0 of 1 containers ready, on node n1", Wrong: true, Findings: []why.Finding{
			{Where: "container web", What: "its program failed with exit code 1",
				Facts: []why.Fact{{Says: "exit code 1", From: "status of web"}},
				Try:   []string{"do as its log says, which is said at some length here so that it has to go on in another line"}},
			{Where: "container db", What: "it was killed", Past: true}},
		Logs: []why.Log{{Container: "web", Previous: true, Lines: strings.Split("1 2 3 4 5 6 7 8 9", " ")}},
		Changes: []why.Change{{At: noon, What: "the pod was created", By: "kubectl", From: "metadata"},
			{At: noon, What: "BackOff", From: "event", Sign: true}},
		Unseen: []why.Unseen{{What: "nodes", Right: "list nodes"}, {What: "services", Why: "the server is away"}}}
}

// DA-11: an answer is laid out for a person, in lines that fit the terminal.
func TestPage(t *testing.T) {
	const want = `Deployment web has one pod.
Pod shop/web: Running, 0 of 1 containers ready, on node n1

1. container web: its program failed with exit code 1
   - exit code 1 [status of web]
   Try: do as its log says, which is said at some length
        here so that it has to go on in another line

What was, and is over, or does not keep it from running:

2. container db: it was killed

Last lines of the log of web, of the run before this one:
  | 2
  | 3
  | 4
  | 5
  | 6
  | 7
  | 8
  | 9

What happened:
  2026-11-20 12:00:00 the pod was created, by kubectl
    [metadata]
  2026-11-20 12:00:00 first sign of trouble: BackOff
    [event]

Not looked at:
  nodes: you have no right to list nodes
  services: the server is away
`
	p := page{width: 60, zone: time.UTC}
	if got := p.text(answer(), "Deployment web has one pod"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	coloured := page{width: 60, zone: time.UTC, colour: true}
	got := coloured.text(answer(), "")
	if !strings.Contains(got, "\x1b[1;31m1. container web:\x1b[0m its program") ||
		strings.Count(got, "\x1b[0m")*2 != strings.Count(got, "\x1b[") {
		t.Errorf("%q", got)
	}
	well := page{zone: time.UTC}
	if got := well.text(why.Answer{Kind: "Pod", Namespace: "a", Name: "b", State: "Running",
		Summary: "Nothing is wrong."}, ""); got != "Pod a/b: Running\nNothing is wrong.\n" {
		t.Errorf("%q", got)
	}
}

// FuzzWrap cuts texts of others into lines: no word is lost, and no line is longer than it may be unless it is one
// word.
func FuzzWrap(f *testing.F) {
	f.Add("a few words that are more than a line", 20)
	f.Fuzz(func(t *testing.T, text string, width int) {
		lines := wrap(text, width)
		if strings.Join(strings.Fields(strings.Join(lines, " ")), " ") != strings.Join(strings.Fields(text), " ") {
			t.Errorf("%q becomes %q", text, lines)
		}
		for _, l := range lines {
			if len(lines) > 1 && utf8.RuneCountInString(l) > width && len(strings.Fields(l)) > 1 {
				t.Errorf("%q is longer than %d", l, width)
			}
		}
	})
}
