// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// theirs is the OpenAPI v2 document of another server: anything that it cares to send.
type theirs struct {
	text  []byte
	below []string // the paths that are its own to answer for, each with a slash at its end
}

// nesting is how deep a document may be nested: the libraries call themselves for each step, and read much of it again.
const nesting = 256

// document is what is merged of a document. Its parts are read one by one: most are not needed.
type document struct {
	Paths       map[string]json.RawMessage `json:"paths"`
	Definitions map[string]json.RawMessage `json:"definitions,omitempty"`
	Parameters  map[string]json.RawMessage `json:"parameters,omitempty"`
	Responses   map[string]json.RawMessage `json:"responses,omitempty"`
}

// addTo merges the document into another, and says whether there was anything to be merged. What the libraries cannot
// take is an error, and ends nothing but this. Definitions that were added until then stay, and nothing refers to them.
func (o theirs) addTo(merged *spec.Swagger) (added bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			added, err = false, fmt.Errorf("it cannot be merged: %v", r)
		}
	}()
	text, err := o.needed(func(path string) bool {
		if merged.Paths == nil {
			return false
		}
		_, there := merged.Paths.Paths[path]
		return there
	})
	if err != nil || text == nil {
		return false, err
	}
	doc := &spec.Swagger{}
	if err := doc.UnmarshalJSON(text); err != nil {
		return false, err
	}
	for name, d := range merged.Definitions { // the library writes there
		if d.Extensions == nil {
			d.Extensions = spec.Extensions{}
			merged.Definitions[name] = d
		}
	}
	err = aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(merged, doc)
	return err == nil, err
}

// needed is the document with the paths that the server answers for and nobody else has, with what these need, and with
// nothing else; nil: there are none. The library that does the same follows some references without end. (Pure.)
func (o theirs) needed(taken func(path string) bool) ([]byte, error) {
	var doc document
	if err := json.Unmarshal(o.text, &doc); err != nil {
		return nil, err
	}
	if err := noLoops(doc); err != nil {
		return nil, err
	}
	out := document{Paths: map[string]json.RawMessage{}, Definitions: map[string]json.RawMessage{},
		Parameters: map[string]json.RawMessage{}}
	var unread []json.RawMessage
	for path, item := range doc.Paths {
		if o.answersFor(path) && !taken(path) {
			out.Paths[path] = item
			unread = append(unread, item)
		}
	}
	if len(out.Paths) == 0 {
		return nil, nil
	}
	take := func(from, to map[string]json.RawMessage, name string) {
		if _, have := to[name]; have {
			return
		}
		if part, there := from[name]; there {
			to[name] = part
			unread = append(unread, part)
		}
	}
	for len(unread) > 0 {
		var part any
		if err := json.Unmarshal(unread[0], &part); err != nil {
			return nil, err
		}
		unread = unread[1:]
		if err := references(part, nesting, func(ref string) {
			if name, ok := strings.CutPrefix(ref, "#/definitions/"); ok {
				take(doc.Definitions, out.Definitions, name)
			} else if name, ok := strings.CutPrefix(ref, "#/parameters/"); ok {
				take(doc.Parameters, out.Parameters, name)
			}
		}); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

func (o theirs) answersFor(path string) bool {
	for _, below := range o.below {
		if strings.HasPrefix(path, below) {
			return true
		}
	}
	return false
}

// noLoops refuses parameters and responses that are no more than the name of another, as OpenAPI does: they could name
// themselves.
func noLoops(doc document) error {
	for kind, parts := range map[string]map[string]json.RawMessage{"parameters": doc.Parameters,
		"responses": doc.Responses} {
		for name, part := range parts {
			var named struct {
				Ref json.RawMessage `json:"$ref"`
			}
			if json.Unmarshal(part, &named) != nil || named.Ref != nil {
				return fmt.Errorf("%s/%s is not described, but refers to something", kind, name)
			}
		}
	}
	return nil
}

// references finds the names by which a part of a document refers to others.
func references(part any, deep int, found func(string)) error {
	if deep == 0 {
		return errors.New("it is nested too deep")
	}
	switch part := part.(type) {
	case map[string]any:
		if ref, ok := part["$ref"].(string); ok {
			found(ref)
		}
		for _, below := range part {
			if err := references(below, deep-1, found); err != nil {
				return err
			}
		}
	case []any:
		for _, below := range part {
			if err := references(below, deep-1, found); err != nil {
				return err
			}
		}
	}
	return nil
}
