// SPDX-License-Identifier: Apache-2.0

// Package documents serves the OpenAPI documents of the server's own kinds, each made when it is first asked for.
//
// A Documents is the library's two services, of version 2 and version 3, which others (custom resources) add to, over
// documents that do not exist yet.
//
// Its law: who asks gets what the library would have made at the start, byte for byte; a server that nobody asks makes
// nothing and keeps nothing.
package documents
