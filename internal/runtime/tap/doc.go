// SPDX-License-Identifier: Apache-2.0

// Package tap takes what containers print to their logs and to those who attach. It keeps the output of some, so that
// whoever attaches sees all of it: from the first byte, once, in order (EC-16), however late they come, even after a
// kill -9 of the process that keeps it (docs/decisions/011). Of others ([Spec.FromNow]) who attaches is shown the log
// and, to the byte, what it does not have (docs/decisions/081).
//
// [Taps] knows the taps of one runtime. A tap stands between a container's shim and the rest: the shim writes into
// fifos of the tap's, the tap's bytes go into a ring (a file that is mapped into memory, beside the runtime's other
// files of the container), and from the ring into the container's log file and to every client of [Taps.Attach].
//
// Its laws. Nothing is done with a byte before it is in the ring, and what is in the ring is found there by the next
// process, to the byte, as is how much of it the log file has. With nobody attached, nobody but the log's disk holds a
// container up; a client holds it up when it is more than the ring behind, until it goes away. The ring outlives the
// container's process and ends with the container.
//
// A runtime that can be given the fifos to hand its shim gets them ([Taps.Start]); with one that cannot, fifos change
// names while it starts the container ([Taps.StartExchanged]).
//
// The package knows fifos, files and bytes; it knows nothing of containerd.
package tap
