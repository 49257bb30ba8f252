// SPDX-License-Identifier: Apache-2.0

// Command failpoints rewrites sources so that a program built from them can be told to die, or to fail, at any place
// where it changes something: a file, a mount, a link, a firewall table, a container. The sources themselves know
// nothing of it: the rewritten files are an overlay of the build (go build -overlay), so that a write which somebody
// adds tomorrow is a failpoint by itself.
//
//	failpoints -o DIR    writes DIR/overlay.json and the rewritten files; run it in the repository's folder
//
// What counts as a change is the table in calls.go, which packages are rewritten the lists in packages.go, what happens
// at a failpoint is package fail. tools/failpoints.sh builds bin/.failpoints/wherry, test/failpoints uses it.
package main
