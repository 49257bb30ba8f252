// SPDX-License-Identifier: Apache-2.0

// Package configz shows the configuration in effect, on the page /configz of the API server and of the node.
//
// [Flags] reads it from a command's flags, [Handler] serves it.
//
// The law: no secret is ever on that page. Flags name files that hold secrets; one that holds a secret itself is not
// shown.
package configz
