// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

const maxChangedFields = 10

// changedFields names the fields in which the JSON forms of two values differ, e.g.
// spec.containers[0].command, at most ten of them.
func changedFields(was, now any, path string) []string {
	var list []string
	walkChanges(plain(was), plain(now), path, &list)
	if len(list) > maxChangedFields {
		list = append(list[:maxChangedFields], "...")
	}
	return list
}

// plain is the value as JSON knows it; nil when it has no JSON form.
func plain(v any) (out any) {
	data, err := json.Marshal(v)
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

func walkChanges(was, now any, path string, list *[]string) {
	if reflect.DeepEqual(was, now) {
		return
	}
	switch w := was.(type) {
	case map[string]any:
		n, ok := now.(map[string]any)
		if !ok {
			break
		}
		keys := map[string]bool{}
		for key := range w {
			keys[key] = true
		}
		for key := range n {
			keys[key] = true
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			walkChanges(w[key], n[key], path+"."+key, list)
		}
		return
	case []any:
		n, ok := now.([]any)
		if !ok || len(n) != len(w) {
			break
		}
		for i := range w {
			walkChanges(w[i], n[i], fmt.Sprintf("%s[%d]", path, i), list)
		}
		return
	}
	*list = append(*list, path)
}
