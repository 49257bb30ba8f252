// SPDX-License-Identifier: Apache-2.0

// Package options has what a request to the API of debugging asks for, read from its query: [Shell], [Exec], [Files],
// [Evidence] and [Sessions]. They are objects of the API's group, so that admission is shown them as a CONNECT of
// pods/shell and so on, and judges what is asked for by its fields (DA-06).
//
// [Register] teaches a scheme the types and how they are read. [Limits] makes of what was asked what a session may
// have.
//
// Its law: a parameter that is not known, cannot be read or is above a limit refuses the request, whole. What admission
// has been shown is what is done, as it has changed it.
//
// Pure.
package options
