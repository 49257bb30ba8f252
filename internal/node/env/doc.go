// SPDX-License-Identifier: Apache-2.0

// Package env works out the environment of a container: what the spec says (env, envFrom, field and resource
// references, service links) and what the objects it names hold, as the list of variables the runtime is given.
//
// Build is the whole of it; References and NeedsServices say beforehand what Build will ask for; Expand does $(VAR) in
// command and args. FieldValue and ResourceValue are shared with downward API files.
//
// Its law: it is pure. No context, client, logger or clock; the same Input gives the same list in the same order. A
// container that cannot be given its environment gets an *Error, whose words fit CreateContainerConfigError (PL-06,
// PL-15).
//
// Pure.
package env
