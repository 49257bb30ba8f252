// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/features"
)

// The same objects every time, so that a run that passes passes again. AGREE_SEED makes others, AGREE_COUNT more of them:
// what they find is mended, or gets a row in differences.go.
const (
	usualSeed  = 1
	usualCount = 2000 // of each kind
)

// TestAgree puts random objects of every served kind to our rules and to Kubernetes': defaults, what is refused and for which
// fields, and what would be stored must be the same, but for the known differences.
func TestAgree(t *testing.T) {
	seed, count := number(t, "AGREE_SEED", usualSeed), number(t, "AGREE_COUNT", usualCount)
	t.Logf("AGREE_SEED=%d AGREE_COUNT=%d", seed, count)
	subjects, words := newSubjects(t)
	rows := known(t)
	for _, s := range subjects {
		t.Run(s.kind.Kind, func(t *testing.T) {
			t.Parallel()
			c := &chooser{rand.New(rand.NewPCG(uint64(seed), hash(s.kind.Kind))), words}
			run(t, s, c, count, rows)
		})
	}
}

// TestDifferencesAreThere fails for a row of the table that no longer is so.
func TestDifferencesAreThere(t *testing.T) {
	subjects, _ := newSubjects(t)
	for _, row := range known(t) {
		i := slices.IndexFunc(subjects, func(s *subject) bool { return s.kind.Kind == row.shownBy })
		if i < 0 {
			t.Fatalf("%s: no kind %s is served", row, row.shownBy)
		}
		_, _, findings := subjects[i].try(row.shown)
		if !slices.ContainsFunc(findings, row.explains) {
			t.Errorf("%s (%s) is no longer shown by its %s: take the row out, or show it otherwise; the findings are %v",
				row, row.why, row.shownBy, findings)
		}
	}
}

