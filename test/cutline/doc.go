// SPDX-License-Identifier: Apache-2.0

// Package cutline is a line to a server that is cut once, in the middle of a long answer or request: [New] listens for
// it. With [At] something else happens in that moment.
//
// Its law: what comes before the cut and after it is what the server said.
package cutline
