// SPDX-License-Identifier: Apache-2.0

// Package options reads what a request to pods/exec asks for: a command in a container, a debug session, or an image
// exec.
//
// [Exec] are the query parameters, [Exec.Session] and [Exec.ImageRun] what they mean. Register teaches a scheme to read
// them.
//
// Its law: it decides from the request alone. What it lets pass makes sense in itself; whether it may be done to a pod
// is decided elsewhere.
//
// Pure.
package options
