// SPDX-License-Identifier: Apache-2.0

// Package debugask holds the vocabulary with which a client asks the API for a debug session: query parameters of
// pods/exec, the causes in a refusal, profiles, the name of the debug image.
//
// Its law: it is words only, and imports nothing that takes a program time to start, so that a client can ask before
// the rest of it has started.
//
// Pure.
package debugask
