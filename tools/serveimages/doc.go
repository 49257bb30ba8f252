// SPDX-License-Identifier: Apache-2.0

// Serveimages is an image registry on loopback that has the images of archives, for tests whose pods always pull.
//
//	serveimages ARCHIVE.tar…
//
// Each archive has one image with one name; it is served under its repository and tag, whatever registry it names. The
// address is printed on standard output; the registry ends with its standard input.
//
// Its law: it keeps nothing. What it serves is in memory, read from the archives at its start.
package main
