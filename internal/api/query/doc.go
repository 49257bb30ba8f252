// SPDX-License-Identifier: Apache-2.0

// Package query reads the query parameters of a request into a type of options, by the conversions that the API's own
// parameters use.
//
// [Reads] makes a conversion for a scheme of a function that fills the options from a [Reader].
//
// Its law: a parameter that is not there changes nothing, and the first one that cannot be read is the error.
//
// Pure.
package query
