// SPDX-License-Identifier: Apache-2.0

// Package kit is what every debugger on a machine is made with: runc, the toolbox's files, and the program of a
// cluster's sessions. This program carries them compressed ([Packed]); [Unpack] has them ready in a folder, for who
// begins sessions often.
//
// Its law: a folder has its names only when all is in it, so that what was interrupted is never taken for a kit.
package kit
