// SPDX-License-Identifier: Apache-2.0

// Package imagepolicy is the Go side of policy.wherry.dev/v1: which images may get into pods, by whatever route.
//
// An ImagePolicy chooses namespaces and says which images pods there may have. Judge decides about one image; New
// returns the images that an object brings in. SetDefaults and Validate are as in package validation.
//
// The law: pure. Every policy that applies to a namespace must allow an image; within one policy, deny patterns take
// precedence over allow patterns. So another policy never allows more.
//
// Pure.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.wherry.policy.v1
// +groupName=policy.wherry.dev
package imagepolicy
