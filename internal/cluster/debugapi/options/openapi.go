// SPDX-License-Identifier: Apache-2.0

package options

import (
	"reflect"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions are the types in the words of OpenAPI. They are no bodies of requests: the parameters of the paths say
// what is in them.
func Definitions() map[string]common.OpenAPIDefinition {
	all := map[string]common.OpenAPIDefinition{}
	for _, o := range []any{&Shell{}, &Exec{}, &Files{}, &Evidence{}, &Sessions{}, &Pod{}} {
		all[util.GetCanonicalTypeName(o)] = common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Type: []string{"object"}, Description: reflect.TypeOf(o).Elem().Name() +
				" of package options: the parameters say more."}}}
	}
	return all
}
