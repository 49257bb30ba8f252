// SPDX-License-Identifier: Apache-2.0

// Package flowcontrol holds the defaults and the rules of the kinds that say how what the server can serve is shared
// out: FlowSchema and PriorityLevelConfiguration. They are named as in package validation.
//
// Its law is that package's: pure functions, nothing panics, and only SetDefaultsX changes its argument.
//
// Pure.
package flowcontrol
