// SPDX-License-Identifier: Apache-2.0

package debugrun

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (DebugRun) OpenAPIModelName() string { return "dev.wherry.debug.v1.DebugRun" }

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (DebugRunList) OpenAPIModelName() string { return "dev.wherry.debug.v1.DebugRunList" }

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (DebugRunSpec) OpenAPIModelName() string { return "dev.wherry.debug.v1.DebugRunSpec" }

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (DebugRunStatus) OpenAPIModelName() string { return "dev.wherry.debug.v1.DebugRunStatus" }

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (PodReference) OpenAPIModelName() string { return "dev.wherry.debug.v1.PodReference" }
