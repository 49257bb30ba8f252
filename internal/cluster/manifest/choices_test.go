// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"reflect"
	"slices"
	"testing"
)

// Choices say what is other than the defaults, and nothing else; they make the same values again.
func TestChoices(t *testing.T) {
	for text, words := range map[string][]string{
		"":                                       nil,
		"namespace: other\nimagePullSecrets: []": nil,
		"image: x/y:1\napi: {replicas: 3}":       {"api.replicas=3", "image=x/y:1"},
		"agent: {nodeSelector: {kubernetes.io/os: null, a: b}, tolerations: null, resources: {limits: null}}": {
			"agent.nodeSelector.a=b", "agent.nodeSelector.kubernetes.io/os=null", "agent.resources.limits=null", "agent.tolerations=null"},
		"imagePullSecrets: [a, b]\naggregateToDefaultRoles: true": {"aggregateToDefaultRoles=true", `imagePullSecrets=["a","b"]`},
	} {
		v, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		choices, err := Choices(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Named(choices)
		if err != nil || !slices.Equal(got, words) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		again, err := Parse(choices, []byte("namespace: "+v.Namespace))
		if err != nil || !reflect.DeepEqual(again, v) && len(words) > 0 {
			t.Errorf("%q: %+v, %v", text, again, err)
		}
	}
}
