// SPDX-License-Identifier: Apache-2.0

// Package filters is the chain of handlers that every request to the API server passes, around the library's own.
//
// Chain puts them together: bounds on watches, sessions and slow bodies, the protocols of logs, whole patches, the
// limits of the port. FlowControl keeps the objects by which the library shares out what the server can serve at a
// time.
//
// Its law: no number of requests, with or without credentials, keeps others from being served (RS-01); a refused client
// gets the reason, in the API's own form, and when to retry. A filter knows of a request only what it asks for, never
// what is stored.
package filters
