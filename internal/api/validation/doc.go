// SPDX-License-Identifier: Apache-2.0

// Package validation holds the defaults and the rules of Kubernetes' kinds other than the Pod, which has
// internal/podspec: SetDefaultsX completes an object, ValidateX says what is wrong with a new one,
// ValidateXUpdate what is wrong with a changed one.
//
// Its law is podspec's: pure functions, no client, context, logger or clock; nothing panics; only SetDefaultsX
// changes its argument. Errors have the field paths and nearly the words of Kubernetes. ValidateX expects an
// object that went through SetDefaultsX.
//
// Pure.
package validation
