// SPDX-License-Identifier: Apache-2.0

// Package objects turns Kubernetes' objects into what names need of them.
//
// Pure.
package objects
