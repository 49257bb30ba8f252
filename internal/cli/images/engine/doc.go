// SPDX-License-Identifier: Apache-2.0

// Package engine reads images out of other container engines of this machine: Docker's, by its API, and a containerd,
// by its client. [Parse] takes "docker:app:1" apart, and [Source.Open] is the image as an archive that is made while it
// is read: nothing is written to disk between the two engines.
//
// Its law: it only reads. What breaks in the middle is an error of the reader, never a shorter archive.
package engine
