// SPDX-License-Identifier: Apache-2.0

// Package gate decides which requests the page's handler takes, before anything is done for them. A [Request] is what
// is known of one, [Served] is where the page is served; [Served.Judge] returns a [Refusal] in words, or none. [Route]
// says which part of the handler a path means, and [UpstreamPath] which path of the Kubernetes API it is.
//
// Its law: a browser that another page has sent, and a name that another has pointed here, get nothing. What is not
// known to be the page's own is refused: a header that is missing, doubled or malformed lets nobody in. What pods and
// services serve is not passed on, as it would be the page's own origin to a browser.
//
// Pure.
package gate
