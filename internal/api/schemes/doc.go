// SPDX-License-Identifier: Apache-2.0

// Package schemes knows the types that the API server has: their names, defaults, conversions, selectable fields and
// OpenAPI definitions.
//
// Schemes are the registries of one server, made by New. Groups are the API groups and their versions, an APIGroup
// each, in the order of discovery. Definitions describe the types to clients. The types of k8s.io/api are the wire
// form, the hub and the stored form, so that the only conversion is the one between the two Event APIs; kinds with
// Kubernetes' own rules have its internal types as their hub.
//
// Its law: it knows types and nothing of how their objects are served or stored. What a default or a conversion gives
// depends on the object alone.
package schemes
