// SPDX-License-Identifier: Apache-2.0

// Package imagepolicy is the Go side of policy.wherry.dev/v1: which images may get into pods, by whatever way.
//
// An ImagePolicy chooses namespaces and says which images pods there may have. Judge decides about one image; New are the
// images that an object brings in.
//
// The law: pure. Every policy that concerns a namespace must let an image pass; within one policy a deny pattern stands above an
// allow pattern. So a further policy never lets more in.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.wherry.policy.v1
// +groupName=policy.wherry.dev
package imagepolicy
