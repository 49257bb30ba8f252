// SPDX-License-Identifier: Apache-2.0

// Package rules has the rules that several kinds share: of metadata, of values that are one of a few, of fields that do
// not change; and how defaults are set.
//
// Its law is that of package validation: pure functions, and nothing panics.
//
// Pure.
package rules
