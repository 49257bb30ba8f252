// SPDX-License-Identifier: Apache-2.0

// Package customresources serves CustomResourceDefinitions and the custom resources that they define.
//
// A Server is the library's server of both, made a part of the API server: New takes the outer server's way of telling
// who asks and what is let in, Merge puts the definitions into its documents, Await has who asks for a document wait
// until that shows what is established.
//
// Its law: one store, one port, one discovery; a group that is Established is in every document, and no custom
// resource decides over the server's own groups.
package customresources
