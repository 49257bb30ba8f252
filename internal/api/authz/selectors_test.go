// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a review says of selectors: what cannot be read is left out, which makes the request a wider one, and told of.
func TestAccessSelectors(t *testing.T) {
	field := func(key string, op metav1.FieldSelectorOperator, values ...string) metav1.FieldSelectorRequirement {
		return metav1.FieldSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	for name, test := range map[string]struct {
		in        *authorizationv1.FieldSelectorAttributes
		want, err string
	}{
		"none":      {nil, "", ""},
		"raw":       {&authorizationv1.FieldSelectorAttributes{RawSelector: "a=b,c!=d"}, "a=b c!=d", ""},
		"bad raw":   {&authorizationv1.FieldSelectorAttributes{RawSelector: "nonsense"}, "", "invalid selector"},
		"in":        {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{field("a", "In", "b"), field("c", "NotIn", "d")}}, "a=b c!=d", ""},
		"many":      {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{field("a", "In", "b", "c"), field("c", "In", "d")}}, "c=d", "does not yet support multiple values"},
		"existence": {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{field("a", "Exists")}}, "", "multiple values"},
		"operator":  {&authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{field("a", "Like", "b")}}, "", `"Like" is not supported`},
	} {
		got, err := fieldRequirements(test.in)
		var words []string
		for _, r := range got {
			words = append(words, r.Field+string(r.Operator)+r.Value)
		}
		if strings.Join(words, " ") != test.want || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("fields, %s: %v, %v", name, words, err)
		}
	}
	label := func(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	for name, test := range map[string]struct {
		in        *authorizationv1.LabelSelectorAttributes
		want, err string
	}{
		"none":     {nil, "", ""},
		"raw":      {&authorizationv1.LabelSelectorAttributes{RawSelector: "a in (b,c),!d"}, "a in (b,c) !d", ""},
		"bad raw":  {&authorizationv1.LabelSelectorAttributes{RawSelector: "a in"}, "", "unable to parse"},
		"all":      {&authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{label("a", "In", "b", "c"), label("d", "DoesNotExist"), label("e", "Exists"), label("f", "NotIn", "g")}}, "a in (b,c) !d e f notin (g)", ""},
		"bad key":  {&authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{label("a b", "Exists"), label("c", "Exists")}}, "c", "Invalid value"},
		"operator": {&authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{label("a", "Like", "b")}}, "", "not a valid label selector operator"},
	} {
		got, err := labelRequirements(test.in)
		var words []string
		for _, r := range got {
			words = append(words, r.String())
		}
		if strings.Join(words, " ") != test.want || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("labels, %s: %v, %v", name, words, err)
		}
	}
}