func number(t *testing.T, name string, usual int) int {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func known(t *testing.T) []difference {
	text, err := os.ReadFile("differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parseDifferences(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func hash(text string) (h uint64) {
	for _, b := range []byte(text) {
		h = h*31 + uint64(b)
	}
	return h
}

// tally counts one kind's verdicts.
type tally struct{ asked, accepted, verdicts, fields int }

func run(t *testing.T, s *subject, c *chooser, count int, rows []difference) {
	var sum tally
	seen := map[string]int{}
	for i := range count {
		a := c.attempt(s, s.operations[i%len(s.operations)])
		ours, theirs, findings := s.try(a)
		sum.add(ours, theirs, findings)
		for _, f := range findings {
			if slices.ContainsFunc(rows, func(r difference) bool { return r.explains(f) }) {
				continue
			}
			key := f.what + f.field
			if seen[key]++; seen[key] == 1 {
				t.Errorf("%s (%s), for which a row would be\n%s", f, f.words, s.newRow(s.shrink(a, f), f))
			}
		}
	}
	t.Logf("%d requests, %d accepted by both; same verdict %.2f %%, same fields and defaults %.2f %%; %d unexplained",
		sum.asked, sum.accepted, percent(sum.verdicts, sum.asked), percent(sum.fields, sum.asked), len(seen))
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }

func (s *tally) add(ours, theirs verdict, findings []finding) {
	s.asked++
	yes, also := ours.undecoded == nil && len(ours.refused) == 0, theirs.undecoded == nil && len(theirs.refused) == 0
	if yes == also {
		s.verdicts++
	}
	if yes && also {
		s.accepted++
	}
	if len(findings) == 0 {
		s.fields++
	}
}

// attempt makes a request: mostly one change of a good object, so that what it meets is one rule.
func (c *chooser) attempt(s *subject, operation string) attempt {
	a := attempt{operation: operation, good: c.IntN(len(s.good))}
	old := s.good[a.good]
	if operation != create && c.IntN(4) == 0 {
		was := []change{c.change(s.typ, old)}
		if _, theirs, findings := s.try(attempt{operation: create, good: a.good, changes: was}); len(theirs.refused) == 0 && len(findings) == 0 && theirs.undecoded == nil {
			a.old, old = was, applied(old, was)
		}
	}
	for range []int{1, 1, 1, 1, 2, 2, 3, 5}[c.IntN(8)] {
		a.changes = append(a.changes, c.change(s.typ, applied(old, a.changes)))
	}
	return a
}

type loaded struct {
	subjects []*subject
	words    *words
}

func newSubjects(t *testing.T) ([]*subject, *words) {
	l, err := loadSubjects()
	if err != nil {
		t.Fatal(err)
	}
	return l.subjects, l.words
}

func loadSubjects() (*loaded, error) {
	gates, err := features.New(nil)
	if err != nil {
		return nil, err
	}
	book, err := kinds.NewRulebook(gates)
	if err != nil {
		return nil, err
	}
	good, err := goodObjects("testdata")
	if err != nil {
		return nil, err
	}
	words, err := newWords(good)
	if err != nil {
		return nil, err
	}
	klog.SetLogger(logr.Discard()) // upstream notes what is refused twice
	capabilities.Setup(true, 0)    // privileged containers, as every cluster's API server has it
	l, theirs := &loaded{words: words}, upstream()
	for _, r := range book.Kinds {
		rules, ok := theirs[r.Kind.GroupKind()]
		if !ok {
			if strings.HasSuffix(r.Kind.Group, "wherry.dev") {
				continue
			}
			return nil, fmt.Errorf("%s: upstream() has no rules for it", r.Kind)
		}
		s := &subject{kind: r.Kind, typ: reflect.TypeOf(r.New()).Elem(), good: good[r.Kind.Kind], operations: []string{create}}
		if r.Namespaced {
			s.namespace = "default"
		}
		for _, sub := range sortedKeys(r.Updates) {
			if rules.updates[sub] != nil {
				s.operations = append(s.operations, strings.TrimSpace("update "+sub))
			}
		}
		plain, _ := runtime.SerializerInfoForMediaType(book.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
		hub := schema.GroupVersion{Group: r.Kind.Group, Version: runtime.APIVersionInternal}
		s.ours = &side{r.Kind.GroupVersion(), book.Codecs.DecoderToVersion(plain.Serializer, hub), book.Codecs.EncoderForVersion(plain.Serializer, r.Kind.GroupVersion()),
			strategies{r.Create, r.Updates}}
		wire := json.NewSerializerWithOptions(json.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme, json.SerializerOptions{})
		s.theirs = &side{r.Kind.GroupVersion(), legacyscheme.Codecs.DecoderToVersion(wire, hub), legacyscheme.Codecs.EncoderForVersion(wire, r.Kind.GroupVersion()), rules}
		if len(s.good) == 0 {
			return nil, fmt.Errorf("testdata has no %s", r.Kind.Kind)
		}
		l.subjects = append(l.subjects, s)
	}
	return l, nil
}

// goodObjects are those of testdata, by kind.
func goodObjects(dir string) (map[string][]any, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	all := map[string][]any{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var tree map[string]any
			if err := decoder.Decode(&tree); err == io.EOF {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			kind, _ := tree["kind"].(string)
			all[kind] = append(all[kind], tree)
		}
	}
	return all, nil
}

// TestGoodObjectsAreGood: what is changed at random must be valid before, or one rule would hide the others.
func TestGoodObjectsAreGood(t *testing.T) {
	subjects, _ := newSubjects(t)
	for _, s := range subjects {
		for i := range s.good {
			ours, theirs, _ := s.try(attempt{operation: create, good: i})
			for name, v := range map[string]verdict{"ours": ours, "theirs": theirs} {
				if v.undecoded != nil || len(v.refused) > 0 {
					t.Errorf("%s good[%d]: %s: %v %v", s.kind.Kind, i, name, v.undecoded, v.refused)
				}
			}
		}
	}
}
