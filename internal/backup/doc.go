// SPDX-License-Identifier: Apache-2.0

// Package backup is the file that a backup of a server is: how it is written, verified and unpacked, and which of those
// that are kept by themselves is the newest.
//
// A backup is a gzipped tar archive. Its first entry is [HeaderName], which says what it holds and in which format;
// then come the database of the store, as etcd keeps it, and if asked for keys and volumes; the last is [SumsName], a
// SHA-256 checksum of every file before it, in sha256sum's own format: `tar xzf FILE && sha256sum -c SHA256SUMS`
// verifies a backup without this program.
//
// Its law: what has no [SumsName], or one that does not fit, is no backup. Nothing of it is used.
package backup
