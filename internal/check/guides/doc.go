// SPDX-License-Identifier: Apache-2.0

// Package guides reads the commands of the README and of the guides, and the
// script of the test that types them (test/e2e/testdata/guides.txt, whose first
// lines tell how it is written): [Parse] gives the script's pages, and
// [Page.Match] what is typed in each of its steps.
//
// Pure.
//
// Law: every command of a page is in the script, in the page's order, and the
// script has no other of the page's kind.
package guides
