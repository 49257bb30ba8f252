// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"errors"
	"log/slog"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func kindsOf(groups ...string) []any {
	var all []any
	for _, g := range groups {
		all = append(all, map[string]any{"group": g, "version": "v1", "kind": "WatchEvent"})
	}
	return all
}

// A kind that every group has is shown with the document's own group and the one without a name; others stay.
func TestNarrow(t *testing.T) {
	schemaOf := func(kinds []any) *spec.Schema {
		return &spec.Schema{VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{kindsKey: kinds}}}
	}
	scale := []any{map[string]any{"group": "autoscaling", "version": "v1", "kind": "Scale"},
		map[string]any{"group": "apps", "version": "v1", "kind": "Scale"}}
	doc := &document{Components: &spec3.Components{Schemas: map[string]*spec.Schema{
		"event": schemaOf(kindsOf("", "apps", "batch")), "foreign": schemaOf(kindsOf("batch", "policy")),
		"scale": schemaOf(scale), "plain": {},
	}}}
	narrow(doc, schema.GroupVersion{Group: "apps", Version: "v1"})
	for name, want := range map[string]int{"event": 2, "foreign": 0, "scale": 2, "plain": 0} {
		if got, _ := doc.Components.Schemas[name].Extensions[kindsKey].([]any); len(got) != want {
			t.Errorf("%s has %v", name, got)
		}
	}
	narrow(&document{}, schema.GroupVersion{Version: "v1"})
}

// Paths that are not of a group and version are told apart.
func TestGroupVersionAt(t *testing.T) {
	for path, want := range map[string]string{"api/v1": "v1", "apis/apps/v1": "apps/v1", "apis/apps": "", "version": "",
		"apis": "", "api": "", "logs/apps/v1": ""} {
		gv, ok := groupVersionAt(path)
		if ok != (want != "") || ok && gv.String() != want {
			t.Errorf("%s: %v, %v", path, gv, ok)
		}
	}
}

// A document is made once, however often it is asked for, and let go of when it is asked for again; what could not be
// made is tried again.
func TestLazy(t *testing.T) {
	tries, failed := 0, errors.New("no definitions")
	l := &lazy{path: "api/v1", log: slog.New(slog.DiscardHandler), make: func() (*document, error) {
		if tries++; tries == 1 {
			return nil, failed
		}
		return &document{Version: "3.0.0"}, nil
	}}
	if _, _, err := l.Get(); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	first, version, err := l.Get()
	if err != nil || first.Version != "3.0.0" {
		t.Fatalf("got %v, %v", first, err)
	}
	again, same, err := l.Get()
	if err != nil || tries != 2 || same != version || again != first || first.Version != "" {
		t.Errorf("got %v (%s, was %s), made %d times, %v", again, same, version, tries, err)
	}
}
