// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Expand replaces $(NAME) in each word by the variable's value (PL-06). $$ stands for one $, so that $$(NAME) stays
// $(NAME); a reference to an unknown variable, and any other $, is left as it is. Values are not expanded again. It is
// what command and args of a container go through.
func Expand(words []string, envs []*runtimeapi.KeyValue) []string {
	if words == nil {
		return nil
	}
	values := make(map[string]string, len(envs))
	for _, kv := range envs {
		values[kv.Key] = string(kv.Value)
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = expand(w, func(name string) (string, bool) { v, ok := values[name]; return v, ok })
	}
	return out
}

// ExpandStrict is Expand for one word where a variable that is unknown or empty is an error: the rule of subPathExpr,
// which must not come to mean the whole volume.
func ExpandStrict(word string, envs []*runtimeapi.KeyValue) (string, error) {
	var missing []string
	out := expand(word, func(name string) (string, bool) {
		for _, kv := range envs {
			if kv.Key == name && len(kv.Value) > 0 {
				return string(kv.Value), true
			}
		}
		missing = append(missing, name)
		return "", true
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("missing value for %q: the container's environment has no such variable, "+
			"or it is empty: give it a value under env", missing[0])
	}
	return out, nil
}

func expand(s string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) { // no $ left, or a lone one at the end
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		switch s[0] {
		case '$':
			b.WriteByte('$')
			s = s[1:]
		case '(':
			end := strings.IndexByte(s, ')')
			if end < 0 { // unterminated: literal, and what follows is still looked at
				b.WriteString("$(")
				s = s[1:]
				continue
			}
			if v, ok := lookup(s[1:end]); ok {
				b.WriteString(v)
			} else {
				b.WriteString("$" + s[:end+1])
			}
			s = s[end+1:]
		default:
			b.WriteByte('$')
		}
	}
}
