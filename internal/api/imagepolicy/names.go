// SPDX-License-Identifier: Apache-2.0

package imagepolicy

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (ImagePolicy) OpenAPIModelName() string { return "dev.wherry.policy.v1.ImagePolicy" }

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (ImagePolicyList) OpenAPIModelName() string { return "dev.wherry.policy.v1.ImagePolicyList" }

// OpenAPIModelName is the type's name in the OpenAPI documents.
func (ImagePolicySpec) OpenAPIModelName() string { return "dev.wherry.policy.v1.ImagePolicySpec" }
