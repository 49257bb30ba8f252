// SPDX-License-Identifier: Apache-2.0

package schemes

import (
	"maps"
	"strings"

	extensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/wherryproject/wherry/internal/api/openapi"
)

// Definitions are the OpenAPI definitions of everything that is served: ours, and the library's for its own group.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := openapi.GetOpenAPIDefinitions(ref)
	theirs := extensionsopenapi.GetOpenAPIDefinitions(ref)
	maps.DeleteFunc(theirs, func(name string, _ common.OpenAPIDefinition) bool {
		return !strings.Contains(name, "apiextensions")
	})
	maps.Copy(all, theirs)
	return all
}
