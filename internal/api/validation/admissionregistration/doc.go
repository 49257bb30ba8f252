// SPDX-License-Identifier: Apache-2.0

// Package admissionregistration holds the defaults and the rules of admission's own kinds: the configurations of
// webhooks, and policies and their bindings. They are named as in package validation.
//
// Its law is that package's: pure functions, nothing panics, and only SetDefaultsX changes its argument.
//
// Pure.
package admissionregistration
