// SPDX-License-Identifier: Apache-2.0

package why

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// answered is an answer in examples/broken/answers.yaml.
type answered struct{ Where, Says, Fact, Try string }

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// DA-11: of each broken pod of examples/broken the first finding is what an experienced operator would say, from facts
// that were recorded on a server.
func TestBrokenPods(t *testing.T) {
	var answers map[string]answered
	read(t, "../../examples/broken/answers.yaml", &answers)
	examples, err := filepath.Glob("../../examples/broken/*.yaml")
	if err != nil || len(examples) != len(answers)+1 || len(answers) < 20 {
		t.Errorf("%d examples (%v), %d answers", len(examples)-1, err, len(answers))
	}
	for name, want := range answers {
		t.Run(name, func(t *testing.T) {
			var f Facts
			read(t, "testdata/"+name+".yaml", &f)
			check(t, Explain(f), want)
		})
	}
}

// check compares the first finding of an answer.
func check(t *testing.T, a Answer, want answered) {
	t.Helper()
	if !a.Wrong || len(a.Findings) == 0 {
		t.Fatalf("nothing is found to be wrong: %+v", a)
	}
	f := a.Findings[0]
	var facts []string
	for _, fact := range f.Facts {
		facts = append(facts, fact.Says)
		if fact.From == "" {
			t.Errorf("a fact from nowhere: %s", fact.Says)
		}
	}
	if f.Where != want.Where || !strings.Contains(f.What, want.Says) ||
		!strings.Contains(strings.Join(facts, "\n"), want.Fact) ||
		!strings.Contains(strings.Join(f.Try, "\n"), want.Try) {
		t.Errorf("it says: %s: %s\n%s\ntry: %s\nwant %+v", f.Where, f.What, strings.Join(facts, "\n"),
			strings.Join(f.Try, "\n"), want)
	}
	if len(a.Findings) > 1 {
		t.Errorf("more than one thing: %+v", a.Findings[1:])
	}
	if !strings.Contains(a.Summary, f.What) || len(a.Changes) == 0 {
		t.Errorf("summary %q, changes %v", a.Summary, a.Changes)
	}
}
