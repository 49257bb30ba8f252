// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "rewrite the golden tables from what is printed now")

// now is when every golden table is looked at.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestGolden prints objects as kubectl does and compares with the tables in testdata.
//
// Rules: PL-01 (phases and reasons), PL-02 (CrashLoopBackOff, restarts), PL-03 (image errors), PL-15 (why a pod does
// not run), SC-17 (READY counts sidecars, Init:N/M). The names of the objects say which.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			objects := decode(t, section(archive, "objects.yaml"))
			changed := false
			for _, form := range []string{"get", "wide"} {
				got := render(t, objects, form == "wide")
				if want := section(archive, form); want != got {
					changed = true
					setSection(archive, form, got)
					if !*update {
						t.Errorf("%s:\n%s\nwant:\n%s", form, got, want)
					}
				}
			}
			if changed && *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func render(t *testing.T, objects []runtime.Object, wide bool) string {
	t.Helper()
	out := &bytes.Buffer{}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: wide})
	kind := objects[0].GetObjectKind().GroupVersionKind().Kind
	p, _ := For(kind)
	conv := &convertor{printer: p, now: func() time.Time { return now }}
	all := &metav1.Table{}
	for _, obj := range objects {
		one, err := conv.ConvertToTable(context.Background(), obj, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.ColumnDefinitions = one.ColumnDefinitions
		all.Rows = append(all.Rows, one.Rows...)
	}
	for i := range all.Rows {
		if len(all.Rows[i].Cells) != len(all.ColumnDefinitions) {
			t.Fatalf("%d cells for %d columns: %v", len(all.Rows[i].Cells), len(all.ColumnDefinitions), all.Rows[i].Cells)
		}
	}
	if err := printer.PrintObj(all, out); err != nil {
		t.Fatal(err)
	}
	// The tab writer pads the last column; trailing blanks would not survive in a file.
	var b strings.Builder
	for line := range strings.Lines(out.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

func decode(t *testing.T, docs string) []runtime.Object {
	t.Helper()
	var out []runtime.Object
	for doc := range strings.SplitSeq(docs, "---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		out = append(out, obj)
	}
	return out
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setSection(a *txtar.Archive, name, data string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(data)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(data)})
}

func TestConvertor(t *testing.T) {
	conv := NewConvertor("Pod")
	remaining := int64(7)
	list := &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "more", RemainingItemCount: &remaining},
		Items:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
	}
	t.Run("a list keeps its metadata and its objects", func(t *testing.T) {
		got, err := conv.ConvertToTable(context.Background(), list, &metav1.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.ResourceVersion != "12" || got.Continue != "more" || got.RemainingItemCount == nil || *got.RemainingItemCount != 7 {
			t.Errorf("list metadata lost: %+v", got.ListMeta)
		}
		if len(got.Rows) != 2 || got.Rows[1].Object.Object.(*corev1.Pod).Name != "b" {
			t.Errorf("rows: %+v", got.Rows)
		}
		for _, c := range got.ColumnDefinitions {
			if c.Description == "" {
				t.Errorf("column %s has no description", c.Name)
			}
		}
	})
	t.Run("no headers when the client has them already", func(t *testing.T) {
		got, err := conv.ConvertToTable(context.Background(), list, &metav1.TableOptions{NoHeaders: true})
		if err != nil || got.ColumnDefinitions != nil {
			t.Errorf("%v %v", got.ColumnDefinitions, err)
		}
	})
	t.Run("an empty list has rows, though none", func(t *testing.T) {
		got, err := conv.ConvertToTable(context.Background(), &corev1.PodList{}, nil)
		if err != nil || got.Rows == nil {
			t.Errorf("%v %v", got, err)
		}
	})
	t.Run("ended pods are marked", func(t *testing.T) {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
		got, err := conv.ConvertToTable(context.Background(), pod, nil)
		if err != nil || len(got.Rows[0].Conditions) != 1 || got.Rows[0].Conditions[0].Reason != "Failed" {
			t.Errorf("%v %v", got, err)
		}
	})
	t.Run("an object of another type is an error, not a panic", func(t *testing.T) {
		if _, err := conv.ConvertToTable(context.Background(), &corev1.Node{}, nil); err == nil {
			t.Error("no error")
		}
	})
}

// TestEveryColumnIsDescribed holds the printers to their columns.
func TestEveryColumnIsDescribed(t *testing.T) {
	kinds := []string{"Pod", "Node", "Event", "Namespace", "Service", "Endpoints", "EndpointSlice", "ConfigMap", "Secret",
		"ServiceAccount", "Lease", "ResourceQuota", "LimitRange", "PriorityClass", "RuntimeClass", "ImagePolicy", "Anything"}
	for _, kind := range kinds {
		p, own := For(kind)
		if own == (kind == "Anything") {
			t.Errorf("%s: own printer: %v", kind, own)
		}
		for _, c := range p.Columns {
			if c.Description == "" || c.Type == "" {
				t.Errorf("%s: column %q lacks a description or a type", kind, c.Name)
			}
		}
	}
}
