// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/quantities"
)

const (
	// MaxObjectBytes is the largest document taken: what the store holds in one value (etcd's default, 1.5 MiB).
	MaxObjectBytes = 3 << 19
	// MaxFileBytes is the largest file read, whatever the number of documents in it.
	MaxFileBytes = 32 << 20
	// maxNameLength is the longest metadata.name of any kind (a DNS subdomain).
	maxNameLength = 253
)

// Object is one decoded document.
type Object struct {
	Source string                  // file it came from, as the user named it
	Line   int                     // first line of the document, from 1
	GVK    schema.GroupVersionKind // as the document says
	Object runtime.Object          // typed, without defaults
}

// Read reads at most MaxFileBytes from r and decodes them.
func Read(source string, r io.Reader) ([]Object, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if len(data) > MaxFileBytes {
		return nil, Errors{{Source: source, Message: fmt.Sprintf("is larger than %d MiB; split it into several files",
			MaxFileBytes>>20)}}
	}
	return Decode(source, data)
}

// Decode decodes all documents of data. Empty documents are skipped and Lists are unfolded; a file without any object
// is a fault. On faults the error is an Errors with all of them, and no object is returned.
func Decode(source string, data []byte) ([]Object, error) {
	docs, err := split(data)
	if err != nil {
		return nil, Errors{{Source: source, Message: err.Error()}}
	}
	var objects []Object
	var faults Errors
	for _, d := range docs {
		d.source = source
		got, errs := d.decode()
		objects = append(objects, got...)
		faults = append(faults, errs...)
	}
	switch {
	case len(faults) > 0:
		return nil, faults
	case len(objects) == 0:
		return nil,
			Errors{{Source: source, Message: "contains no objects; write at least one with apiVersion and kind"}}
	}
	return objects, nil
}

// document is one YAML or JSON value of a file.
type document struct {
	source string
	line   int // of its first byte, from 1
	text   []byte
}

func (d document) fault(line int, field, format string, args ...any) *Error {
	if line > 0 {
		line += d.line - 1
	} else {
		line = d.line
	}
	return &Error{Source: d.source, Line: line, Field: field, Message: fmt.Sprintf(format, args...)}
}

func (d document) decode() ([]Object, Errors) {
	if len(d.text) > MaxObjectBytes {
		return nil,
			Errors{d.fault(0, "",
				"the object is %.1f MiB; the store takes at most 1.5 MiB: put large data into volumes or images",
				float64(len(d.text))/(1<<20))}
	}
	where := newLines(d.text)
	body, err := yaml.YAMLToJSONStrict(d.text)
	if err != nil {
		return nil, Errors{d.syntax(err)}
	}
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return nil, nil
	}
	return d.decodeJSON(body, where, "")
}

// hasTexts says whether an object is one of texts, which may be anything, and of no quantities.
func hasTexts(kind schema.GroupVersionKind) bool {
	return kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == "Secret")
}

// decodeJSON decodes one object. prefix is the field path of the object in the document ("items[2]." in a List).
func (d document) decodeJSON(body []byte, where lines, prefix string) ([]Object, Errors) {
	gvk, faults := d.kind(body, where, prefix)
	if faults != nil {
		return nil, faults
	}
	if gvk.Kind == "List" && gvk.Version == "v1" && gvk.Group == "" {
		return d.list(body, where, prefix)
	}
	obj, err := kinds.New(gvk)
	if err != nil {
		return nil, Errors{d.fault(where.of(prefix+"kind"), prefix+"kind",
			"kind %q of apiVersion %q is unknown here; check the spelling of both", gvk.Kind, gvk.GroupVersion())}
	}
	if why := quantities.Endless(body, ""); why != "" && !hasTexts(gvk) {
		return nil, Errors{d.notQuantity(where, prefix, why)}
	}
	strict, err := kjson.UnmarshalStrict(body, obj)
	if err != nil {
		return nil, Errors{d.wrongType(err, where, prefix)}
	}
	for _, s := range strict {
		faults = append(faults, d.strict(s, where, prefix))
	}
	faults = append(faults, d.name(obj, where, prefix)...)
	if len(faults) > 0 {
		return nil, faults
	}
	return []Object{{Source: d.source, Line: d.line, GVK: gvk, Object: obj}}, nil
}

func (d document) kind(body []byte, where lines, prefix string) (schema.GroupVersionKind, Errors) {
	var head struct {
		APIVersion *string `json:"apiVersion"`
		Kind       *string `json:"kind"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) && mismatch.Field != "" {
			return schema.GroupVersionKind{}, Errors{d.wrongType(err, where, prefix)}
		}
		return schema.GroupVersionKind{}, Errors{d.fault(0, "", "must be an object with apiVersion, kind and metadata")}
	}
	switch {
	case head.APIVersion == nil || *head.APIVersion == "":
		return schema.GroupVersionKind{}, Errors{d.fault(0, prefix+"apiVersion", "is missing; a pod's is v1")}
	case head.Kind == nil || *head.Kind == "":
		return schema.GroupVersionKind{}, Errors{d.fault(0, prefix+"kind", "is missing; a pod's is Pod")}
	}
	gv, err := schema.ParseGroupVersion(*head.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}, Errors{d.fault(where.of(prefix+"apiVersion"), prefix+"apiVersion",
			"%q is not of the form group/version", *head.APIVersion)}
	}
	return gv.WithKind(*head.Kind), nil
}

func (d document) list(body []byte, where lines, prefix string) ([]Object, Errors) {
	if prefix != "" {
		return nil, Errors{d.fault(where.of(prefix+"kind"), prefix+"kind", "a List may not contain another List")}
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, Errors{d.wrongType(err, where, "")}
	}
	var objects []Object
	var faults Errors
	for i, item := range list.Items {
		got, errs := d.decodeJSON(item, where, fmt.Sprintf("items[%d].", i))
		objects = append(objects, got...)
		faults = append(faults, errs...)
	}
	return objects, faults
}

func (d document) name(obj runtime.Object, where lines, prefix string) Errors {
	m, err := meta.Accessor(obj)
	if err != nil {
		return Errors{d.fault(0, prefix+"metadata", "is missing")}
	}
	name, field := m.GetName(), prefix+"metadata.name"
	if name == "" {
		name, field = m.GetGenerateName(), prefix+"metadata.generateName"
	}
	switch {
	case name == "":
		return Errors{d.fault(where.of(prefix+"metadata"), prefix+"metadata.name",
			"is missing; give name or generateName")}
	case len(name) > maxNameLength:
		return Errors{d.fault(where.of(field), field, "has %d characters; at most %d are allowed", len(name),
			maxNameLength)}
	case len(m.GetNamespace()) > 63:
		return Errors{d.fault(where.of(prefix+"metadata.namespace"), prefix+"metadata.namespace",
			"has %d characters; at most 63 are allowed", len(m.GetNamespace()))}
	}
	return nil
}
