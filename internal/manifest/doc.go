// SPDX-License-Identifier: Apache-2.0

// Package manifest turns a file of YAML or JSON documents into typed Kubernetes objects, strictly.
//
// Its types are Object (one decoded document and where it stood) and Error (one fault: file, line, field, what to do).
// Its law: nothing is guessed and nothing is dropped. An unknown field, a field given twice, a wrong type, a name that
// no server would take, or a document larger than the store holds is an Error that names its line; all faults of a file
// are reported at once. Whether the object makes sense as a pod is podspec's to say, not this package's.
//
// Pure.
package manifest
