// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"maps"
	"sync"
	"weak"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitions are what all documents of version 3 are made of. Who asks for the list has all made at once, and making
// the definitions takes longer than a document: they are made for many, and are there no longer than somebody uses
// them.
type definitions struct {
	config *common.OpenAPIV3Config

	mu   sync.Mutex
	made weak.Pointer[map[string]common.OpenAPIDefinition]
}

// forOne is the configuration for one document. Making a document writes into its configuration and into its
// definitions' extensions: it has its own of both.
func (d *definitions) forOne(all map[string]common.OpenAPIDefinition) *common.OpenAPIV3Config {
	config := *d.config
	config.Definitions = make(map[string]common.OpenAPIDefinition, len(all))
	for name, definition := range all {
		definition.Schema.Extensions = maps.Clone(definition.Schema.Extensions)
		config.Definitions[name] = definition
	}
	return &config
}

// all are the definitions. They are held by who has the pointer.
func (d *definitions) all() *map[string]common.OpenAPIDefinition {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.made.Value(); all != nil {
		return all
	}
	all := d.config.GetDefinitions(func(name string) spec.Ref {
		called, _ := d.config.GetDefinitionName(name)
		return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(called))
	})
	d.made = weak.Make(&all)
	return &all
}
