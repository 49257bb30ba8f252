// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wherryproject/wherry/internal/quantities"
)

// lines finds the line of a field. It is a best effort beside the decoder: where it fails, the document's line is
// reported.
type lines struct{ root *yaml.Node }

func newLines(text []byte) lines {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return lines{}
	}
	return lines{doc.Content[0]}
}

var pathStep = regexp.MustCompile(`([^.\[\]]+)|\[(\d+)\]`)

// of returns the line of a path such as "spec.containers[0].image", 0 when there is none. Keys that hold dots
// (labels) end the walk at their parent.
func (l lines) of(path string) int {
	node, line := l.root, 0
	for _, m := range pathStep.FindAllStringSubmatch(path, -1) {
		key, value := child(node, m[1], m[2])
		if value == nil {
			return line
		}
		node, line = value, key.Line
	}
	return line
}

func child(node *yaml.Node, name, index string) (key, value *yaml.Node) {
	node = follow(node)
	if node == nil {
		return nil, nil
	}
	if index != "" {
		i, err := strconv.Atoi(index)
		if err != nil || node.Kind != yaml.SequenceNode || i >= len(node.Content) {
			return nil, nil
		}
		return node.Content[i], node.Content[i]
	}
	if node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// follow resolves an alias; the decoder has already refused aliases that expand without end.
func follow(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// mismatch finds the first value at path (without indices, as the decoder reports it) that is not of the wanted kind.
func (l lines) mismatch(path string, w want) (line int, exact string) {
	type place struct {
		node *yaml.Node
		path string
		line int
	}
	front := []place{{node: l.root}}
	for _, m := range pathStep.FindAllStringSubmatch(path, -1) {
		var next []place
		for _, p := range front {
			for _, e := range elements(p.node) {
				at := p.path + e.suffix
				key, value := child(e.node, m[1], m[2])
				if value == nil {
					continue
				}
				if m[2] != "" {
					next = append(next, place{value, at + "[" + m[2] + "]", key.Line})
				} else {
					next = append(next, place{value, strings.TrimPrefix(at+"."+m[1], "."), key.Line})
				}
			}
		}
		front = next
	}
	for _, p := range front {
		for _, e := range elements(p.node) {
			if !w.fits(e.node) && (w != wantList || e.suffix == "") {
				return e.node.Line, p.path + e.suffix
			}
		}
		if w == wantList && !w.fits(follow(p.node)) {
			return p.line, p.path
		}
	}
	return 0, ""
}

// yaml11Bool are words that the decoder's YAML 1.1 reads as booleans where they are not quoted.
var yaml11Bool = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true}

type element struct {
	node   *yaml.Node
	suffix string
}

// elements returns the node itself, or its elements when it is a list.
func elements(node *yaml.Node) []element {
	node = follow(node)
	if node == nil {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		return []element{{node, ""}}
	}
	var out []element
	for i, c := range node.Content {
		out = append(out, element{follow(c), "[" + strconv.Itoa(i) + "]"})
	}
	return out
}

func (w want) fits(node *yaml.Node) bool {
	if node == nil {
		return true
	}
	scalar := node.Kind == yaml.ScalarNode
	switch w {
	case wantInt:
		_, err := strconv.ParseInt(node.Value, 0, 32) // every counted field but a few is an int32
		return scalar && node.Tag == "!!int" && err == nil
	case wantFloat:
		return scalar && (node.Tag == "!!int" || node.Tag == "!!float")
	case wantString:
		return scalar && node.Tag == "!!str" && (node.Style != 0 || !yaml11Bool[strings.ToLower(node.Value)])
	case wantBool:
		return scalar && node.Tag == "!!bool"
	case wantList:
		return node.Kind == yaml.SequenceNode
	case wantMap:
		return node.Kind == yaml.MappingNode
	}
	return !scalar // a struct was wanted
}

// quantityParents are the fields whose values are quantities.
var quantityParents = map[string]bool{"requests": true, "limits": true, "capacity": true, "allocatable": true,
	"overhead": true, "hard": true}

// badQuantity finds the first value in a quantity's place that is none.
func (l lines) badQuantity() (field string, line int, value string) {
	var walk func(node *yaml.Node, path string, inside bool, depth int) bool
	walk = func(node *yaml.Node, path string, inside bool, depth int) bool {
		node = follow(node)
		if node == nil || depth > 50 {
			return false
		}
		switch node.Kind {
		case yaml.SequenceNode:
			for i, c := range node.Content {
				if walk(c, path+"["+strconv.Itoa(i)+"]", false, depth+1) {
					return true
				}
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				key := node.Content[i].Value
				quantity := inside || key == "sizeLimit" || key == "divisor"
				child := follow(node.Content[i+1])
				if quantity && child != nil && child.Kind == yaml.ScalarNode {
					if _, err := quantities.Parse(child.Value); err != nil {
						field, line, value = strings.TrimPrefix(path+"."+key, "."), child.Line, child.Value
						return true
					}
				}
				if walk(child, path+"."+key, quantityParents[key], depth+1) {
					return true
				}
			}
		}
		return false
	}
	walk(l.root, "", false, 0)
	return field, line, value
}
