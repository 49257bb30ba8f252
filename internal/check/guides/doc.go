// SPDX-License-Identifier: Apache-2.0

// Package guides reads the commands of the README and of the guides, and the
// scripts of the tests that type them: test/e2e/testdata/guides.txt, whose first
// lines tell how they are written, and test/cluster/testdata/guide.txt, of the
// page that needs a cluster. [Parse] gives a script's pages, [Page.Match] what
// is typed in each of its steps, [Prints] whether that has printed what it must.
//
// Pure.
//
// Law: every command of a page is in the script, in the page's order, and the
// script has no other of the page's kind.
package guides
