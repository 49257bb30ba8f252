// SPDX-License-Identifier: Apache-2.0

// Package browser tests the page of `wherry ui` as its readers meet it: in Chromium, before a real server with real
// pods. It is a module of its own, for what drives a browser is of no use to anybody who builds wherry.
//
// A [Tab] is a page in a browser profile of its own, signed in by a link of `wherry ui`. Servers, namespaces and
// kubectl are those of the end-to-end tests (package test/e2e):
//
//	s := space(t)
//	tab := open(t, s, "-n", s.Namespace)
//	s.Create(e2e.NewPod("web", e2e.Sh(e2e.Idle)))
//	tab.Sees("web")
//
// Laws. What a test waits for it hears of by the document's own changes (MutationObserver), and a wait that fails says
// what the page shows instead. Whatever the page does, its browser says of it neither an error nor a breach of the
// Content-Security-Policy: a Tab fails its test otherwise, unless the test has named the words that are to be expected.
// Without Chromium, or without root, the tests are skipped and say so. With SCREENSHOTS=folder they leave pictures of
// the views there, which the guide shows.
package browser
