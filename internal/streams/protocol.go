// SPDX-License-Identifier: Apache-2.0

package streams

import "io"

// V5 is the WebSocket protocol for the streams of a process in which each can be closed on its own (KEP-4006). The
// first byte of a message is its channel.
const V5 = "v5.channel.k8s.io"

// The channels of V5.
const (
	Stdin  byte = iota
	Stdout      // an empty message tells the client that it is connected
	Stderr
	Status   // how the process ended, a metav1.Status in JSON
	Resize   // sizes of the client's terminal, in JSON
	channels // how many there are
)

// CloseSignal is the first byte of a message whose second is a channel that its sender closes.
const CloseSignal byte = 255

// Channel reads from a message which channel it is for; what follows is what is sent on it. An empty message is io.EOF.
func Channel(message io.Reader) (byte, error) {
	var first [1]byte
	_, err := io.ReadFull(message, first[:])
	return first[0], err
}
