// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// ChoicesAt is the annotation of the APIService in which an installation keeps what was chosen for it.
const ChoicesAt = "debug.wherry.dev/values"

// Choices are what of values is other than the defaults, as a file that [Parse] makes the same values of; nil if
// nothing is. The namespace is none of them: it is where the APIService says.
func Choices(v Values) ([]byte, error) {
	usual, err := Defaults()
	if err != nil {
		return nil, err
	}
	from, err := asMap(usual)
	if err != nil {
		return nil, err
	}
	to, err := asMap(v)
	if err != nil {
		return nil, err
	}
	delete(to, "namespace")
	delete(from, "namespace")
	if chosen := difference(from, to); len(chosen) > 0 {
		return json.Marshal(chosen)
	}
	return nil, nil
}

// Named are choices in words, by their keys: agent.criSocket=/run/x.sock.
func Named(choices []byte) ([]string, error) {
	var all map[string]any
	if len(choices) > 0 {
		if err := json.Unmarshal(choices, &all); err != nil {
			return nil, err
		}
	}
	return named("", all), nil
}

func named(before string, all map[string]any) (words []string) {
	for _, k := range slices.Sorted(maps.Keys(all)) {
		switch below, is := all[k].(map[string]any); {
		case is && len(below) > 0:
			words = append(words, named(before+k+".", below)...)
		default:
			text, _ := json.Marshal(all[k]) // it was read from JSON
			if s, is := all[k].(string); is {
				text = []byte(s)
			}
			words = append(words, fmt.Sprintf("%s%s=%s", before, k, text))
		}
	}
	return words
}

func asMap(v Values) (all map[string]any, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// difference is what has to be put over from to make it to: null takes something away. (Pure.)
func difference(from, to map[string]any) map[string]any {
	d := map[string]any{}
	for k := range from {
		if _, is := to[k]; !is {
			d[k] = nil
		}
	}
	for k, v := range to {
		old, was := from[k].(map[string]any)
		below, is := v.(map[string]any)
		switch {
		case was && is:
			if under := difference(old, below); len(under) > 0 {
				d[k] = under
			}
		case !reflect.DeepEqual(from[k], v) && !(empty(from[k]) && empty(v)):
			d[k] = v
		}
	}
	return d
}

// empty reports whether there is nothing in a list or map, or none. (Pure.)
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
