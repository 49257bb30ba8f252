// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page by which a person looks at a machine and its pods, and the Kubernetes API to it: one
// handler for any API server. [New] makes a [Page] of [Options]; [Remote] is an API that a kubeconfig leads to,
// [Within] one of this process. [Page.Link] makes a link that signs in once.
//
// `wherry ui` serves it on loopback, with links; `wherry server --ui` on the API's own port, with bearer tokens. Either
// way all of its paths are below [gate.Prefix].
//
// Its law: the page has no rights of its own. What it asks of the API it asks as the one who signed in, and the API
// decides. The browser holds a cookie that no script can read, and never a token; what it sends beside is not passed on
// unless it is on a list. Nothing runs while no page is open: what is too old is found when somebody asks. Whatever the
// API or a pod answers is data to the browser, never a document or a script.
package ui
