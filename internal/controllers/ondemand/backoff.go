// SPDX-License-Identifier: Apache-2.0

package ondemand

import "time"

const (
	firstRestart = time.Second
	lastRestart  = 5 * time.Minute
	// goodLife is how long a controller must have worked for its next panic to count as the first.
	goodLife = 10 * time.Minute
)

// restart decides, when a controller has ended by itself after it had lived for so long, for the how manieth time in a
// row that is, and how long it is to be left alone.
func restart(before int, lived time.Duration) (failures int, pause time.Duration) {
	if lived >= goodLife {
		before = 0
	}
	pause = firstRestart
	for range before {
		if pause *= 2; pause >= lastRestart {
			return before + 1, lastRestart
		}
	}
	return before + 1, pause
}
