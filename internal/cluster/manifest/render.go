// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// files are the chart's, but for Chart.yaml, which says the version.
//
//go:embed all:chart
var files embed.FS

// Defaults are the values of the chart's values.yaml.
func Defaults() (Values, error) { return Parse(nil) }

func valuesFile() (map[string]any, error) {
	text, err := files.ReadFile("chart/values.yaml")
	if err != nil {
		return nil, err
	}
	var all map[string]any
	return all, yaml.UnmarshalStrict(text, &all)
}

// Render is the plain manifest of a version of the program: documents of YAML with the chart's comments, in the order
// in which they are to be applied. It refuses values that [Values.Check] refuses.
func Render(v Values, version string) ([]byte, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	t, err := templates()
	if err != nil {
		return nil, err
	}
	data, err := dataOf(v, version)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	names, err := fs.Glob(files, "chart/templates/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var text strings.Builder
		if err := t.ExecuteTemplate(&text, path.Base(name), data); err != nil {
			return nil, err
		}
		if body := strings.TrimSpace(text.String()); body != "" {
			fmt.Fprintf(&out, "---\n%s\n", body)
		}
	}
	return out.Bytes(), nil
}

// Objects is [Render], read.
func Objects(v Values, version string) ([]*unstructured.Unstructured, error) {
	text, err := Render(v, version)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// Decode reads documents of YAML.
func Decode(text []byte) (all []*unstructured.Unstructured, err error) {
	r := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var o map[string]any
		if err := yamlutil.Unmarshal(document, &o); err != nil {
			return nil, err
		}
		if len(o) > 0 {
			all = append(all, &unstructured.Unstructured{Object: o})
		}
	}
}

// dataOf is what templates are given, as Helm gives it.
func dataOf(v Values, version string) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	return map[string]any{"Values": values, "Chart": map[string]any{"AppVersion": Tag(version)}}, nil
}

// templates are the chart's, with those of Helm's functions that they use.
func templates() (*template.Template, error) {
	t := template.New("chart").Option("missingkey=error")
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := t.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"nindent": func(n int, text string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(text, "\n", pad)
		},
		"quote": func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"default": func(instead, text string) string {
			if text == "" {
				return instead
			}
			return text
		},
		"dict": func(pairs ...any) map[string]any {
			m := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				m[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return m
		},
	})
	return t.ParseFS(files, "chart/templates/*")
}
