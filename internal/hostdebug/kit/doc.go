// SPDX-License-Identifier: Apache-2.0

// Package kit is what every debugger on a machine is made with: runc, the toolbox's files, and the program of a
// cluster's sessions. This program carries them compressed ([Packed]); [Unpack] keeps them ready in a folder, for
// programs that begin sessions often.
//
// Its law: a folder has its names only when all is in it, so that an interrupted attempt is never mistaken for a kit.
package kit
