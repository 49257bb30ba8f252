// SPDX-License-Identifier: Apache-2.0

// Package coredns asks CoreDNS and Wherry's resolver, which both look at the same server, the same questions.
//
// Law: they agree on each, but for the differences that are named, each with its reason.
package coredns
