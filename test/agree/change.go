// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// change is one thing that is made different in an object: spec.hostIPC=true, spec.containers[1]={…} (one past the end
// appends), metadata.labels["a.b/c"]="d", or -spec.os, which takes it away.
type change struct {
	path  []any // string: a field or a key; int: an index
	value any   // nil: take it away
}

// String is what parseChange reads.
func (c change) String() string {
	if c.value == nil {
		return "-" + pathString(c.path)
	}
	text, err := json.Marshal(c.value)
	if err != nil {
		return fmt.Sprintf("%s=%v", pathString(c.path), c.value)
	}
	return pathString(c.path) + "=" + string(text)
}

func pathString(path []any) string {
	var b strings.Builder
	for i, step := range path {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case string:
			switch {
			case s == "" || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(fieldRunes, r) }):
				fmt.Fprintf(&b, "[%q]", s)
			case i > 0:
				b.WriteString("." + s)
			default:
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

const fieldRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func parseChange(text string) (change, error) {
	rest, away := strings.CutPrefix(text, "-")
	var c change
	for rest != "" && rest[0] != '=' {
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return c, fmt.Errorf("%s: %w", text, err)
			}
			key, err := strconv.Unquote(quoted)
			if err != nil {
				return c, fmt.Errorf("%s: %w", text, err)
			}
			c.path, rest = append(c.path, key), strings.TrimPrefix(rest[1+len(quoted):], "]")
		case rest[0] == '[':
			index, after, _ := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(index)
			if err != nil {
				return c, fmt.Errorf("%s: %w", text, err)
			}
			c.path, rest = append(c.path, n), after
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[=")
			if end < 0 {
				end = len(rest)
			}
			c.path, rest = append(c.path, rest[:end]), rest[end:]
		}
	}
	if away {
		return c, nil
	}
	value, ok := strings.CutPrefix(rest, "=")
	if !ok {
		return c, fmt.Errorf("%s: a change is PATH=JSON or -PATH", text)
	}
	if err := json.Unmarshal([]byte(value), &c.value); err != nil {
		return c, fmt.Errorf("%s: %w", text, err)
	}
	return c, nil
}

// applied is the tree with the changes made, in order; the tree itself stays as it is.
func applied(tree any, changes []change) any {
	tree = clone(tree)
	for _, c := range changes {
		tree = set(tree, c.path, c.value)
	}
	return tree
}

func set(tree any, path []any, value any) any {
	if len(path) == 0 {
		return clone(value)
	}
	switch step := path[0].(type) {
	case string:
		m, ok := tree.(map[string]any)
		if !ok {
			m = map[string]any{}
		}
		if len(path) == 1 && value == nil {
			delete(m, step)
			return m
		}
		m[step] = set(m[step], path[1:], value)
		return m
	case int:
		list, _ := tree.([]any)
		switch {
		case step < len(list) && len(path) == 1 && value == nil:
			return slices.Delete(list, step, step+1)
		case step < len(list):
			list[step] = set(list[step], path[1:], value)
		case value != nil:
			list = append(list, set(nil, path[1:], value))
		}
		return list
	}
	return tree
}

func clone(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, v := range t {
			out[k] = clone(v)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, v := range t {
			out[i] = clone(v)
		}
		return out
	}
	return tree
}
